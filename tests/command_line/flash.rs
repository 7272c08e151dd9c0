//! `flash`, with a stand-in for openFPGALoader that prints its arguments.

use super::Outcome;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const LOADER: &str = "#!/bin/sh
[ \"$1\" = --Version ] && { echo openFPGALoader v${LOADER:-0.12.0}; exit 0; }
echo \"$@\" > called
echo 'Detail: Jtag frequency'
[ -e unplugged ] && { echo 'Error: unable to open ftdi device: -3'; exit 1; }
exit 0
";
/// The SHA-256 of `bits`.
const SHA256: &str = "e5e59d10f196504b6e08ac7785f84430a61e1558fd6246075a9566edaab2e814";

fn flash(dir: &Path, path: &Path, arguments: &[&str]) -> Outcome {
    flash_by("0.12.0", dir, path, arguments)
}

/// Calls `flash` with a loader of some version.
fn flash_by(version: &str, dir: &Path, path: &Path, arguments: &[&str]) -> Outcome {
    let output = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .arg("flash")
        .args(arguments)
        .current_dir(dir)
        .env("PATH", path)
        .env("LOADER", version)
        .output()
        .expect("the program starts");
    Outcome::of(output)
}

/// A folder like the output of `synth`.
fn made(dir: &Path, board: &str, bitstream: &str) {
    std::fs::create_dir_all(dir).expect("a folder");
    let report =
        format!(r#"{{"board": "{board}", "link": "serial:PORT@9600", "config": "1x4x4", "bitstream": {bitstream}}}"#);
    std::fs::write(dir.join("report.json"), report).expect("a file");
    std::fs::write(dir.join("board.bit"), "bits").expect("a file");
}

#[test]
fn a_bitstream_goes_onto_its_board_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let tools = dir.join("tools");
    std::fs::create_dir(&tools).expect("a folder");
    let loader = tools.join("openFPGALoader");
    std::fs::write(&loader, LOADER).expect("a file");
    std::fs::set_permissions(&loader, PermissionsExt::from_mode(0o755)).expect("a program");
    let whole = format!(r#"{{"file": "board.bit", "bytes": 4, "sha256": "{SHA256}"}}"#);
    made(&dir.join("out"), "ulx3s-25f", &whole);

    let outcome = flash(dir, &tools, &["--board", "ulx3s-25f", "out"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let said = "ulx3s-25f has its bitstream; check it with `tilewright doctor --device serial:PORT@9600 --hw 1x4x4`\n";
    assert_eq!(outcome.stdout, said);
    let called = || std::fs::read_to_string(dir.join("out/called")).expect("it was called");
    assert_eq!(called(), "--board ulx3s --write-flash board.bit\n");
    let outcome = flash(dir, &tools, &["--board", "ulx3s-25f", "--volatile", "out"]);
    assert_eq!((outcome.code, called().as_str()), (0, "--board ulx3s --write-sram board.bit\n"), "{}", outcome.stderr);
    std::fs::remove_file(dir.join("out/called")).expect("a file");

    let refused = |path: &Path, arguments: &[&str], words: &[&str]| {
        let outcome = flash(dir, path, arguments);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
        assert!(words.iter().all(|word| outcome.stderr.contains(word)), "{}", outcome.stderr);
        assert!(!dir.join("out/called").exists(), "{arguments:?}");
    };
    refused(&tools, &["--board", "ulx3s-85f", "out"], &["onto ulx3s-85f", "has a bitstream for ulx3s-25f"]);
    let none = [
        "cannot flash none onto ulx3s-25f: it has no report.json",
        "give a folder that `tilewright synth --board ulx3s-25f",
    ];
    refused(&tools, &["--board", "ulx3s-25f", "none"], &none);
    refused(
        dir,
        &["--board", "ulx3s-25f", "out"],
        &["openFPGALoader 0.10 or newer was not found", "apt-get install openfpgaloader"],
    );
    let outcome = flash_by("0.9.1", dir, &tools, &["--board", "ulx3s-25f", "out"]);
    assert!(
        outcome.code == 2 && outcome.stderr.contains("openFPGALoader 0.10 or newer was not found"),
        "{}",
        outcome.stderr
    );
    std::fs::write(dir.join("out/board.bit"), "bite").expect("a file");
    refused(&tools, &["--board", "ulx3s-25f", "out"], &["out/board.bit", "synthesize it again"]);
    std::fs::remove_file(dir.join("out/board.bit")).expect("a file");
    refused(&tools, &["--board", "ulx3s-25f", "out"], &["out/board.bit", "No such file"]);
    std::fs::write(dir.join("out/report.json"), "{").expect("a file");
    refused(&tools, &["--board", "ulx3s-25f", "out"], &["out/report.json", "cannot be read"]);
    made(&dir.join("zynq"), "pynq-z1", "null");
    refused(&tools, &["--board", "pynq-z1", "zynq"], &["has no bitstream"]);

    let refused_by_size = r#"null, "refused": "it needs 9 of 3 block RAMs""#;
    made(&dir.join("large"), "ulx3s-25f", refused_by_size);
    refused(&tools, &["--board", "ulx3s-25f", "large"], &["has no bitstream: it needs 9 of 3 block RAMs"]);
    made(&dir.join("estimate"), "ulx3s-25f", "null");
    refused(&tools, &["--board", "ulx3s-25f", "estimate"], &["has no bitstream: only an estimate was made"]);

    // A bitstream whose check found wrong results.
    let checks = r#""checks": [{"netlist": "synthesized netlist"}, {"netlist": "routed netlist", "difference": "program 3: at 0x7"}]"#;
    made(&dir.join("out"), "ulx3s-25f", &format!(r#"{whole}, "hw": "/some/own.toml", {checks}"#));
    refused(
        &tools,
        &["--board", "ulx3s-25f", "out"],
        &["its routed netlist differs from the sources (program 3: at 0x7)", "--force"],
    );
    let outcome = flash(dir, &tools, &["--board", "ulx3s-25f", "out", "--force"]);
    assert!(
        outcome.code == 0 && outcome.stdout.contains(" --hw /some/own.toml`"),
        "{}{}",
        outcome.stdout,
        outcome.stderr
    );
    std::fs::remove_file(dir.join("out/called")).expect("a file");

    // A bitstream that does not reach its clock.
    let slow = r#""slow": true, "fmax_mhz": 35.5, "clock_mhz": 40.0"#;
    made(&dir.join("out"), "ulx3s-25f", &format!("{whole}, {slow}"));
    let doubt = "its core runs at 40.00 MHz, but its fastest clock is 35.50 MHz, so it may compute wrong results";
    refused(&tools, &["--board", "ulx3s-25f", "out"], &[doubt, "--mhz", "(--allow-slow)"]);
    let outcome = flash(dir, &tools, &["--board", "ulx3s-25f", "out", "--allow-slow"]);
    assert!(outcome.code == 0 && outcome.stderr.contains(&format!("warning: {doubt}\n")), "{}", outcome.stderr);
    std::fs::remove_file(dir.join("out/called")).expect("a file");

    // If the board is missing, the loader's message is the error's reason, and it is in the log.
    made(&dir.join("out"), "ulx3s-25f", &whole);
    std::fs::write(dir.join("out/unplugged"), "").expect("a file");
    let outcome = flash(dir, &tools, &["--board", "ulx3s-25f", "out"]);
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.stderr.contains("unable to open ftdi device") && outcome.stderr.contains("flash.log"),
        "{}",
        outcome.stderr
    );
}
