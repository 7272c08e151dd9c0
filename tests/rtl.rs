//! Checks the RTL of every preset, and of random legal configurations, with the two tools that must accept it:
//! Verilator's lint with all warnings, and Yosys.

use std::path::{Path, PathBuf};
use std::process::Command;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tilewright_hw::config::{HwConfig, Legal, PARAMS, PRESETS, Param};
use tilewright_hw::isa::config_package;
use tilewright_hw::rtl::{PERIPHERAL, SOURCES};
use tilewright_sim::random::sample_config;

/// Writes the design of a configuration, and returns its files, packages first.
fn write_design(config: &HwConfig, dir: &Path) -> Vec<PathBuf> {
    let package = dir.join("tw_cfg_pkg.sv");
    std::fs::write(&package, config_package(config)).expect("the folder can be written");
    let mut files = vec![package];
    for (name, text) in SOURCES {
        // All in one folder, so that headers are found.
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

/// Runs a command, and returns its output if it failed or warned.
fn complaint(command: &mut Command) -> Option<String> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; run `make setup`"));
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // Yosys prints the number of warnings in its last line, even if there are none.
    let warned = text.lines().any(|line| line.to_lowercase().contains("warning") && !line.contains("0 warnings"));
    (!output.status.success() || warned).then_some(text)
}

/// Returns the complaints of Verilator's lint, with all warnings, about a configuration's design.
fn verilator_complaint(config: &HwConfig) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let files = write_design(config, dir.path());
    let mut verilator = Command::new("verilator");
    verilator
        .args(["--lint-only", "-Wall", "--assert", "--top-module", PERIPHERAL])
        .arg(format!("-I{}", dir.path().display()));
    verilator.arg(root().join("hw/rtl/waivers.vlt")).args(&files);
    complaint(&mut verilator)
}

/// The Python of `.venv`, which has Yosys. Without it, the calling test is skipped.
fn yosys() -> Option<PathBuf> {
    let python = root().join(".venv/bin/python");
    if !python.exists() {
        tilewright_testing::skip("needs Yosys in .venv; run `make setup`");
        return None;
    }
    Some(python)
}

/// Returns the complaints of Yosys about a configuration's design.
fn yosys_complaint(python: &Path, config: &HwConfig) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let files = write_design(config, dir.path());
    let mut yosys = Command::new(python);
    yosys.arg(root().join("scripts/yosys_elaborate.py")).arg(PERIPHERAL).args(&files);
    let text = complaint(&mut yosys)?;
    let lines: Vec<&str> = text.lines().collect();
    // The warnings, wherever they are, and the end, where it stopped.
    let (before, end) = lines.split_at(lines.len().saturating_sub(30));
    let warnings = before.iter().filter(|line| line.to_lowercase().contains("warning"));
    Some(warnings.chain(end).copied().collect::<Vec<_>>().join("\n"))
}

#[test]
fn verilator_lints_every_preset_without_a_warning() {
    for (preset, _) in PRESETS {
        let config = HwConfig::load(preset).expect("presets load");
        if let Some(text) = verilator_complaint(&config) {
            panic!("{preset}:\n{text}");
        }
    }
}

/// The presets with at most this many multiply-accumulates per cycle.
fn yosys_elaborates(most: u64) {
    let Some(python) = yosys() else { return };
    for (preset, _) in PRESETS {
        let config = HwConfig::load(preset).expect("presets load");
        if config.macs_per_cycle() > most {
            continue;
        }
        if let Some(text) = yosys_complaint(&python, &config) {
            panic!("{preset}:\n{text}");
        }
    }
}

#[test]
fn yosys_elaborates_small_presets_without_a_warning() {
    yosys_elaborates(128);
}

#[test]
#[ignore = "a minute; make test-full and make lint-rtl run it"]
fn yosys_elaborates_every_preset_without_a_warning() {
    yosys_elaborates(u64::MAX);
}

/// A parameter's value in the form of the configuration file.
fn written(param: &Param, raw: u64) -> String {
    match param.legal {
        Legal::Flag => (raw != 0).to_string(),
        Legal::Words(words) => format!("{:?}", words[raw as usize]),
        Legal::Range(..) | Legal::PowerOfTwo(..) => raw.to_string(),
    }
}

/// A configuration's values by parameter, and the configuration with such values if it is legal.
fn values(config: &HwConfig) -> Vec<u64> {
    PARAMS.iter().map(|param| param.value(config)).collect()
}

fn config_of(values: &[u64]) -> Option<HwConfig> {
    let lines = PARAMS.iter().zip(values).map(|(param, raw)| format!("{} = {}\n", param.key, written(param, *raw)));
    let text = format!("name = \"sampled\"\n{}", lines.collect::<String>());
    HwConfig::parse("sampled.toml", &text).ok()
}

/// A value anywhere in a parameter's legal range.
fn any_value(param: &Param, rng: &mut SmallRng) -> u64 {
    match param.legal {
        Legal::Range(lo, hi) => rng.random_range(lo..=hi),
        Legal::PowerOfTwo(lo, hi) => 1 << rng.random_range(lo.ilog2()..=hi.ilog2()),
        Legal::Flag => rng.random_range(0..=1),
        Legal::Words(words) => rng.random_range(0..words.len() as u64),
    }
}

/// A random legal configuration: a small one, in which parameters that do not make it large get any value of their
/// ranges.
fn any_legal_config(seed: u64) -> HwConfig {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut config = sample_config(&mut rng);
    for _ in 0..24 {
        let at = rng.random_range(0..PARAMS.len());
        // Parameters that increase the time of elaboration stay small.
        if ["batch", "block_", "lanes"].iter().any(|part| PARAMS[at].key.contains(part))
            || PARAMS[at].key.ends_with("_depth")
        {
            continue;
        }
        let mut changed = values(&config);
        changed[at] = any_value(&PARAMS[at], &mut rng);
        if let Some(legal) = config_of(&changed) {
            config = legal;
        }
    }
    config
}

/// Returns the complaints of both tools about a configuration.
fn tools_complaint(python: &Path, config: &HwConfig) -> Option<String> {
    verilator_complaint(config).or_else(|| yosys_complaint(python, config))
}

/// Shrinks a configuration for which a tool complains: returns the values that matter, with all others set to their
/// defaults as far as that is legal.
fn shrunk(python: &Path, config: &HwConfig) -> String {
    let default = values(&HwConfig::default());
    let mut least = values(config);
    for at in 0..PARAMS.len() {
        let mut tried = least.clone();
        tried[at] = default[at];
        if tried != least && config_of(&tried).is_some_and(|config| tools_complaint(python, &config).is_some()) {
            least = tried;
        }
    }
    let kept = PARAMS.iter().zip(&least).zip(&default).filter(|((_, value), default)| value != default);
    kept.map(|((param, value), _)| format!("{} = {}\n", param.key, written(param, *value))).collect()
}

/// `TILEWRIGHT_FUZZ_SEED` sets the first seed.
fn sampled_configurations_elaborate(count: u64) {
    let Some(python) = yosys() else { return };
    let first: u64 = tilewright_testing::asked("TILEWRIGHT_FUZZ_SEED").unwrap_or(1);
    println!("seeds {first} to {}", first + count - 1);
    for seed in first..first + count {
        let config = any_legal_config(seed);
        if let Some(text) = tools_complaint(&python, &config) {
            panic!("seed {seed}:\n{text}\nshrunk to, beside defaults:\n{}", shrunk(&python, &config));
        }
    }
}

#[test]
fn eight_sampled_configurations_elaborate_in_both_tools() {
    sampled_configurations_elaborate(8);
}

#[test]
#[ignore = "long; make test-full runs it"]
fn two_hundred_sampled_configurations_elaborate_in_both_tools() {
    sampled_configurations_elaborate(200);
}
