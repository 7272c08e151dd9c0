//! `synth`: boards, early errors, and the bitstream of the smallest board with a check of its netlists.

use super::{fine, refused, tilewright};
use serde_json::Value;
use std::path::Path;
use std::time::Instant;
use tilewright_hw::flow::family::Family;
use tilewright_hw::flow::tools;

#[test]
fn boards_are_listed() {
    let text = fine(Path::new("."), &["synth"]);
    for board in ["hx8k-evn", "icebreaker", "upduino", "ulx3s-85f", "orangecrab", "pynq-z1", "zcu104"] {
        assert!(text.lines().any(|line| line.starts_with(board)), "{board}:\n{text}");
    }
}

#[test]
fn what_no_board_can_have_is_refused_by_name() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let refused = |arguments: &[&str], words: &[&str]| {
        let outcome = tilewright(dir, arguments);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
        assert!(words.iter().all(|word| outcome.stderr.contains(word)), "{}", outcome.stderr);
    };
    refused(&["synth", "--board", "hx9k"], &["unknown board hx9k", "hx8k-evn"]);
    refused(&["synth", "--board", "./nowhere"], &["nowhere/board.toml"]);
    refused(&["synth", "--board", "hx8k-evn", "--hw", "2x2"], &["2x2", "1x4x4"]);
    for mhz in ["nan", "-5", "0", "1e9", "fast"] {
        refused(&["synth", "--board", "hx8k-evn", "--sources", "--mhz", mhz], &["--mhz", "give MHz from 1 to 1000"]);
    }
    refused(
        &["synth", "--board", "hx8k-evn", "--sources", "--mhz", "17"],
        &["host.baud is 3000000", "exceeds the 2 % limit"],
    );
    std::fs::create_dir(dir.join("own")).expect("a folder");
    std::fs::write(dir.join("own/board.toml"), "title = 1\n").expect("a file");
    refused(&["synth", "--board", "./own"], &["own/board.toml", "title"]);
    assert!(!dir.join("build").exists());
}

/// Every board's sources can be written without any tool, with the board's configuration.
#[test]
fn every_board_has_sources() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let listed: Value = serde_json::from_str(&fine(dir, &["synth", "--json"])).expect("JSON");
    let boards = listed["boards"].as_array().expect("boards");
    assert!(boards.len() >= 15, "{boards:?}");
    for board in boards {
        let (name, hw) = (board["name"].as_str().expect("a name"), board["hw"].as_str().expect("a configuration"));
        let said = fine(dir, &["synth", "--board", name, "--sources", "-o", name]);
        assert!(said.starts_with(&format!("sources of {hw} on {name} at ")), "{said}");
        let top = std::fs::read_to_string(dir.join(name).join("tw_top.v")).expect("a top module");
        let has = |port: &str| top.contains(port);
        assert!(has("uart_rx") || has("spi_miso") || has("s_axi_awaddr"), "{name}:\n{top}");
    }
    // The generated top module for the vendor's tool fits the peripheral below it.
    if tilewright_testing::has_program("verilator") {
        for board in ["pynq-z1", "zcu104"] {
            let listed = std::fs::read_to_string(dir.join(board).join("package.tcl")).expect("a script");
            let sources = listed.lines().filter_map(|line| line.strip_prefix("read_verilog ")?.split(' ').next_back());
            let mut lint = std::process::Command::new("verilator");
            lint.args(["--lint-only", "--top-module", "tw_top", "-Werror-PINMISSING", "-Werror-WIDTH", "-I."]);
            let output = lint.args(sources).current_dir(dir.join(board)).output().expect("verilator starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
    // `flash` finds nothing if only sources are written, and each board has its own folder.
    let own = dir.join("build/synth/hx8k-evn");
    std::fs::create_dir_all(&own).expect("a folder");
    for name in ["report.json", "board.bin"] {
        std::fs::write(own.join(name), "old").expect("a file");
    }
    fine(dir, &["synth", "--board", "hx8k-evn", "--sources"]);
    assert!(own.join("tw_top.v").exists() && !own.join("report.json").exists() && !own.join("board.bin").exists());
    // Boards that support another link, with that link.
    for (board, pins) in [("ulx3s-25f", "pins.lpf"), ("ulx3s-85f", "pins.lpf")] {
        fine(dir, &["synth", "--board", board, "--host", "spi", "--sources", "-o", "spi"]);
        let pins = std::fs::read_to_string(dir.join("spi").join(pins)).expect("pins");
        assert!(pins.contains("spi_sck") && !pins.contains("uart"), "{pins}");
    }
    refused(
        dir,
        &["synth", "--board", "hx8k-evn", "--host", "spi", "--sources"],
        "hx8k-evn/board.toml: it has no host of kind spi; use uart",
    );
}

/// Makes a board's default bitstream in a folder, with additional arguments, and returns the report. Without the tools,
/// the calling test is skipped.
fn made(dir: &Path, (board, family): (&str, Family), arguments: &[&str]) -> Option<Value> {
    if let Err(error) = tools::find(family) {
        tilewright_testing::skip(&error.to_string());
        return None;
    }
    let begun = Instant::now();
    let text = fine(dir, &[&["synth", "--board", board, "-o", "out", "--json"][..], arguments].concat());
    println!("{board}: {:.0} s", begun.elapsed().as_secs_f64());
    Some(serde_json::from_str(&text).expect("a report"))
}

const HX8K: (&str, Family) = ("hx8k-evn", Family::Ice40);

/// Checks that the netlists of the stages ran this many programs and the layer like the sources. A bitstream that no
/// tool reads back says so. Without the tool of its family, this check is skipped.
fn same(report: &Value, programs: u64, family: Family) {
    let checks = report["checks"].as_array().expect("checks");
    let names: Vec<&Value> = checks.iter().map(|check| &check["netlist"]).collect();
    assert_eq!(names, STAGES);
    for check in checks {
        let is_readable = family == Family::Ice40 || check["netlist"] != "bitstream";
        match check["unchecked"].as_str() {
            None => assert!(is_readable, "{check}"),
            Some(why) if is_readable => {
                assert!(check["netlist"] == "bitstream" && why.starts_with("icebox_vlog was not found"), "{check}");
                tilewright_testing::skip(why);
                continue;
            }
            Some(why) => {
                assert_eq!(why, "no open tool makes a netlist of its family's bitstreams");
                continue;
            }
        }
        assert_eq!((&check["difference"], &check["programs"]), (&Value::Null, &programs.into()), "{check}");
        assert!(check["layer"].as_str().expect("a layer").contains("conv2d"), "{check}");
    }
}

const STAGES: [&str; 3] = ["synthesized netlist", "routed netlist", "bitstream"];

#[test]
#[ignore = "long; make test-full runs it"]
fn the_largest_ice40_gets_a_bitstream_that_computes_what_the_sources_say() {
    let dir = tempfile::tempdir().expect("a folder");
    let Some(report) = made(dir.path(), HX8K, &[]) else { return };
    assert!(report["fmax_mhz"].as_f64().expect("it is routed") >= 42.0, "{}", report["fmax_mhz"]);
    let bytes = std::fs::read(dir.path().join("out/board.bin")).expect("a bitstream");
    // A bitstream begins with this word, and all bitstreams for the HX8K have the same size.
    assert_eq!((&bytes[4..8], bytes.len()), (&[0x7e, 0xaa, 0x99, 0x7e][..], 135_100));
    assert_eq!(report["bitstream"]["bytes"], bytes.len());
    if tilewright_testing::has_program("verilator") {
        let arguments = ["--verify", "--programs", "4"];
        let checked = made(dir.path(), HX8K, &arguments).expect("the tools are there");
        same(&checked, 4, HX8K.1);
        // A later call without a check reports the earlier result: these programs, or more if an earlier check ran
        // more.
        let later = made(dir.path(), HX8K, &[]).expect("the tools are there");
        let programs = later["checks"][0]["programs"].as_u64().expect("what was found");
        assert!(programs >= 4, "{}", later["checks"]);
        same(&later, programs, HX8K.1);
    }
}

#[test]
#[ignore = "long; make test-full runs it"]
fn netlists_and_the_bitstream_run_a_hundred_programs_as_the_sources() {
    if !tilewright_testing::has_program("verilator") {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let Some(report) = made(dir.path(), HX8K, &["--verify"]) else { return };
    same(&report, 100, HX8K.1);
}

#[test]
#[ignore = "long; make test-full runs it"]
fn an_ecp5_gets_a_bitstream_of_a_4x4_whose_netlists_compute_what_the_sources_say() {
    let dir = tempfile::tempdir().expect("a folder");
    let board = ("orangecrab", Family::Ecp5);
    let Some(report) = made(dir.path(), board, &[]) else { return };
    assert!(report["fmax_mhz"].as_f64().expect("it is routed") >= 55.0, "{}", report["fmax_mhz"]);
    assert_eq!(
        report["cells"]["dsps"], report["planned_multipliers"],
        "products that hw/src/flow/multipliers.rs counts otherwise"
    );
    let bytes = std::fs::read(dir.path().join("out/board.bit")).expect("a bitstream");
    // The preamble for which the part searches, after the comment.
    assert!(bytes.windows(4).take(400).any(|word| word == [0xff, 0xff, 0xbd, 0xb3]), "{:02x?}", &bytes[..64]);
    assert_eq!(report["bitstream"]["bytes"], bytes.len());
    if tilewright_testing::has_program("verilator") {
        same(&made(dir.path(), board, &["--verify"]).expect("the tools are there"), 100, board.1);
    }
}
