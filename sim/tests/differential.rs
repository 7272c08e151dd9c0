//! The functional simulator and the cycle model against the Verilated design, on random programs and on planted faults.
//! The cycle model gives the same cycles, counters and traps, without tolerance.
//!
//! `TILEWRIGHT_FUZZ_PROGRAMS` sets the number of programs (2,000), `TILEWRIGHT_FUZZ_SEED` where they begin,
//! `TILEWRIGHT_FUZZ_CONFIGS` the number of configurations (8), `TILEWRIGHT_FUZZ_CONFIG_SEED` their seed,
//! `TILEWRIGHT_FUZZ_ONLY` one of them, `TILEWRIGHT_FUZZ_HW` a preset or a file in the place of each. With
//! `TILEWRIGHT_FUZZ_LARGE=1` two large configurations, which take minutes to build, come behind the others. A failing program
//! is printed shrunk, with its seed, and kept with its configuration and memory in cargo's folder for tests.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tilewright_hw::config::DramSection;
use tilewright_hw::device::{Command, Device, DeviceError, RunReport, Span, Trap};
use tilewright_hw::isa::{Op, Unit};
use tilewright_hw::regs::{TrapCause, TrapUnit, UnitState};
use tilewright_hw::{HwConfig, Mem};
use tilewright_sim::random::{
    Coverage, Expected, FaultKind, MEMORY_BYTES, Member, Planted, Program, generate, loosen, make_serial, plant,
    sample_config_with, sample_dram, series_with_faults, shrink,
};
use tilewright_sim::{Csim, CsimOptions, Fsim, Rtl, RtlOptions};

/// Configurations where no other number is asked for, and with that number the fewest.
const CONFIGS: u64 = 8;
/// Configurations more where large ones are asked for.
const LARGE: u64 = 2;
/// Planted faults of each kind in all configurations together.
const FAULTS: usize = 24;
/// Of so many programs one is compared without some of its tokens, too.
const LOOSENED: u64 = 4;
/// How long a failing program is made smaller.
const SHRINK_TIME: Duration = Duration::from_secs(20);

fn number(name: &str, default: u64) -> u64 {
    tilewright_testing::asked(name).unwrap_or(default)
}

/// Runs a program on a device whose memory holds nothing else.
fn run(device: &mut dyn Device, program: &Program) -> Result<RunReport, DeviceError> {
    program.install(device)?;
    device.run(&program.command())
}

/// What is compared.
struct Devices {
    fsim: Fsim,
    csim: Csim,
    /// Without values.
    times: Csim,
    rtl: Rtl,
    /// How the cycle models are made.
    options: CsimOptions,
}

impl Devices {
    fn new(config: &HwConfig, dram: DramSection) -> Devices {
        let rtl = RtlOptions { dram: Some(dram), assertions: true, spans: true, ..RtlOptions::default() };
        let options = CsimOptions { dram: Some(dram), spans: true, ..CsimOptions::default() };
        let timing_only = CsimOptions { timing_only: true, ..options };
        Devices {
            fsim: Fsim::new(config.clone(), MEMORY_BYTES),
            csim: Csim::new(config.clone(), MEMORY_BYTES, options),
            times: Csim::new(config.clone(), MEMORY_BYTES, timing_only),
            rtl: Rtl::new(config.clone(), MEMORY_BYTES, &rtl).expect("the design builds"),
            options,
        }
    }
}

/// What differs between the devices on a correct program.
fn compare(devices: &mut Devices, program: &Program) -> Option<String> {
    let Devices { fsim, csim, times, rtl, .. } = devices;
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
        if let Some(why) = nobodys_cycles(&found) {
            return Some(why);
        }
    }
    for (model, told) in [(&mut *csim, ""), (times, "without values, ")] {
        match run(model, program) {
            Ok(modelled) => {
                if let Some(why) = compare_reports(&modelled, &found) {
                    return Some(format!("{told}{why}"));
                }
            }
            Err(e) => return Some(format!("{told}the cycle model: {e}")),
        }
    }
    if let Some(d) = difference(fsim.memory(), csim.memory(), |_| true) {
        return Some(format!("the cycle model: {d}"));
    }
    for mem in Mem::ALL {
        let entries = program.config.entries(mem);
        let expected = fsim.scratchpad(mem, 0, entries).expect("in range");
        let modelled = csim.scratchpad(mem, 0, entries).expect("in range");
        if let Some(d) = difference(&expected, &modelled, |_| true) {
            return Some(format!("the cycle model: {}: {d}", mem.name()));
        }
        let found = rtl.scratchpad(mem, 0, entries).expect("in range");
        // What no instruction wrote differs between a simulator and a chip.
        if let Some(d) = difference(&expected, &found, |_| program.fills(mem)) {
            return Some(format!("{}: {d}", mem.name()));
        }
    }
    difference(fsim.memory(), rtl.memory(), |_| true)
}

/// A unit and state whose cycles, but for the empty ones, are not those of the unit's instructions together.
fn nobodys_cycles(report: &RunReport) -> Option<String> {
    for unit in Unit::ALL {
        let spans = || report.spans.iter().filter(|span| span.unit == unit);
        for state in &UnitState::ALL[1..] {
            let shares: u64 = spans().map(|span| span.states[*state as usize]).sum();
            let counted = report.counters?.0[unit as usize][*state as usize];
            if counted != shares {
                let name = unit.name();
                return Some(format!("{name} counted {counted} cycles of {state:?}, its instructions {shares}"));
            }
        }
    }
    None
}

/// The first instruction that started or retired in another cycle, or waited for something else.
fn compare_spans(modelled: &[Span], found: &[Span]) -> Option<String> {
    if modelled.len() != found.len() {
        return Some(format!("the cycle model started {} instructions, the design {}", modelled.len(), found.len()));
    }
    let (a, b) = modelled.iter().zip(found).find(|(a, b)| a != b)?;
    Some(format!("the cycle model has {a:?}, the design {b:?}"))
}

/// What differs between the cycle model's account of a run and the design's, its instructions' included.
fn compare_reports(modelled: &RunReport, found: &RunReport) -> Option<String> {
    compare_time(modelled, found).or_else(|| compare_spans(&modelled.spans, &found.spans))
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
fn compare_fault(devices: &mut Devices, planted: &Planted) -> Option<String> {
    let Devices { fsim, csim, rtl, .. } = devices;
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
    let trap = match rtl.run(&planted.program.command()) {
        Ok(report) if of(report.clone()) == expected => {
            if let Some(why) = compare_work(&report, planted) {
                return Some(why);
            }
            match run(csim, &planted.program) {
                Ok(modelled) => {
                    if let Some(why) = compare_reports(&modelled, &report) {
                        return Some(why);
                    }
                }
                Err(e) => return Some(format!("the cycle model: {e}")),
            }
            report.trap
        }
        Ok(report) => return Some(format!("ends with {:?}, expected {expected:?}", report.trap)),
        Err(e) => return Some(e.to_string()),
    };
    let stored = planted.program.stored();
    let mut memories = vec![("", rtl.memory()), ("the cycle model: ", csim.memory())];
    if planted.kind.is_functional() {
        memories.push(("the functional simulator: ", fsim.memory()));
    }
    for (name, memory) in memories {
        if let Some(d) = difference(&before, memory, |i| !stored[i]) {
            return Some(format!("{name}{d}, where nothing is stored"));
        }
    }
    if let Some(d) = difference(rtl.memory(), csim.memory(), |_| true) {
        return Some(format!("the cycle model: {d}, after the trap"));
    }
    let Some(Trap { cycle: Some(at), .. }) = trap else { return Some(format!("has no cycle of its trap, {trap:?}")) };
    // The cycle behind the trap's is the first in which it shows.
    compare_limit(devices, &planted.program, at, None)
        .or_else(|| compare_limit(devices, &planted.program, at + 1, Some(&|report| report.trap == trap)))
}

/// What differs between the cycle model and the design on a series of programs, some of which trap. What the first trap leaves in
/// scratchpads is each device's own.
fn compare_series(devices: &mut Devices, config: &HwConfig, seed: u64) -> Option<String> {
    let Devices { csim, rtl, .. } = devices;
    let mut kinds = FaultKind::ALL.iter().copied().cycle().skip(seed as usize % FaultKind::ALL.len());
    let mut trapped_before = false;
    for (at, Member { program, fault }) in series_with_faults(config, seed, 12, 8, 3, &mut kinds).iter().enumerate() {
        let why = match [run(csim, program), run(rtl, program)] {
            [Ok(modelled), Ok(found)] => {
                let trapped = found.trap.map(|t| Expected { unit: t.unit, cause: t.cause, ordinal: t.ordinal });
                let wanted = fault.map(|(_, expected)| expected);
                let other = || (trapped != wanted).then(|| format!("ends with {trapped:?}, expected {wanted:?}"));
                let memory = || difference(rtl.memory(), csim.memory(), |_| !trapped_before);
                compare_reports(&modelled, &found).or_else(other).or_else(memory)
            }
            ends => Some(format!("the cycle model and the design end with {ends:?}")),
        };
        if let Some(why) = why {
            return Some(format!("program {at} of the series, {fault:?}: {why}\n{}", program.text()));
        }
        trapped_before |= fault.is_some();
    }
    None
}

/// What differs between the cycle model and the design on a program that lacks tokens, and whether it collides.
fn compare_loose(devices: &mut Devices, program: &Program) -> Result<bool, String> {
    match [run(&mut devices.csim, program), run(&mut devices.rtl, program)] {
        [Ok(modelled), Ok(found)] => {
            let why = compare_reports(&modelled, &found);
            let collides = found.trap.is_some_and(|trap| trap.cause == TrapCause::Collision);
            why.map_or(Ok(collides), Err)
        }
        ends => Err(format!("the cycle model and the design end with {ends:?}")),
    }
}

/// What is wrong where a run has a limit, on either device: it is given up with that number, or where `ends` is given comes to
/// an end that it takes.
fn compare_limit(
    devices: &mut Devices,
    program: &Program,
    limit: u64,
    ends: Option<&dyn Fn(&RunReport) -> bool>,
) -> Option<String> {
    let command = Command { cycle_limit: Some(limit), ..program.command() };
    let Devices { csim, rtl, .. } = devices;
    [csim as &mut dyn Device, rtl].into_iter().find_map(|device| {
        let outcome = program.install(device).and_then(|()| device.run(&command));
        let fits = match &outcome {
            Ok(report) => ends.is_some_and(|ends| ends(report)),
            Err(DeviceError::CycleLimit { limit: told }) => ends.is_none() && *told == limit,
            Err(_) => false,
        };
        (!fits).then(|| format!("{} with a limit of {limit} gives {outcome:?}", device.name()))
    })
}

/// What differs between a program on devices that have just been reset, after a trap or a limit, and on a fresh one.
fn compare_recovered(devices: &mut Devices, seed: u64) -> Option<String> {
    let Devices { fsim, csim, rtl, options, .. } = devices;
    let program = generate(fsim.config(), seed, 12);
    let mut fresh = Csim::new(fsim.config().clone(), MEMORY_BYTES, *options);
    let reports = match [run(fsim, &program), run(csim, &program), run(&mut fresh, &program), run(rtl, &program)] {
        [Ok(a), Ok(b), Ok(c), Ok(d)] => [a, b, c, d],
        errors => return Some(format!("after the reset a program ends with {errors:?}\n{}", program.text())),
    };
    let [expected, recovered, fresh_report, found] = &reports;
    let why = compare_reports(recovered, found).or_else(|| compare_reports(fresh_report, found));
    let why = why.or_else(|| (expected.retired != found.retired).then(|| "other instructions retired".into()));
    let memories = [csim.memory(), fresh.memory(), rtl.memory()];
    let why = why.or_else(|| memories.iter().find_map(|memory| difference(fsim.memory(), memory, |_| true)));
    why.map(|why| format!("after the reset: {why}\n{}", program.text()))
}

/// What differs where a program is given up after a number of cycles: both devices say so of the same numbers, and the next
/// program runs.
fn compare_limits(devices: &mut Devices, program: &Program) -> Option<String> {
    let cycles = match run(&mut devices.csim, program) {
        Ok(RunReport { cycles: Some(cycles), .. }) => cycles,
        other => return Some(format!("the cycle model ends with {other:?}")),
    };
    // The cycles count the end's own.
    for (limit, ends) in [(1, false), (cycles / 2, false), (cycles - 2, false), (cycles - 1, true), (cycles, true)] {
        let whole = |report: &RunReport| report.trap.is_none() && report.cycles.is_some();
        let why = compare_limit(devices, program, limit, if ends { Some(&whole) } else { None });
        if let Some(why) = why {
            return Some(format!("{why}, of {cycles} cycles"));
        }
        if !ends && let Some(why) = compare_recovered(devices, program.seed ^ limit) {
            return Some(format!("a limit of {limit}: {why}"));
        }
    }
    None
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
        Op::Gemm(x) => Some(x.micro_ops()),
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
    /// Programs without some of their tokens that ran to their end or another trap, and that collided.
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

/// What a configuration of this number must have, so that each run sees it whatever the others are.
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

/// The same for the large configurations.
fn fix_large(index: u64, config: &mut HwConfig) {
    match index {
        0 => (config.batch, config.block_in, config.block_out) = (1, 32, 32),
        _ => (config.batch, config.block_in, config.block_out, config.bus_bits) = (1, 64, 32, 512),
    }
}

/// Keeps a failing program: what is wrong with its text, its configuration, and memory as it was before the run, the stream
/// in it, in a folder that says what was compared. Says where, and the program's text.
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

/// Makes a correct program that fails smaller, and keeps it: `told` says what fails and with what, `compare` what is wrong with
/// a program.
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

/// Runs so many programs on the configuration of this number, one of `configs` and, behind them, the large ones.
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
    // Every few programs the memory's timing changes.
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
