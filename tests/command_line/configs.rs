//! `configs`.

use crate::{fine, refused, tilewright};

#[test]
fn the_presets_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let text = fine(dir.path(), &["configs"]);
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(
        names,
        ["1x4x2", "1x4x4", "1x4x4-ecp5", "1x8x8", "1x8x8-ecp5", "1x16x16", "1x32x32", "1x8x16", "4x16x16"]
    );
}

#[test]
fn a_shown_configuration_is_the_same_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let text = fine(dir.path(), &["configs", "show", "1x8x16"]);
    std::fs::write(dir.path().join("shown.toml"), text).unwrap();
    let check = |file| fine(dir.path(), &["configs", "check", file]).split_once(": ").unwrap().1.to_string();
    assert_eq!(check("shown.toml"), check("1x8x16"));
    // A board's name selects its configuration, with its clock.
    let text = fine(dir.path(), &["configs", "show", "hx8k-evn"]);
    assert!(text.starts_with("# hx8k-evn") && text.contains("clock_mhz = 42 "), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&fine(dir.path(), &["configs", "show", "1x8x16", "--json"])).unwrap();
    let parameters = &json["parameters"];
    assert_eq!((&parameters["block_out"], &parameters["dma_pack"]), (&16.into(), &true.into()));
    assert_eq!(parameters["counters"], "causes");
}

#[test]
fn every_violation_is_told_and_the_exit_code_is_one() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("bad.toml"), "batch = 3\nfoo = 1\nbus_bits = \"wide\"\ncounters = \"some\"\n")
        .unwrap();
    let outcome = tilewright(dir.path(), &["configs", "check", "bad.toml"]);
    assert_eq!(outcome.code, 1);
    assert_eq!(
        outcome.stdout,
        "bad.toml: 4 violation(s)\n  bus_bits: is string, not a whole number; use a power of two, 16 to 512\n  \
         counters: is \"some\"; use one of none, busy, causes\n  \
         foo: is not a parameter; remove it, or see the table of parameters\n  batch: is 3; use a power of two, 1 to 16\n"
    );
    let outcome = tilewright(dir.path(), &["configs", "check", "bad.toml", "--json"]);
    assert_eq!(outcome.code, 1);
    let json: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(json["fine"], false);
    assert_eq!(json["violations"].as_array().unwrap().len(), 4);
    assert_eq!(json["violations"][3]["parameter"], "batch");
}

#[test]
fn what_is_no_configuration_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    refused(
        dir.path(),
        &["configs", "check", "huge"],
        "no configuration is named huge; the presets are 1x4x2, 1x4x4, 1x4x4-ecp5, 1x8x8, 1x8x8-ecp5, 1x16x16, 1x32x32, 1x8x16, \
         4x16x16, or give a path that ends in .toml",
    );
    refused(dir.path(), &["configs", "check", "no.toml"], "no.toml: No such file or directory (os error 2)");
    std::fs::write(dir.path().join("broken.toml"), "batch = = 1\n").unwrap();
    let outcome = tilewright(dir.path(), &["configs", "check", "broken.toml"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.starts_with("error: broken.toml: not a TOML file: TOML parse error at line 1, column 9"));
}
