//! The files of each folder, and the runner itself.

use super::meaning::same_results;
use super::{diff, run_folder};
use std::path::{Path, PathBuf};

/// Runs one folder of `tests/files`.
fn folder(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/files").join(name);
    let bless = std::env::var_os("BLESS").is_some_and(|v| v == "1");
    if let Err(report) = run_folder(&path, bless) {
        panic!("\n{report}");
    }
}

macro_rules! folders {
    ($($name:ident)*) => {
        $(#[test] fn $name() { folder(stringify!($name)); })*

        #[test]
        fn every_folder_is_run() {
            let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/files");
            let mut found: Vec<String> = std::fs::read_dir(files)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            found.sort();
            assert_eq!(found, [$(stringify!($name)),*]);
        }
    };
}
folders!(accel graph lower passes schedule te tir);

const GRAPH: &str = "graph \"g\" {\n  %0 = input \"x\" : f32[2]\n  output \"y\" = %0\n}\n";

/// A folder with one file of this text.
fn one_file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("inner").join("file.txt");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

/// What a run without blessing says about one file of this text.
fn report(text: &str) -> String {
    let (folder, path) = one_file(text);
    let report = run_folder(folder.path(), false).unwrap_err();
    assert_eq!(std::fs::read_to_string(path).unwrap(), text, "a run without BLESS writes nothing");
    report
}

#[test]
fn a_right_output_passes() {
    let (folder, _) = one_file(&format!("# verify graph\n# Says so.\n{GRAPH}----\nsound\n"));
    run_folder(folder.path(), false).unwrap();
}

#[test]
fn a_wrong_output_fails_with_a_diff_and_the_command_to_bless() {
    let report = report(&format!("# verify graph\n# Says so.\n{GRAPH}----\nunsound\n"));
    assert!(report.contains("inner/file.txt: the output differs (- file, + now)\n- unsound\n+ sound\n"), "{report}");
    assert!(report.contains("BLESS=1 cargo test"), "{report}");
}

#[test]
fn a_missing_output_fails() {
    let report = report(&format!("# verify graph\n# Says so.\n{GRAPH}----\n"));
    assert!(report.contains("it has no output"), "{report}");
}

#[test]
fn blessing_rewrites_the_output_alone() {
    let head = format!("# verify graph\n# Says so.\n{GRAPH}----\n");
    let (folder, path) = one_file(&format!("{head}unsound\nand more\n"));
    run_folder(folder.path(), true).unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), format!("{head}sound\n"));
    run_folder(folder.path(), false).unwrap();
}

#[test]
fn an_empty_folder_fails() {
    let folder = tempfile::tempdir().unwrap();
    assert!(run_folder(folder.path(), true).unwrap_err().contains("has no files"));
}

#[test]
fn malformed_files_fail_even_when_blessing() {
    let cases = [
        (GRAPH.to_string(), "the first line must be `# ` and a command"),
        (format!("# verify graph\n{GRAPH}----\n"), "the second line must be"),
        (format!("# verify graph\n# Says so.\n{GRAPH}"), "the line `----` is missing"),
        (format!("# verify quickly\n# Says so.\n{GRAPH}----\n"), "unknown command `verify quickly`"),
        (format!("# pass fold_all\n# Says so.\n{GRAPH}----\n"), "there is no pass `fold_all`; there are dead_code,"),
        (format!("# verify graph\n# Says so.\n{}{GRAPH}----\n", "\n".repeat(60)), "it has 68 lines"),
    ];
    for (text, why) in cases {
        let (folder, path) = one_file(&text);
        let report = run_folder(folder.path(), true).unwrap_err();
        assert!(report.contains(why), "{report}");
        assert_eq!(std::fs::read_to_string(path).unwrap(), text);
    }
}

#[test]
fn a_graph_with_other_results_is_no_output() {
    let graph = |op: &str| {
        let text = format!("graph \"g\" {{\n%0 = input \"x\" : f32[9]\n%1 = {op} : f32[9]\noutput \"y\" = %1\n}}\n");
        crate::graph::text::parse(&text, &Default::default()).unwrap()
    };
    let (relu, clip) = (graph("relu \"r\"(%0)"), graph("clip \"c\"(%0) {lo = 0.0, hi = inf}"));
    same_results(&relu, &clip, true).unwrap();
    let other = graph("clip \"c\"(%0) {lo = 0.0, hi = 0.5}");
    assert!(same_results(&relu, &other, true).unwrap_err().contains("output y differs by"));
}

#[test]
fn a_diff_shows_both_texts_in_order() {
    assert_eq!(diff("a\nb\nc\n", "a\nx\nc\nd\n"), "  a\n- b\n+ x\n  c\n+ d\n");
}
