//! Checks that every configuration file is either rejected with the field and the remedy, or works for everything: its
//! package, its instructions, and programs that run.

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use tilewright_hw::config::{ConfigError, HwConfig, PARAMS, PRESETS, Param};
use tilewright_hw::device::{Command, Device};
use tilewright_hw::isa::{config_package, decode, encode};
use tilewright_sim::random::{MEMORY_BYTES, generate, sample_config};
use tilewright_sim::{Csim, CsimOptions, Fsim};

/// Values that a person could write, on purpose or by accident.
const VALUES: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "7",
    "8",
    "16",
    "31",
    "32",
    "33",
    "64",
    "100",
    "128",
    "256",
    "512",
    "1024",
    "2048",
    "4096",
    "65536",
    "1048576",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-1",
    "-9223372036854775808",
    "0.5",
    "1e300",
    "nan",
    "inf",
    "true",
    "false",
    "\"\"",
    "\"causes\"",
    "\"busy\"",
    "\"16\"",
    "\"a \\u0000\\n*/ endpackage\"",
    "[]",
    "[1, 2]",
    "{}",
    "{ latency = 3 }",
    "1979-05-27",
];

/// Changes, removes, duplicates or corrupts a line.
fn mutate(lines: &mut Vec<String>, rng: &mut SmallRng) {
    let values: Vec<usize> = (0..lines.len()).filter(|&at| lines[at].contains('=')).collect();
    let Some(&at) = values.choose(rng) else { return };
    let key = lines[at].split('=').next().unwrap_or("").trim().to_string();
    let value = VALUES.choose(rng).expect("some");
    match rng.random_range(0..12) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at].clone()),
        2 => {
            let other = PARAMS.choose(rng).map_or("", |p| p.key);
            lines.retain(|line| line.split('=').next().map(str::trim) != Some(other));
            lines.insert(0, format!("{other} = {value}"));
        }
        3 => lines[at] = format!("{}{key} = {value}", ["x", "_", "bus_", "dram."].choose(rng).expect("some")),
        4 => {
            let to = rng.random_range(0..lines.len());
            lines.swap(at, to);
        }
        5 => {
            let mut bytes = lines[at].clone().into_bytes();
            if !bytes.is_empty() {
                let place = rng.random_range(0..bytes.len());
                bytes[place] = rng.random_range(b' '..=b'~');
            }
            lines[at] = String::from_utf8(bytes).unwrap_or_default();
        }
        6..8 => {
            // Double, half, one more, one less, or negative.
            let number = lines[at].split('=').nth(1).and_then(|v| v.trim().parse::<i64>().ok());
            let way = rng.random_range(0..5usize);
            let near = |n: i64| [n.wrapping_mul(2), n / 2, n.wrapping_add(1), n.wrapping_sub(1), n.wrapping_neg()][way];
            lines[at] = format!("{key} = {}", number.map_or_else(|| (*value).to_string(), |n| near(n).to_string()));
        }
        _ => lines[at] = format!("{key} = {value}"),
    }
}

/// Returns whether a key names a parameter, a table or one of its fields, or occurs in the text.
fn is_of_the_file(key: &str, text: &str) -> bool {
    let known = |p: &Param| p.key == key;
    PARAMS.iter().any(known) || key.starts_with("host.") || key.starts_with("dram.") || text.contains(key)
}

#[test]
fn a_file_is_refused_by_field_and_remedy_or_everything_can_be_built_for_it() {
    let mut rng = SmallRng::seed_from_u64(21);
    let (mut legal, mut illegal, mut broken, mut ran) = (0, 0, 0, 0);
    for round in 0..24_000u64 {
        let text = match round % 3 {
            0 => PRESETS.choose(&mut rng).expect("some").1.to_string(),
            1 => sample_config(&mut rng).to_toml(),
            _ => HwConfig::default().to_toml(),
        };
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        for _ in 0..rng.random_range(1..=2) {
            mutate(&mut lines, &mut rng);
        }
        let text = lines.join("\n");
        match HwConfig::parse("f.toml", &text) {
            Ok(config) => {
                legal += 1;
                assert_eq!(config.violations(), [], "{text}");
                assert_eq!(HwConfig::parse("again", &config.to_toml()).expect(&text), config);
                let package = config_package(&config);
                for p in PARAMS {
                    assert!(package.contains(p.sv), "{} is not in the package of\n{text}", p.sv);
                }
                let hash = format!("{:016x}", config.hash());
                assert!(package.to_lowercase().replace('_', "").contains(&hash), "{hash}\n{package}");
                ran += u32::from(runs(&config, round, &text));
            }
            Err(ConfigError::Illegal { violations, .. }) => {
                illegal += 1;
                assert!(!violations.is_empty(), "{text}");
                for v in violations {
                    assert!(
                        !v.what.is_empty() && !v.remedy.is_empty() && is_of_the_file(&v.key, &text),
                        "{v:?}\n{text}"
                    );
                }
            }
            Err(ConfigError::Syntax { reason, .. }) => {
                broken += 1;
                assert!(reason.contains("line "), "{reason}\n{text}");
            }
            Err(other) => panic!("{other}\n{text}"),
        }
    }
    println!("{legal} legal, {ran} of them run; {illegal} illegal, {broken} no TOML");
    assert!(legal > 3000 && illegal > 6000 && broken > 500 && ran > 1000, "{legal} {illegal} {broken} {ran}");
}

/// Returns whether the configuration is small enough to try. If so, checks that programs for it can be encoded and give
/// the same results on both simulators.
fn runs(config: &HwConfig, seed: u64, text: &str) -> bool {
    let small = config.inp_depth.max(config.acc_depth).max(config.out_depth).max(config.wgt_depth) <= 64;
    if !small || config.memory_bytes() < MEMORY_BYTES {
        return false;
    }
    let program = generate(config, seed, 4);
    for insn in &program.insns {
        let bits = encode(insn, config).expect(text);
        assert_eq!(decode(&bits, config).expect(text), *insn, "{text}");
    }
    let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
    let mut csim = Csim::new(config.clone(), MEMORY_BYTES, CsimOptions::default());
    let reports = [&mut fsim as &mut dyn Device, &mut csim].map(|device| {
        program.install(device).expect("inside memory");
        // No limit, because the file can make memory very slow.
        device.run(&Command { cycle_limit: None, ..program.command() }).expect(text)
    });
    assert!(reports.iter().all(|r| r.trap.is_none()), "{reports:?}\n{text}");
    assert!(fsim.memory() == csim.memory(), "{text}");
    true
}
