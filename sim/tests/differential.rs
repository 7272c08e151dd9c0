//! The functional simulator and the cycle model against the Verilated design, on random programs and on planted faults.
//! The cycle model gives the same cycles, counters and traps, without tolerance.
//!
//! `TILEWRIGHT_FUZZ_PROGRAMS` sets the number of programs (2,000), `TILEWRIGHT_FUZZ_SEED` where they begin,
//! `TILEWRIGHT_FUZZ_CONFIGS` the seed of the eight configurations, `TILEWRIGHT_FUZZ_ONLY` one of them. With
//! `TILEWRIGHT_FUZZ_LARGE=1` two large configurations, which take minutes to build, come as numbers 8 and 9. A failing
//! program is printed shrunk, with its seed.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tilewright_hw::device::{Device, DeviceError, RunReport, Span};
use tilewright_hw::isa::{Op, Unit};
use tilewright_hw::regs::{TrapCause, TrapUnit};
use tilewright_hw::{HwConfig, Mem};
use tilewright_sim::random::{
    Coverage, Expected, FaultKind, MEMORY_BYTES, Planted, Program, generate, plant, sample_config_with, sample_dram,
    shrink,
};
use tilewright_sim::{Csim, CsimOptions, Fsim, Rtl, RtlOptions};

const CONFIGS: u64 = 8;
/// Configurations more where large ones are asked for.
const LARGE: u64 = 2;
/// Planted faults of each kind in all configurations together.
const FAULTS: usize = 24;
/// How long a failing program is made smaller.
const SHRINK_TIME: Duration = Duration::from_secs(20);

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.trim().parse().ok()).unwrap_or(default)
}

/// Runs a program on a device whose memory holds nothing else.
fn run(device: &mut dyn Device, program: &Program) -> Result<RunReport, DeviceError> {
    program.install(device)?;
    device.run(&program.command())
}

/// What differs between the two devices on a correct program.
fn compare(fsim: &mut Fsim, csim: &mut Csim, rtl: &mut Rtl, program: &Program) -> Option<String> {
    let expected = match run(fsim, program) {
        Ok(report) if report.trap.is_none() => report,
        other => return Some(format!("the functional simulator does not run it: {other:?}")),
    };
    let found = match run(rtl, program) {
        Ok(report) => report,
        Err(e) => return Some(e.to_string()),
    };
    if found.trap.is_some() || found.retired != expected.retired {
        return Some(format!("retired {:?}, expected {:?}; trap {:?}", found.retired, expected.retired, found.trap));
    }
    if found.macs != expected.macs {
        return Some(format!("{} multiply-accumulates, expected {}", found.macs, expected.macs));
    }
    if let Some(counters) = found.counters
        && program.config.counters == tilewright_hw::config::Counters::Causes
    {
        for (unit, states) in counters.0.iter().enumerate() {
            let sum: u64 = states.iter().sum();
            if Some(sum) != found.cycles {
                return Some(format!("unit {unit} counted {sum} cycles of {:?}: {states:?}", found.cycles));
            }
        }
    }
    match run(csim, program) {
        Ok(modelled) => {
            if let Some(why) = compare_time(&modelled, &found).or_else(|| compare_spans(&modelled.spans, &found.spans))
            {
                return Some(why);
            }
        }
        Err(e) => return Some(format!("the cycle model: {e}")),
    }
    if let Some(d) = difference(fsim.memory(), csim.memory(), |_| true) {
        return Some(format!("the cycle model: {d}"));
    }
    for mem in Mem::ALL {
        let entries = program.config.entries(mem);
        let expected = fsim.scratchpad(mem, 0, entries).expect("in range");
        let found = rtl.scratchpad(mem, 0, entries).expect("in range");
        // What no instruction wrote differs between a simulator and a chip.
        if let Some(d) = difference(&expected, &found, |_| program.fills(mem)) {
            return Some(format!("{}: {d}", mem.name()));
        }
    }
    difference(fsim.memory(), rtl.memory(), |_| true)
}

/// The first instruction that started or retired in another cycle.
fn compare_spans(modelled: &[Span], found: &[Span]) -> Option<String> {
    if modelled.len() != found.len() {
        return Some(format!("the cycle model started {} instructions, the design {}", modelled.len(), found.len()));
    }
    let (a, b) = modelled.iter().zip(found).find(|(a, b)| a != b)?;
    Some(format!("the cycle model has {a:?}, the design {b:?}"))
}

/// What differs between the cycle model's account of a run and the design's.
fn compare_time(modelled: &RunReport, found: &RunReport) -> Option<String> {
    if modelled.cycles != found.cycles || modelled.trap != found.trap {
        let of = |r: &RunReport| format!("{:?} cycles, trap {:?}", r.cycles, r.trap);
        return Some(format!("the cycle model has {}, the design {}", of(modelled), of(found)));
    }
    if modelled.retired != found.retired {
        return Some(format!("the cycle model retired {:?}, the design {:?}", modelled.retired, found.retired));
    }
    if found.trap.is_some() {
        return None;
    }
    if (modelled.macs, modelled.bytes) != (found.macs, found.bytes) {
        let of = |r: &RunReport| format!("{} multiply-accumulates, bytes {:?}", r.macs, r.bytes);
        return Some(format!("the cycle model has {}, the design {}", of(modelled), of(found)));
    }
    if modelled.counters != found.counters {
        let units = TrapUnit::ALL.iter().enumerate().filter_map(|(i, unit)| {
            let (a, b) = (modelled.counters?.0[i], found.counters?.0[i]);
            (a != b).then(|| format!("{}: the cycle model counted {a:?}, the design {b:?}", unit.name()))
        });
        return Some(units.collect::<Vec<_>>().join("; "));
    }
    None
}

fn difference(expected: &[u8], found: &[u8], counts: impl Fn(usize) -> bool) -> Option<String> {
    let first = (0..expected.len()).find(|&i| expected[i] != found[i] && counts(i))?;
    Some(format!("memory at {first:#x} is {:#04x}, expected {:#04x}", found[first], expected[first]))
}

/// What differs from the trap that was planted.
fn compare_fault(fsim: &mut Fsim, csim: &mut Csim, rtl: &mut Rtl, planted: &Planted) -> Option<String> {
    let expected = Some(planted.expected);
    let of = |report: RunReport| report.trap.map(|t| Expected { unit: t.unit, cause: t.cause, ordinal: t.ordinal });
    if planted.kind.is_functional() {
        match run(fsim, &planted.program) {
            Ok(report) if of(report.clone()) == expected => {
                if let Some(why) = compare_work(&report, planted) {
                    return Some(format!("the functional simulator: {why}"));
                }
            }
            other => return Some(format!("the functional simulator ends with {other:?}, expected {expected:?}")),
        }
    }
    if let Err(e) = planted.program.install(rtl) {
        return Some(e.to_string());
    }
    let before = rtl.memory().to_vec();
    match rtl.run(&planted.program.command()) {
        Ok(report) if of(report.clone()) == expected => {
            if let Some(why) = compare_work(&report, planted) {
                return Some(why);
            }
            match run(csim, &planted.program) {
                Ok(modelled) => {
                    let why = compare_time(&modelled, &report);
                    if let Some(why) = why.or_else(|| compare_spans(&modelled.spans, &report.spans)) {
                        return Some(why);
                    }
                }
                Err(e) => return Some(format!("the cycle model: {e}")),
            }
        }
        Ok(report) => return Some(format!("ends with {:?}, expected {expected:?}", report.trap)),
        Err(e) => return Some(e.to_string()),
    }
    let stored = planted.program.stored();
    difference(&before, rtl.memory(), |i| !stored[i]).map(|d| format!("{d}, where nothing is stored"))
}

/// What is wrong with the work that a report counts before a trap.
fn compare_work(report: &RunReport, planted: &Planted) -> Option<String> {
    let Expected { unit, cause, ordinal } = planted.expected;
    let in_order = report.cycles.is_none();
    let insns = &planted.program.insns;
    let mut due: Vec<RangeInclusive<u32>> = Vec::new();
    for other in Unit::ALL {
        let all = insns.iter().filter(|insn| insn.unit() == other).count() as u32;
        due.push(if unit == TrapUnit::from(other) {
            match cause {
                TrapCause::Token => ordinal + 1..=ordinal + 1,
                TrapCause::Deadlock => ordinal..=ordinal,
                _ if in_order => ordinal..=ordinal,
                // Those before may be under way when the next one fails a check.
                _ => 0..=ordinal,
            }
        } else if unit == TrapUnit::Fetch {
            let before = insns[..ordinal as usize].iter().filter(|insn| insn.unit() == other).count() as u32;
            if in_order { before..=before } else { 0..=before }
        } else {
            0..=all
        });
    }
    if let Some(unit) =
        Unit::ALL.into_iter().find(|unit| !due[*unit as usize].contains(&report.retired[*unit as usize]))
    {
        let (found, due) = (report.retired[unit as usize], &due[unit as usize]);
        return Some(format!("retired {found} of {}, expected {due:?}", unit.name()));
    }
    let products = insns.iter().filter_map(|insn| match insn.op {
        Op::Gemm(x) => Some([x.uops, x.count0, x.count1, x.count2].map(u64::from).iter().product::<u64>()),
        _ => None,
    });
    let micro_ops: u64 = products.take(report.retired[Unit::Gemm as usize] as usize).sum();
    let macs = micro_ops * planted.program.config.macs_per_cycle();
    (report.macs != macs).then(|| format!("{} multiply-accumulates, the retired instructions have {macs}", report.macs))
}

/// What one configuration showed.
struct Outcome {
    coverage: Coverage,
    faults: BTreeMap<FaultKind, usize>,
    failures: Vec<String>,
}

/// What a configuration of this number must have, so that each run sees it whatever the others are.
fn fix(index: u64, config: &mut HwConfig) {
    match index {
        1 => config.bus_bits = 512,
        2 => (config.batch, config.dma_pack) = (4, true),
        3 => (config.batch, config.dma_pack, config.bus_bits) = (2, true, 16),
        4 => (config.block_in, config.block_out) = (16, 4),
        6 => config.bus_bits = 128,
        7 => config.bus_bits = 256,
        8 => (config.batch, config.block_in, config.block_out) = (1, 32, 32),
        9 => (config.batch, config.block_in, config.block_out, config.bus_bits) = (1, 64, 32, 512),
        _ => {}
    }
}

fn exercise(index: u64, programs: u64) -> Outcome {
    let seed = number("TILEWRIGHT_FUZZ_SEED", 1);
    let config_seed = number("TILEWRIGHT_FUZZ_CONFIGS", 1) * 1000 + index;
    let mut rng = SmallRng::seed_from_u64(config_seed);
    let config: HwConfig = sample_config_with(&mut rng, |config| fix(index, config));
    let begin = Instant::now();
    let mut outcome = Outcome { coverage: Coverage::new(), faults: BTreeMap::new(), failures: Vec::new() };
    let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
    // Every few programs the memory's timing changes.
    let parts = 5;
    let mut number_of = 0;
    for part in 0..parts {
        let dram = sample_dram(&mut rng);
        let options = RtlOptions { dram: Some(dram), assertions: true, spans: true, ..RtlOptions::default() };
        let mut rtl = Rtl::new(config.clone(), MEMORY_BYTES, &options).expect("the design builds");
        let timed = CsimOptions { dram: Some(dram), spans: true, ..CsimOptions::default() };
        let mut csim = Csim::new(config.clone(), MEMORY_BYTES, timed);
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
            if let Some(why) = compare(&mut fsim, &mut csim, &mut rtl, &program) {
                println!("configuration {config_seed}, seed {program_seed:#x}: {why}");
                // A hanging program takes its whole limit each time.
                let deadline = Instant::now() + SHRINK_TIME;
                let small = shrink(&program, |p| {
                    Instant::now() < deadline && compare(&mut fsim, &mut csim, &mut rtl, p).is_some()
                });
                let now = compare(&mut fsim, &mut csim, &mut rtl, &small).unwrap_or_default();
                outcome
                    .failures
                    .push(format!("configuration {config_seed}, {dram:?}: {why}\nshrunk: {now}\n{}", small.text()));
                if outcome.failures.len() > 3 {
                    return outcome;
                }
            }
            outcome.coverage.add(&program);
        }
        let each = FAULTS.div_ceil((CONFIGS * parts) as usize).max(1);
        for kind in FaultKind::ALL {
            let mut planted = 0;
            for attempt in 0..40 {
                let fault_seed = seed.wrapping_mul(1 << 32) + (index << 24) + (part << 16) + attempt;
                let Some(fault) = plant(&config, *kind, fault_seed) else { continue };
                planted += 1;
                *outcome.faults.entry(*kind).or_default() += 1;
                if let Some(why) = compare_fault(&mut fsim, &mut csim, &mut rtl, &fault) {
                    println!("configuration {config_seed}, seed {fault_seed:#x}, {kind:?}: {why}");
                    outcome.failures.push(format!(
                        "configuration {config_seed}, {dram:?}, {kind:?}, expected {:?}: {why}\n{}",
                        fault.expected,
                        fault.program.text()
                    ));
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
fn random_programs_give_the_same_on_fsim_and_rtl() {
    if !tilewright_testing::has_program("verilator") {
        return;
    }
    let programs = number("TILEWRIGHT_FUZZ_PROGRAMS", 2000);
    let only = std::env::var("TILEWRIGHT_FUZZ_ONLY").ok().and_then(|v| v.trim().parse::<u64>().ok());
    let configs = CONFIGS + if number("TILEWRIGHT_FUZZ_LARGE", 0) > 0 { LARGE } else { 0 };
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
                    let outcome = exercise(index, programs.div_ceil(configs));
                    outcomes.lock().expect("no worker panicked").push(outcome);
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().expect("no worker panicked");
    let mut coverage = Coverage::new();
    let mut faults: BTreeMap<FaultKind, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    for outcome in outcomes {
        coverage.merge(&outcome.coverage);
        for (kind, n) in outcome.faults {
            *faults.entry(kind).or_default() += n;
        }
        failures.extend(outcome.failures);
    }
    println!("{:.1} s; {coverage}", begin.elapsed().as_secs_f64());
    println!("planted faults: {faults:?}");
    for failure in failures.iter().take(8) {
        println!("{failure}\n");
    }
    assert!(failures.is_empty(), "{} programs differ", failures.len());
    if programs >= 2000 && only.is_none() {
        assert!(coverage.missing(20).is_empty(), "seen too rarely: {:?}", coverage.missing(20));
        let (all, overlapping) = coverage.programs();
        assert!(overlapping * 2 > all, "units run side by side in too few programs");
    }
    for kind in FaultKind::ALL.iter().filter(|_| only.is_none()) {
        assert!(faults.get(kind).copied().unwrap_or(0) >= 20, "{kind:?}: {faults:?}");
    }
}
