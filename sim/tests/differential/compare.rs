//! Compares the devices on programs, planted faults, series, programs without some tokens, and cycle limits.

use std::ops::RangeInclusive;
use tilewright_hw::config::DramSection;
use tilewright_hw::device::{Command, Device, DeviceError, RunReport, Span, Trap};
use tilewright_hw::isa::{Op, Unit};
use tilewright_hw::regs::{TrapCause, TrapUnit, UnitState};
use tilewright_hw::{HwConfig, Mem};
use tilewright_sim::random::{
    Expected, FaultKind, MEMORY_BYTES, Member, Planted, Program, generate, series_with_faults,
};
use tilewright_sim::{Csim, CsimOptions, Fsim, Rtl, RtlOptions};

/// Runs a program on a device.
fn run(device: &mut dyn Device, program: &Program) -> Result<RunReport, DeviceError> {
    program.install(device)?;
    device.run(&program.command())
}

/// The devices to compare.
pub struct Devices {
    fsim: Fsim,
    csim: Csim,
    /// The cycle model without values.
    times: Csim,
    rtl: Rtl,
    /// Options of the cycle models.
    options: CsimOptions,
}

impl Devices {
    pub fn new(config: &HwConfig, dram: DramSection) -> Devices {
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

/// Compares the devices on a correct program. Returns the first difference.
pub fn compare(devices: &mut Devices, program: &Program) -> Option<String> {
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
            Ok(modeled) => {
                if let Some(why) = compare_reports(&modeled, &found) {
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
        let modeled = csim.scratchpad(mem, 0, entries).expect("in range");
        if let Some(d) = difference(&expected, &modeled, |_| true) {
            return Some(format!("the cycle model: {}: {d}", mem.name()));
        }
        let found = rtl.scratchpad(mem, 0, entries).expect("in range");
        // Entries that no instruction wrote differ between simulator and RTL.
        if let Some(d) = difference(&expected, &found, |_| program.fills(mem)) {
            return Some(format!("{}: {d}", mem.name()));
        }
    }
    difference(fsim.memory(), rtl.memory(), |_| true)
}

/// Returns a unit and state whose cycles, except empty ones, do not equal the sum over the unit's instructions.
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

/// Returns the first instruction that started or retired in another cycle, or waited for something else.
fn compare_spans(modeled: &[Span], found: &[Span]) -> Option<String> {
    if modeled.len() != found.len() {
        return Some(format!("the cycle model started {} instructions, the design {}", modeled.len(), found.len()));
    }
    let (a, b) = modeled.iter().zip(found).find(|(a, b)| a != b)?;
    Some(format!("the cycle model has {a:?}, the design {b:?}"))
}

/// Compares the cycle model's report with the design's, including instructions.
fn compare_reports(modeled: &RunReport, found: &RunReport) -> Option<String> {
    compare_time(modeled, found).or_else(|| compare_spans(&modeled.spans, &found.spans))
}

/// Compares the cycle model's report with the design's, without instructions.
fn compare_time(modeled: &RunReport, found: &RunReport) -> Option<String> {
    if modeled.cycles != found.cycles || modeled.trap != found.trap {
        let of = |r: &RunReport| format!("{:?} cycles, trap {:?}", r.cycles, r.trap);
        return Some(format!("the cycle model has {}, the design {}", of(modeled), of(found)));
    }
    if modeled.retired != found.retired {
        return Some(format!("the cycle model retired {:?}, the design {:?}", modeled.retired, found.retired));
    }
    if (modeled.macs, modeled.bytes) != (found.macs, found.bytes) {
        let of = |r: &RunReport| format!("{} multiply-accumulates, bytes {:?}", r.macs, r.bytes);
        return Some(format!("the cycle model has {}, the design {}", of(modeled), of(found)));
    }
    if modeled.counters != found.counters {
        let units = TrapUnit::ALL.iter().enumerate().filter_map(|(i, unit)| {
            let (a, b) = (modeled.counters?.0[i], found.counters?.0[i]);
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

/// Compares the devices on a planted fault. Returns the first difference, also from the planted trap.
pub fn compare_fault(devices: &mut Devices, planted: &Planted) -> Option<String> {
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
                Ok(modeled) => {
                    if let Some(why) = compare_reports(&modeled, &report) {
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
    let Some(Trap { cycle: Some(at), .. }) = trap else { return Some(format!("the trap has no cycle: {trap:?}")) };
    // The first cycle that shows the trap is the one after it.
    compare_limit(devices, &planted.program, at, None)
        .or_else(|| compare_limit(devices, &planted.program, at + 1, Some(&|report| report.trap == trap)))
}

/// Compares the cycle model and the design on a series of programs. Some of them trap. After the first trap, the
/// contents of scratchpads depend on the device.
pub fn compare_series(devices: &mut Devices, config: &HwConfig, seed: u64) -> Option<String> {
    let Devices { csim, rtl, .. } = devices;
    let mut kinds = FaultKind::ALL.iter().copied().cycle().skip(seed as usize % FaultKind::ALL.len());
    let mut trapped_before = false;
    for (at, Member { program, fault }) in series_with_faults(config, seed, 12, 8, 3, &mut kinds).iter().enumerate() {
        let why = match [run(csim, program), run(rtl, program)] {
            [Ok(modeled), Ok(found)] => {
                let trapped = found.trap.map(|t| Expected { unit: t.unit, cause: t.cause, ordinal: t.ordinal });
                let wanted = fault.map(|(_, expected)| expected);
                let other = || (trapped != wanted).then(|| format!("ends with {trapped:?}, expected {wanted:?}"));
                let memory = || difference(rtl.memory(), csim.memory(), |_| !trapped_before);
                compare_reports(&modeled, &found).or_else(other).or_else(memory)
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

/// Compares the cycle model and the design on a program without some of its tokens. Returns whether it collides.
pub fn compare_loose(devices: &mut Devices, program: &Program) -> Result<bool, String> {
    match [run(&mut devices.csim, program), run(&mut devices.rtl, program)] {
        [Ok(modeled), Ok(found)] => {
            let why = compare_reports(&modeled, &found);
            let collides = found.trap.is_some_and(|trap| trap.cause == TrapCause::Collision);
            why.map_or(Ok(collides), Err)
        }
        ends => Err(format!("the cycle model and the design end with {ends:?}")),
    }
}

/// Checks both devices with a cycle limit: they must abort with that limit or, if `ends` is given, end with a report
/// that it accepts.
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

/// Compares devices that have just been reset, after a trap or a limit, with a fresh one.
pub fn compare_recovered(devices: &mut Devices, seed: u64) -> Option<String> {
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

/// Compares the devices on a program with different cycle limits: both must abort at the same limits and then run
/// another program.
pub fn compare_limits(devices: &mut Devices, program: &Program) -> Option<String> {
    let cycles = match run(&mut devices.csim, program) {
        Ok(RunReport { cycles: Some(cycles), .. }) => cycles,
        other => return Some(format!("the cycle model ends with {other:?}")),
    };
    // The number of cycles includes the last cycle.
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

/// Checks the work that a report counts before a trap. Returns what is wrong.
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
                // Earlier instructions can still be in flight when the next one fails a check.
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
