//! The RTL of every preset under the two tools that must take it: Verilator's lint with every warning, and Yosys.

use std::path::{Path, PathBuf};
use std::process::Command;

use tilewright_hw::config::{HwConfig, PRESETS};
use tilewright_hw::isa::config_package;
use tilewright_hw::rtl::{SOURCES, TOP};

/// Writes the design of a preset and gives its files, packages first.
fn write_design(preset: &str, dir: &Path) -> Vec<PathBuf> {
    let config = HwConfig::load(preset).expect("presets load");
    let package = dir.join("tw_cfg_pkg.sv");
    std::fs::write(&package, config_package(&config)).expect("the folder can be written");
    let mut files = vec![package];
    for (name, text) in SOURCES {
        // In one folder, so that headers are found.
        let path = dir.join(name.rsplit('/').next().unwrap_or(name));
        std::fs::write(&path, text).expect("the folder can be written");
        if name.ends_with(".sv") {
            files.push(path);
        }
    }
    files
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a command and gives what it wrote where it failed or warned.
fn complaint(command: &mut Command) -> Option<String> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; run `make setup`"));
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // Yosys counts its warnings in a closing line, also where there is none.
    let warned = text.lines().any(|line| line.to_lowercase().contains("warning") && !line.contains("0 warnings"));
    (!output.status.success() || warned).then_some(text)
}

#[test]
fn verilator_lints_every_preset_without_a_warning() {
    for (preset, _) in PRESETS {
        let dir = tempfile::tempdir().unwrap();
        let files = write_design(preset, dir.path());
        let mut verilator = Command::new("verilator");
        verilator
            .args(["--lint-only", "-Wall", "--assert", "--top-module", TOP])
            .arg(format!("-I{}", dir.path().display()));
        verilator.arg(root().join("hw/rtl/waivers.vlt")).args(&files);
        if let Some(text) = complaint(&mut verilator) {
            panic!("{preset}:\n{text}");
        }
    }
}

#[test]
fn yosys_elaborates_every_preset_without_a_warning() {
    let python = root().join(".venv/bin/python");
    if !python.exists() {
        tilewright_testing::skip("needs Yosys in .venv; run `make setup`");
        return;
    }
    for (preset, _) in PRESETS {
        let dir = tempfile::tempdir().unwrap();
        let files = write_design(preset, dir.path());
        let mut yosys = Command::new(&python);
        yosys.arg(root().join("scripts/yosys_elaborate.py")).arg(TOP).args(&files);
        if let Some(text) = complaint(&mut yosys) {
            let tail: Vec<&str> = text.lines().rev().take(30).collect();
            panic!("{preset}:\n{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
    }
}
