//! Proves the RTL's blocks with SymbiYosys (`hw/formal`, `docs/formal.md`), and checks that planted bugs are refuted.
//!
//! Each block has a harness and a file of tasks. Tasks with the tag `quick` run in `make test`, all of them in `make
//! formal`. A mutant is one edit of the RTL; the block's bounded check must find a counterexample, otherwise the proof
//! would be worthless. `TILEWRIGHT_FORMAL=NAME` selects one block.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;
use tilewright_hw::config::{HwConfig, PRESETS};
use tilewright_hw::isa::config_package;
use tilewright_hw::rtl::SOURCES;

/// The harnesses' own configurations, by file name.
const OWN_CONFIGS: [&str; 2] = ["small", "wide"];

/// Time limit of a task. The longest need some minutes on a slow machine; one that takes longer than this is stuck.
const LIMIT: Duration = Duration::from_secs(1800);

/// An edit of one source that makes a block wrong.
#[derive(Deserialize)]
struct Mutant {
    /// What is wrong, in a few words.
    name: String,
    /// The harness that must notice: the name of a task file without its extension.
    block: String,
    /// The task that must fail with a counterexample.
    task: String,
    /// A file of `hw/rtl`.
    file: String,
    /// Text that occurs there exactly once.
    before: String,
    /// Its replacement.
    after: String,
    /// Whether the quick tests try it too.
    #[serde(default)]
    quick: bool,
}

#[derive(Deserialize)]
struct Mutants {
    mutant: Vec<Mutant>,
}

/// A task of a harness.
struct Task {
    name: String,
    quick: bool,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the workspace")
}

/// Whether SymbiYosys is installed; without it the calling test skips.
fn has_prover() -> bool {
    let found = root().join(".venv/bin/yowasp-sby").exists() && root().join(".venv/bin/yices-smt2").exists();
    if !found {
        tilewright_testing::skip("needs SymbiYosys and Yices in .venv; run `make setup`");
    }
    found
}

/// The harnesses, by the names of their task files.
fn blocks() -> Vec<String> {
    let mut blocks: Vec<String> = std::fs::read_dir(root().join("hw/formal"))
        .expect("the harnesses are there")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "sby"))
        .map(|path| path.file_stem().expect("a file has a name").to_string_lossy().into_owned())
        .collect();
    blocks.sort();
    assert!(!blocks.is_empty(), "hw/formal has no harness");
    blocks
}

/// The blocks to check: the one of this name, or all if the name is empty.
fn chosen(name: &str) -> Result<Vec<String>, String> {
    let known = blocks();
    if name.is_empty() {
        return Ok(known);
    }
    if known.iter().any(|block| block == name) {
        return Ok(vec![name.to_string()]);
    }
    Err(format!("TILEWRIGHT_FORMAL={name}: hw/formal has no such block; use one of {}", known.join(", ")))
}

/// The blocks that the environment selects.
fn wanted() -> Vec<String> {
    let name = std::env::var("TILEWRIGHT_FORMAL").unwrap_or_default();
    chosen(&name).unwrap_or_else(|why| panic!("{why}"))
}

/// The tasks of a harness, from the section of its file that lists them with their tags.
fn tasks(block: &str) -> Vec<Task> {
    let path = root().join(format!("hw/formal/{block}.sby"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let section = text.split("[tasks]").nth(1).and_then(|rest| rest.split("\n[").next());
    let section = section.unwrap_or_else(|| panic!("{} has no section [tasks]", path.display()));
    let lines = section.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let mut words = line.split_whitespace();
            let name = words.next().expect("a line that is not empty has a word").to_string();
            Task { name, quick: words.any(|tag| tag == "quick") }
        })
        .collect()
}

fn mutants() -> Vec<Mutant> {
    let text = std::fs::read_to_string(root().join("hw/formal/mutants.toml")).expect("the mutants are there");
    toml::from_str::<Mutants>(&text).expect("the mutants can be read").mutant
}

/// Writes the RTL, the packages of every preset and of the harnesses' own configurations, and the harnesses to a folder
/// below the build folder, where a counterexample stays after a failure. Returns the folder of the harnesses.
fn lay_out(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("formal").join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("an old run can be removed");
    }
    let (rtl, formal) = (folder.join("rtl"), folder.join("formal"));
    std::fs::create_dir_all(rtl.join("gen")).expect("the folder can be made");
    std::fs::create_dir_all(&formal).expect("the folder can be made");
    for (source, text) in SOURCES {
        std::fs::write(rtl.join(source), text).expect("the folder can be written");
    }
    let presets = PRESETS.iter().map(|(preset, _)| (preset.to_string(), preset.to_string()));
    let own =
        OWN_CONFIGS.map(|name| (name.to_string(), root().join(format!("hw/formal/{name}.toml")).display().to_string()));
    for (name, source) in presets.chain(own) {
        let config = HwConfig::load(&source).unwrap_or_else(|error| panic!("{source}: {error}"));
        let package = rtl.join(format!("gen/tw_cfg_{name}.sv"));
        std::fs::write(package, config_package(&config)).expect("the folder can be written");
    }
    for entry in std::fs::read_dir(root().join("hw/formal")).expect("the harnesses are there") {
        let path = entry.expect("the folder can be read").path();
        std::fs::copy(&path, formal.join(path.file_name().expect("a file has a name")))
            .expect("the folder can be written");
    }
    formal
}

/// Applies a mutant's edit to a laid-out copy.
fn plant(mutant: &Mutant, formal: &Path) {
    let path = formal.join("../rtl").join(&mutant.file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let found = text.matches(&mutant.before).count();
    assert_eq!(
        found, 1,
        "{}: the text that it changes occurs {found} times in {}, not once; update it in hw/formal/mutants.toml:\n{}",
        mutant.name, mutant.file, mutant.before
    );
    assert_ne!(mutant.before, mutant.after, "{}: changes nothing", mutant.name);
    std::fs::write(&path, text.replace(&mutant.before, &mutant.after)).expect("the folder can be written");
}

/// How a task ended.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// The task's claim holds.
    Holds,
    /// An assertion failed, or a cover is unreachable.
    Refuted,
    /// Stopped at the time limit.
    TimedOut,
    /// Something else: a tool's error, or an inconclusive induction.
    Open,
}

/// Runs one task of a harness; returns its verdict and SymbiYosys's output.
///
/// Each call runs one task: SymbiYosys stops the processes of a failed task without freeing their job slots, so with
/// one process at a time the tasks after it would wait forever.
fn prove(formal: &Path, block: &str, task: &str, limit: Duration) -> (Verdict, String) {
    // `timeout` exits with 124 if it stopped the call, or 137 if it had to kill it.
    let mut sby = Command::new("timeout");
    sby.current_dir(formal).arg("--kill-after=5").arg(limit.as_secs_f64().to_string());
    sby.arg(root().join("scripts/sby.sh")).args(["--prefix", block, "-f", "-j", "1"]);
    sby.arg(format!("{block}.sby")).arg(task);
    let output = sby.output().unwrap_or_else(|error| panic!("{sby:?}: {error}"));
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let verdict = match output.status.code() {
        Some(0) => Verdict::Holds,
        // SymbiYosys's own exit code for a failed property; a tool's error has another.
        Some(2) => Verdict::Refuted,
        Some(124 | 137) => Verdict::TimedOut,
        _ => Verdict::Open,
    };
    (verdict, text)
}

/// Runs tasks of a harness one after the other; returns a report on each that does not hold.
fn reports(formal: &Path, block: &str, tasks: &[&str], limit: Duration) -> Vec<String> {
    let mut reports = Vec::new();
    for task in tasks {
        let start = Instant::now();
        let (verdict, text) = prove(formal, block, task, limit);
        println!("{block} {task}: {:.1} s", start.elapsed().as_secs_f64());
        let how = match verdict {
            Verdict::Holds => continue,
            Verdict::Refuted => "is refuted".to_string(),
            Verdict::TimedOut => format!("was stopped after its limit of {} s", limit.as_secs_f64()),
            Verdict::Open => "is not decided".to_string(),
        };
        reports.push(format!("{block}: task {task} {how}, in {}:\n{}", formal.display(), outcome(&text)));
    }
    reports
}

/// The lines of SymbiYosys's output that state the result.
fn outcome(text: &str) -> String {
    let told = ["summary:", "DONE", "ERROR", "rror:"];
    let lines: Vec<&str> = text.lines().filter(|line| told.iter().any(|word| line.contains(word))).collect();
    lines.join("\n")
}

fn proofs_hold(name: &str, only_quick: bool) {
    let wanted = wanted();
    if !has_prover() {
        return;
    }
    let formal = lay_out(name);
    let mut failed = Vec::new();
    for block in wanted {
        let tasks = tasks(&block);
        let chosen: Vec<&str> = tasks.iter().filter(|t| t.quick || !only_quick).map(|t| t.name.as_str()).collect();
        assert!(!chosen.is_empty(), "{block}: no task is quick");
        failed.extend(reports(&formal, &block, &chosen, LIMIT));
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

fn mutants_are_refuted(name: &str, only_quick: bool) {
    let wanted = wanted();
    if !has_prover() {
        return;
    }
    let mut survived = Vec::new();
    for mutant in mutants().iter().filter(|mutant| (mutant.quick || !only_quick) && wanted.contains(&mutant.block)) {
        let formal = lay_out(&format!("{name}/{}", mutant.name.replace(' ', "-")));
        plant(mutant, &formal);
        let start = Instant::now();
        let (verdict, text) = prove(&formal, &mutant.block, &mutant.task, LIMIT);
        println!("{} ({}): {:.1} s", mutant.name, mutant.block, start.elapsed().as_secs_f64());
        let traced = text.contains("counterexample trace") && text.contains("failed assertion");
        if verdict != Verdict::Refuted || !traced {
            survived.push(format!("{} ({}), {verdict:?}:\n{}", mutant.name, mutant.block, outcome(&text)));
        }
    }
    assert!(survived.is_empty(), "these planted bugs were not refuted:\n{}", survived.join("\n\n"));
}

#[test]
fn quick_proofs_hold() {
    proofs_hold("quick", true);
}

#[test]
fn a_planted_bug_in_each_block_is_refuted() {
    mutants_are_refuted("quick-mutants", true);
}

#[test]
#[ignore = "some minutes; make formal runs it"]
fn all_proofs_hold() {
    proofs_hold("all", false);
}

#[test]
#[ignore = "some minutes; make formal runs it"]
fn all_planted_bugs_are_refuted() {
    mutants_are_refuted("mutants", false);
}

#[test]
fn a_refuted_task_is_reported_with_its_assertion_and_the_next_still_runs() {
    if !has_prover() {
        return;
    }
    let mutant = Mutant {
        name: "beats are counted in a request's own width".to_string(),
        block: "tw_bursts".to_string(),
        task: "prove".to_string(),
        file: "tw_bursts.sv".to_string(),
        before: "rest = BeatsW'(total >> Log);".to_string(),
        after: "rest = BeatsW'(BytesW'(total) >> Log);".to_string(),
        quick: true,
    };
    let formal = lay_out("refuted");
    plant(&mutant, &formal);
    let reports = reports(&formal, "tw_bursts", &["prove", "cover"], Duration::from_secs(300));
    assert_eq!(reports.len(), 1, "{}", reports.join("\n\n"));
    assert!(reports[0].starts_with("tw_bursts: task prove is refuted"), "{}", reports[0]);
    assert!(reports[0].contains("failed assertion"), "{}", reports[0]);
}

#[test]
fn a_task_past_its_limit_is_stopped_and_named() {
    if !has_prover() {
        return;
    }
    let formal = lay_out("limit");
    let reports = reports(&formal, "tw_bursts", &["prove"], Duration::from_millis(100));
    let expected = "tw_bursts: task prove was stopped after its limit of 0.1 s";
    assert!(reports.len() == 1 && reports[0].starts_with(expected), "{}", reports.join("\n\n"));
}

#[test]
fn a_block_that_is_not_there_is_refused_with_those_that_are() {
    assert_eq!(chosen("tw_fifo"), Ok(vec!["tw_fifo".to_string()]));
    assert_eq!(chosen(""), Ok(blocks()));
    let why = chosen("tw_fifos").expect_err("there is no such block");
    assert!(why.contains("tw_fifos") && blocks().iter().all(|block| why.contains(block)), "{why}");
}

#[test]
fn every_block_has_proofs_covers_and_planted_bugs() {
    let mutants = mutants();
    let names: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.name.as_str()).collect();
    assert_eq!(names.len(), mutants.len(), "two mutants have one name");
    for block in blocks() {
        let tasks = tasks(&block);
        for kind in ["prove", "cover", "bmc"] {
            assert!(tasks.iter().any(|task| task.name.starts_with(kind)), "{block} has no task {kind}…");
        }
        assert!(mutants.iter().any(|mutant| mutant.block == block && mutant.quick), "{block} has no quick mutant");
    }
    for mutant in &mutants {
        let known =
            blocks().contains(&mutant.block) && tasks(&mutant.block).iter().any(|task| task.name == mutant.task);
        assert!(known, "{}: there is no task {} of {}", mutant.name, mutant.task, mutant.block);
        let text = SOURCES.iter().find(|(name, _)| *name == mutant.file).map(|(_, text)| *text);
        let text = text.unwrap_or_else(|| panic!("{}: hw/rtl has no {}", mutant.name, mutant.file));
        assert_eq!(
            text.matches(&mutant.before).count(),
            1,
            "{}: its text does not occur exactly once in {}",
            mutant.name,
            mutant.file
        );
    }
}
