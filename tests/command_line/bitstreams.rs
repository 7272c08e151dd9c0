//! `scripts/bitstreams.py`, with a stand-in for `tilewright` that prints reports.

use super::Outcome;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const PROGRAM: &str = r#"#!/bin/sh
report() {
  echo "{\"board\": \"$1\", \"fmax_mhz\": $2, \"clock_mhz\": 40.0, \"gops\": 1.0, \"cells\": {\"luts\": 500, \"dsps\": 2}, \"planned_multipliers\": ${7:-null}, \
    \"checks\": [$5], \"slow\": ${6:-false}, \"bitstream\": {}, \"resources\": [$3], \"estimate\": {\"fmax_mhz\": $4, \"resources\": [{\"name\": \"look-up tables\", \"used\": 900, \"available\": 9999}]}}"
}
echo "$*" >> "$0.calls"
case "$*" in
  *--allow-slow*) report slow 30.0 '' 33.0 '' true;;
  *same*--verify*) report fast 50.0 '' 55.0 '{"netlist": "routed", "programs": 7, "difference": null, "unchecked": null},
    {"netlist": "bitstream", "programs": 0, "difference": null, "unchecked": "no tool"}';;
  *wrong*--verify*) report fast 50.0 '' 55.0 '{"netlist": "routed", "programs": 3, "difference": "program 3: at 0x7", "unchecked": null}'; exit 1;;
  *'--board fast '*) report fast 50.0 '{"name": "TRELLIS_COMB", "used": 1000, "available": 9999}' 55.0;;
  *'--board few '*) report few 50.0 '{"name": "TRELLIS_COMB", "used": 1001, "available": 9999}' 59.9;;
  *'--board quick '*) report quick 50.0 '{"name": "TRELLIS_COMB", "used": 900, "available": 9999}' 60.1;;
  *'--board none '*) report none null '' null;;
  *'--board gone '*) report gone 50.0 '{"name": "DP16KD", "used": 4, "available": 56}' 55.0;;
  *'--board plan '*) report plan 50.0 '{"name": "TRELLIS_COMB", "used": 900, "available": 9999}' 55.0 '' false 3;;
  *) echo 'error: too slow' >&2; exit 1;;
esac
"#;

#[test]
fn a_design_that_misses_its_boards_clock_fails_and_one_without_a_clock_is_told() {
    if !tilewright_testing::has_program("python3") {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let program = dir.path().join("tilewright");
    std::fs::write(&program, PROGRAM).expect("a file");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("a program");
    let run = |designs: &[&str]| {
        let mut command = Command::new("python3");
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/bitstreams.py")).args(designs);
        Outcome::of(command.env("TILEWRIGHT", &program).output().expect("python3 starts"))
    };
    let outcome = run(&["fast", "none"]);
    assert_eq!(outcome.code, 0, "{}{}", outcome.stdout, outcome.stderr);
    let rows: Vec<Vec<&str>> = outcome.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1], ["fast", "look-up", "tables", "900", "1000", "9999", "-10.0%"]);
    assert_eq!(rows[2], ["fast", "clock,", "MHz", "55.0", "50.0", "10.0%"]);
    // Utilization by the router's tables, at the clock that it reached.
    assert!(outcome.stdout.contains("1.25 GOPS, 0.625 per multiplier, 1.25 per thousand LUTs"), "{}", outcome.stdout);
    assert_eq!(rows[5], ["none", "clock,", "MHz", "-", "-", "-"]);
    assert!(outcome.stdout.contains("1.00 GOPS, 0.500 per multiplier, 2.00 per thousand LUTs"), "{}", outcome.stdout);

    // Estimates can differ by a tenth of the resources and a fifth of the clock.
    let outcome = run(&["few"]);
    assert_eq!(outcome.code, 1, "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stdout.contains("estimate of look-up tables is MORE THAN 10% off"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains("estimate of the clock"), "{}", outcome.stdout);
    let outcome = run(&["quick"]);
    assert_eq!(outcome.code, 1, "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stdout.contains("estimate of the clock is MORE THAN 20% off"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains("estimate of look-up tables"), "{}", outcome.stdout);

    // Resources that the router does not use were not estimated either. Families with unknown names are not compared.
    let outcome = run(&["gone"]);
    assert_eq!(outcome.code, 1, "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stdout.contains("estimate of look-up tables is MORE THAN 10% off"), "{}", outcome.stdout);
    assert_eq!(rows[4], ["none", "look-up", "tables", "900", "?", "9999", "-"]);
    // The number of multipliers for which the sources were written.
    let outcome = run(&["plan"]);
    assert_eq!(outcome.code, 1, "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stdout.contains("has 2 multipliers, 3 WERE PLANNED"), "{}", outcome.stdout);

    let outcome = run(&["slow"]);
    assert!(outcome.code == 1 && outcome.stdout.contains("no bitstream"), "{}", outcome.stdout);
    let outcome = run(&["slow", "--allow-slow"]);
    assert!(outcome.code == 1 && outcome.stdout.contains("MISSES its board's clock, 40.0 MHz"), "{}", outcome.stdout);

    // Checked netlists, and a folder for each board and configuration.
    let outcome = run(&["fast:x/same.toml", "--verify", "--programs=7"]);
    assert_eq!(outcome.code, 0, "{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.stdout.contains("routed: same as the sources in 7 programs"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("bitstream: not checked: no tool"), "{}", outcome.stdout);
    let outcome = run(&["slow:x/wrong.toml", "--verify"]);
    assert_eq!(outcome.code, 1, "{}", outcome.stdout);
    assert!(outcome.stdout.contains("routed: DIFFERS from the sources: program 3: at 0x7"), "{}", outcome.stdout);
    let calls = std::fs::read_to_string(dir.path().join("tilewright.calls")).expect("it was called");
    for words in ["build/bitstreams/fast/x-same.toml", "build/bitstreams/slow/x-wrong.toml", "--verify --programs=7"] {
        assert!(calls.contains(words), "{words}: {calls}");
    }
}
