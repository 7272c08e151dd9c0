//! Proves netlists of units, as synthesized for boards, equal to the RTL (`hw/formal/units.toml`, `docs/formal.md`).
//!
//! Yosys matches the two by the names of their registers and outputs and proves each pair equal, registers by
//! induction. The cells have the same models as in the netlist check. A planted fault in the synthesized source must be
//! refuted with a counterexample; otherwise the proof would be worthless.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde::Deserialize;
use tilewright_hw::flow::board::Board;
use tilewright_hw::flow::model::read_models;
use tilewright_hw::flow::tools::{self, Tools};
use tilewright_hw::isa::config_package;
use tilewright_hw::rtl::SOURCES;

/// A module with its parameters.
#[derive(Deserialize)]
struct Unit {
    module: String,
    files: Vec<String>,
    #[serde(default)]
    parameters: Vec<String>,
    boards: Vec<String>,
    #[serde(default)]
    quick: bool,
}

/// An edit of a unit's file that the proof must refute.
#[derive(Deserialize)]
struct Fault {
    name: String,
    module: String,
    board: String,
    before: String,
    after: String,
    cycles: u32,
    #[serde(default)]
    quick: bool,
}

#[derive(Deserialize)]
struct Units {
    unit: Vec<Unit>,
    fault: Vec<Fault>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the workspace")
}

fn units() -> Units {
    let text = std::fs::read_to_string(root().join("hw/formal/units.toml")).expect("the units are there");
    toml::from_str(&text).expect("the units can be read")
}

/// The board's tools; without them the calling test skips.
fn find_tools(board: &Board) -> Option<Tools> {
    let found = tools::find(board.family);
    if let Err(error) = &found {
        tilewright_testing::skip(&error.to_string());
    }
    found.ok()
}

/// Writes the RTL into a folder, with the packages of a board's configuration.
fn lay_out(folder: &Path, board: &Board) {
    std::fs::create_dir_all(folder).expect("the folder can be made");
    let package = config_package(&board.default_config().expect("the board has a configuration"));
    let sources = SOURCES.iter().map(|(path, text)| (path.rsplit('/').next().unwrap_or(path), *text));
    for (name, text) in sources.chain([("tw_cfg_pkg.sv", package.as_str())]) {
        std::fs::write(folder.join(name), text).expect("the folder can be written");
    }
}

/// Compares a unit of `rtl` with the netlist of the same unit of `other`: proves them equal, or, given `cycles`, looks
/// for a difference within so many cycles. Returns whether Yosys succeeded, and its log.
fn compare(folder: &Path, unit: &Unit, board: &Board, tools: &Tools, cycles: Option<u32>) -> (bool, String) {
    let module = &unit.module;
    let read = |from: &str| {
        let files = ["tw_cfg_pkg.sv", "tw_isa_pkg.sv"].into_iter().chain(unit.files.iter().map(String::as_str));
        let files: Vec<String> = files.map(|file| format!("{from}/{file}")).collect();
        let parameters: String = unit.parameters.iter().map(|parameter| format!(" -G {parameter}")).collect();
        format!("read_slang --extern-modules --top {module} -I {from}{parameters} {}", files.join(" "))
    };
    let mut script: Vec<String> = vec![read("rtl")];
    script.extend(["proc", "flatten", "memory_map", "opt_clean"].map(String::from));
    script.extend([format!("rename {module} gold"), "design -stash gold".into()]);
    // Modules for which the family has its own cells are only declared, as in the flow.
    for module in board.family.own_modules() {
        std::fs::write(folder.join("other").join(module.name), module.text).expect("the folder can be written");
    }
    script.push(read("other"));
    script.extend(board.family.own_times("other"));
    script.extend(board.family.synthesis(&board.device, module));
    script.push(format!("rename {module} gate"));
    let own = root().join(format!("hw/cells/{}.v", board.family.name()));
    script.extend(read_models(board.family, tools, "gate", &own));
    script.push("hierarchy -check -top gate".into());
    script.extend(["proc", "flatten -wb", "memory_map", "opt_clean", "techmap t:$lut"].map(String::from));
    script.push("design -copy-from gold -as gold gold".into());
    match cycles {
        None => script.extend(
            [
                "equiv_make gold gate equiv",
                "hierarchy -top equiv",
                "equiv_simple -undef",
                "equiv_induct -undef",
                "equiv_status -assert",
            ]
            .map(String::from),
        ),
        Some(cycles) => script.extend([
            "miter -equiv -flatten -make_outputs gold gate miter".into(),
            "hierarchy -top miter".into(),
            format!("sat -falsify -seq {cycles} -set-init-zero -prove trigger 0 -show-ports miter"),
        ]),
    }
    for file in board.family.synthesis_files() {
        std::fs::write(folder.join(file.name), file.text).expect("the folder can be written");
    }
    std::fs::write(folder.join("compare.ys"), script.join("\n") + "\n").expect("the folder can be written");
    let [program, arguments @ ..] = &tools.yosys.command[..] else { panic!("Yosys has no command") };
    let mut yosys = Command::new(program);
    yosys.args(arguments).args(["-ql", "compare.log", "compare.ys"]).current_dir(folder);
    let output = yosys.output().unwrap_or_else(|error| panic!("{yosys:?}: {error}"));
    let log = std::fs::read_to_string(folder.join("compare.log")).unwrap_or_default();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    (output.status.success(), format!("{log}\n{errors}"))
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("equivalence").join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("an old run can be removed");
    }
    folder
}

fn boards(names: &[String]) -> impl Iterator<Item = Board> + '_ {
    names.iter().map(|name| Board::load(name).unwrap_or_else(|error| panic!("{error}")))
}

fn netlists_are_equal(quick: bool) {
    for unit in units().unit.iter().filter(|unit| unit.quick == quick) {
        for board in boards(&unit.boards) {
            let Some(tools) = find_tools(&board) else { return };
            let name = format!("{}-{}-{}", unit.module, unit.parameters.join("-"), board.name);
            let folder = folder(&name);
            lay_out(&folder.join("rtl"), &board);
            lay_out(&folder.join("other"), &board);
            let begun = Instant::now();
            let (proved, log) = compare(&folder, unit, &board, &tools, None);
            println!("{name}: {:.1} s", begun.elapsed().as_secs_f64());
            let end = log.lines().rev().take(12).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n");
            assert!(
                proved && log.contains("Equivalence successfully proven!"),
                "{name}, in {}:\n{end}",
                folder.display()
            );
        }
    }
}

fn faults_are_refuted(quick: bool) {
    let units = units();
    for fault in units.fault.iter().filter(|fault| fault.quick == quick) {
        let of = |unit: &&Unit| unit.module == fault.module && unit.boards.contains(&fault.board);
        let unit = units.unit.iter().find(of).unwrap_or_else(|| panic!("{}: there is no such unit", fault.name));
        let board = Board::load(&fault.board).unwrap_or_else(|error| panic!("{error}"));
        let Some(tools) = find_tools(&board) else { return };
        let folder = folder(&format!("fault-{}", fault.name.replace(' ', "-")));
        lay_out(&folder.join("rtl"), &board);
        lay_out(&folder.join("other"), &board);
        // Without the fault no difference is found in so many cycles, so a difference found below is the fault.
        let (found, log) = compare(&folder, unit, &board, &tools, Some(fault.cycles));
        assert!(!found && log.contains("SAT proof finished - no model found: SUCCESS!"), "{}: {log}", fault.name);
        let path = folder.join("other").join(unit.files.last().expect("it has a file"));
        let text = std::fs::read_to_string(&path).expect("it is laid out");
        assert_eq!(text.matches(&fault.before).count(), 1, "{}: update its text in hw/formal/units.toml", fault.name);
        std::fs::write(&path, text.replace(&fault.before, &fault.after)).expect("the folder can be written");
        let (found, log) = compare(&folder, unit, &board, &tools, Some(fault.cycles));
        assert!(found && log.contains("SAT proof finished - model found: FAIL!"), "{} survived: {log}", fault.name);
    }
}

#[test]
fn netlists_of_small_units_are_the_rtl() {
    netlists_are_equal(true);
}

#[test]
fn a_planted_fault_in_a_netlist_is_refuted() {
    faults_are_refuted(true);
}

#[test]
#[ignore = "a minute or two; make test-full runs it"]
fn netlists_of_larger_units_are_the_rtl() {
    netlists_are_equal(false);
}

#[test]
#[ignore = "a minute or two; make test-full runs it"]
fn all_planted_faults_in_netlists_are_refuted() {
    faults_are_refuted(false);
}
