//! Compares the functional simulator and the cycle model with the Verilated design, on random programs and on planted
//! faults. The cycle model must give exactly the same cycles, counters and traps.
//!
//! Environment variables:
//!
//! | variable | meaning |
//! |---|---|
//! | `TILEWRIGHT_FUZZ_PROGRAMS` | number of programs (2,000) |
//! | `TILEWRIGHT_FUZZ_SEED` | first seed of the programs |
//! | `TILEWRIGHT_FUZZ_CONFIGS` | number of configurations (8) |
//! | `TILEWRIGHT_FUZZ_CONFIG_SEED` | seed of the configurations |
//! | `TILEWRIGHT_FUZZ_ONLY` | index of the only configuration to run |
//! | `TILEWRIGHT_FUZZ_HW` | preset or file to use instead of every configuration |
//! | `TILEWRIGHT_FUZZ_LARGE` | 1 adds two large configurations, which take minutes to build |
//!
//! A failing program is shrunk and printed with its seed, and kept with its configuration and memory in cargo's folder
//! for tests.

mod compare;

use compare::{Devices, compare, compare_fault, compare_limits, compare_loose, compare_recovered, compare_series};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tilewright_hw::HwConfig;
use tilewright_sim::random::{
    Coverage, FaultKind, MEMORY_BYTES, Program, generate, loosen, make_serial, plant, sample_config_with, sample_dram,
    shrink,
};

/// Default number of configurations, and the fewest for which coverage is checked.
const CONFIGS: u64 = 8;
/// Number of additional large configurations, if requested.
const LARGE: u64 = 2;
/// Planted faults of each kind, over all configurations.
const FAULTS: usize = 24;
/// One of this many programs is also compared without some of its tokens.
const LOOSENED: u64 = 4;
/// Time limit for shrinking a failing program.
const SHRINK_TIME: Duration = Duration::from_secs(20);

fn number(name: &str, default: u64) -> u64 {
    tilewright_testing::asked(name).unwrap_or(default)
}

/// Results of one configuration.
struct Outcome {
    coverage: Coverage,
    faults: BTreeMap<FaultKind, usize>,
    /// Number of programs without some of their tokens that did not collide, and that did.
    loose: [usize; 2],
    failures: Vec<String>,
}

impl Outcome {
    /// Compares a program without some of its tokens.
    fn loosened(&mut self, devices: &mut Devices, (config_seed, told): (u64, &str), program: &Program) {
        let loose = loosen(program, program.seed);
        match compare_loose(devices, &loose) {
            Ok(collides) => self.loose[usize::from(collides)] += 1,
            Err(why) => {
                let told = format!("configuration {config_seed}, {told}, fewer tokens: {why}");
                println!("seed {:#x}, {told}", program.seed);
                self.failures.push(keep("loose", config_seed, &told, &loose));
            }
        }
    }
}

/// Fixes parameters of the configuration with this index, so that each run covers them.
fn fix(index: u64, config: &mut HwConfig) {
    config.mul_stages = (index % 4) as u32;
    config.wgt_zp |= config.mul_stages > 1;
    config.lean |= index > 5;
    match index {
        1 => config.bus_bits = 512,
        2 => (config.batch, config.dma_pack) = (4, true),
        3 => (config.batch, config.dma_pack, config.bus_bits) = (2, true, 16),
        4 => (config.block_in, config.block_out) = (16, 4),
        5 => make_serial(config),
        6 => config.bus_bits = 128,
        7 => config.bus_bits = 256,
        _ => {}
    }
}

/// Fixes parameters of the large configurations.
fn fix_large(index: u64, config: &mut HwConfig) {
    match index {
        0 => (config.batch, config.block_in, config.block_out) = (1, 32, 32),
        _ => (config.batch, config.block_in, config.block_out, config.bus_bits) = (1, 64, 32, 512),
    }
}

/// Keeps a failing program in a folder named by the comparison: its text with the error, its configuration, and memory
/// before the run, including the stream. Returns the folder and the program's text.
fn keep(compared: &str, config_seed: u64, told: &str, program: &Program) -> String {
    let name = format!("fuzz-{compared}-{config_seed}-{:#x}", program.seed);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut memory = program.image.clone();
    memory.resize(MEMORY_BYTES as usize, 0);
    for (byte, at) in program.stream.iter().zip(program.stream_addr as usize..MEMORY_BYTES as usize) {
        memory[at] = *byte;
    }
    let command = format!("stream at {:#x}, bases {:?}", program.stream_addr, program.bases);
    let text: String = format!("{told}\n{command}").lines().map(|line| format!("# {line}\n")).collect();
    let files = [
        ("program.tw", (text + &program.text()).into_bytes()),
        ("hw.toml", program.config.to_toml().into_bytes()),
        ("memory.bin", memory),
    ];
    let kept = std::fs::create_dir_all(&folder)
        .and_then(|()| files.iter().try_for_each(|(name, bytes)| std::fs::write(folder.join(name), bytes)));
    let place = match kept {
        Ok(()) => format!("kept in {}", folder.display()),
        Err(e) => format!("cannot be kept in {}: {e}", folder.display()),
    };
    format!("{told}\n{place}\n{}", program.text())
}

/// Shrinks a failing correct program and keeps it. `told` is the error, and `compare` returns what is wrong with a
/// program.
fn shrink_and_keep(
    compared: &str,
    config_seed: u64,
    told: &str,
    program: &Program,
    mut compare: impl FnMut(&Program) -> Option<String>,
) -> String {
    // A hanging program takes its whole limit each time.
    let deadline = Instant::now() + SHRINK_TIME;
    let small = shrink(program, |p| Instant::now() < deadline && compare(p).is_some());
    let now = compare(&small).unwrap_or_default();
    keep(compared, config_seed, &format!("{told}\nshrunk: {now}"), &small)
}

/// Runs `programs` programs on configuration `index`. Indices from `configs` on are the large configurations.
fn exercise(index: u64, configs: u64, programs: u64) -> Outcome {
    let seed = number("TILEWRIGHT_FUZZ_SEED", 1);
    let config_seed = number("TILEWRIGHT_FUZZ_CONFIG_SEED", 1) * 1000 + index;
    let mut rng = SmallRng::seed_from_u64(config_seed);
    let sampled = sample_config_with(&mut rng, |config| match index.checked_sub(configs) {
        Some(large) => fix_large(large, config),
        None => fix(index, config),
    });
    let config = match std::env::var("TILEWRIGHT_FUZZ_HW") {
        Ok(named) => HwConfig::load(&named).expect("a preset or a file"),
        Err(_) => sampled,
    };
    let begin = Instant::now();
    let mut outcome =
        Outcome { coverage: Coverage::new(), faults: BTreeMap::new(), loose: [0; 2], failures: Vec::new() };
    // Change the memory's timing every few programs.
    let parts = 5;
    let mut number_of = 0;
    for part in 0..parts {
        let dram = sample_dram(&mut rng);
        let mut devices = Devices::new(&config, dram);
        if part == 0 {
            println!(
                "configuration {config_seed}: {} x {} x {}, bus {}, ready after {:.1} s",
                config.batch,
                config.block_in,
                config.block_out,
                config.bus_bits,
                begin.elapsed().as_secs_f64()
            );
        }
        for _ in 0..programs.div_ceil(parts) {
            let program_seed = seed.wrapping_mul(1 << 32) + (index << 24) + number_of;
            number_of += 1;
            let program = generate(&config, program_seed, 5 + (program_seed % 40) as usize);
            if let Some(why) = compare(&mut devices, &program) {
                println!("configuration {config_seed}, seed {program_seed:#x}: {why}");
                let told = format!("configuration {config_seed}, {dram:?}: {why}");
                outcome
                    .failures
                    .push(shrink_and_keep("program", config_seed, &told, &program, |p| compare(&mut devices, p)));
                if outcome.failures.len() > 3 {
                    return outcome;
                }
            }
            outcome.coverage.add(&program);
            if number_of % LOOSENED == 0 {
                outcome.loosened(&mut devices, (config_seed, &format!("{dram:?}")), &program);
            }
        }
        for attempt in 0..2 {
            let limit_seed = seed.wrapping_mul(1 << 32) + (index << 24) + (part << 16) + attempt;
            let program = generate(&config, limit_seed, 8);
            if let Some(why) = compare_limits(&mut devices, &program) {
                println!("configuration {config_seed}, seed {limit_seed:#x}, limits: {why}");
                let told = format!("configuration {config_seed}, {dram:?}, limits: {why}");
                outcome
                    .failures
                    .push(shrink_and_keep("limits", config_seed, &told, &program, |p| compare_limits(&mut devices, p)));
            }
        }
        let series_seed = seed.wrapping_mul(1 << 32) + (index << 24) + part;
        if let Some(why) = compare_series(&mut devices, &config, series_seed) {
            outcome.failures.push(format!("configuration {config_seed}, {dram:?}, seed {series_seed:#x}: {why}"));
        }
        let each = FAULTS.div_ceil((CONFIGS * parts) as usize).max(1);
        for kind in FaultKind::ALL {
            let mut planted = 0;
            for attempt in 0..40 {
                let fault_seed = seed.wrapping_mul(1 << 32) + (index << 24) + (part << 16) + attempt;
                let Some(fault) = plant(&config, *kind, fault_seed) else { continue };
                planted += 1;
                *outcome.faults.entry(*kind).or_default() += 1;
                let why = compare_fault(&mut devices, &fault);
                if kind.may_be_loosened() {
                    let told = format!("{dram:?}, {kind:?}");
                    outcome.loosened(&mut devices, (config_seed, &told), &fault.program);
                }
                let recovered = || compare_recovered(&mut devices, fault_seed);
                if let Some(why) = why.or_else(recovered) {
                    println!("configuration {config_seed}, seed {fault_seed:#x}, {kind:?}: {why}");
                    let told = format!(
                        "configuration {config_seed}, {dram:?}, {kind:?}, expected {:?}: {why}",
                        fault.expected
                    );
                    outcome.failures.push(keep("fault", config_seed, &told, &fault.program));
                }
                if planted == each {
                    break;
                }
            }
        }
    }
    outcome
}

#[test]
fn random_programs_give_the_same_on_every_device() {
    if !tilewright_testing::has_program("verilator") {
        return;
    }
    let programs = number("TILEWRIGHT_FUZZ_PROGRAMS", 2000);
    let only = tilewright_testing::asked("TILEWRIGHT_FUZZ_ONLY");
    let sampled = number("TILEWRIGHT_FUZZ_CONFIGS", CONFIGS);
    assert!((1..=900).contains(&sampled), "TILEWRIGHT_FUZZ_CONFIGS is {sampled}; it takes 1 to 900");
    let configs = sampled + if number("TILEWRIGHT_FUZZ_LARGE", 0) > 0 { LARGE } else { 0 };
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(2, |n| n.get().min(4));
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed) as u64;
                    if index >= configs {
                        return;
                    }
                    if only.is_some_and(|only| only != index) {
                        continue;
                    }
                    let outcome = exercise(index, sampled, programs.div_ceil(configs));
                    outcomes.lock().expect("no worker panicked").push(outcome);
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().expect("no worker panicked");
    let mut coverage = Coverage::new();
    let mut faults: BTreeMap<FaultKind, usize> = BTreeMap::new();
    let mut loose = [0; 2];
    let mut failures = Vec::new();
    for outcome in outcomes {
        loose.iter_mut().zip(outcome.loose).for_each(|(all, n)| *all += n);
        coverage.merge(&outcome.coverage);
        for (kind, n) in outcome.faults {
            *faults.entry(kind).or_default() += n;
        }
        failures.extend(outcome.failures);
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!("{programs} programs, {configs} configurations, {} threads: {seconds:.1} s; {coverage}", workers);
    println!("planted faults: {faults:?}");
    println!("without some tokens: {} programs collide, {} do not", loose[1], loose[0]);
    for failure in failures.iter().take(8) {
        println!("{failure}\n");
    }
    assert!(failures.is_empty(), "{} programs differ", failures.len());
    if programs >= 2000 && sampled >= CONFIGS && only.is_none() {
        assert!(coverage.missing(20).is_empty(), "seen too rarely: {:?}", coverage.missing(20));
        let (all, overlapping) = coverage.programs();
        assert!(overlapping * 2 > all, "units run side by side in too few programs");
        assert!(loose.iter().all(|n| *n >= 100), "without some tokens: {loose:?}");
    }
    for kind in FaultKind::ALL.iter().filter(|_| sampled >= CONFIGS && only.is_none()) {
        assert!(faults.get(kind).copied().unwrap_or(0) >= 20, "{kind:?}: {faults:?}");
    }
}
