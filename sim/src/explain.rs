//! Explains why an instruction trapped and how to fix it.
//!
//! The explanation is recomputed from the instruction. A trap of the RTL, which reports only place and cause, is
//! therefore explained as well as a model's trap.

use crate::functional::Stop;
use crate::functional::dma::{LoadRows, RowPlace, StoreRows};
use crate::functional::loops::Affine;
use crate::functional::vector::is_inside;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::{Base, Device};
use tilewright_hw::isa::{Gemm, GemmUop, Load, Op, Store, Vector, VectorUop};
use tilewright_hw::regs::TrapCause;

/// Explains why `op` stopped a device with `cause`, and what to change. Uses the micro-ops that the device holds now.
/// Returns `None` if the instruction alone does not show the reason.
pub fn explain(device: &mut dyn Device, op: &Op, bases: &[Base], cause: TrapCause) -> Option<String> {
    let config = device.config().clone();
    let found = match op {
        // Alone, these use each port at most once per cycle.
        Op::Load(_) | Op::Store(_) | Op::Gemm(_) if cause == TrapCause::Collision => None,
        Op::Load(x) => load(&config, x, bases),
        Op::Store(x) => store(&config, x, bases),
        Op::Gemm(x) => micro_ops(device, Mem::GemmUop).and_then(|uops| gemm(&config, x, &uops)),
        Op::Vector(x) => micro_ops(device, Mem::VectorUop).and_then(|uops| vector(&config, x, &uops)),
    };
    match found {
        Some((of, text)) if of == cause => Some(text),
        _ if cause == TrapCause::Collision => Some(other_unit(op.opcode().unit().name())),
        _ => None,
    }
}

fn load(config: &HwConfig, x: &Load, bases: &[Base]) -> Option<(TrapCause, String)> {
    let (place, cause) = first_trap(LoadRows::new(config, x, bases), LoadRows::place)?;
    Some((cause, row(config, place, cause, (x.mem, x.row_bytes), limit(bases, x.base))))
}

fn store(config: &HwConfig, x: &Store, bases: &[Base]) -> Option<(TrapCause, String)> {
    let (place, cause) = first_trap(StoreRows::new(config, x, bases), StoreRows::place)?;
    Some((cause, row(config, place, cause, (x.mem, x.row_bytes), limit(bases, x.base))))
}

/// Returns a base's number and its limit.
fn limit(bases: &[Base], base: u32) -> (u32, u64) {
    (base, bases.get(base as usize).copied().unwrap_or_default().limit)
}

/// Returns the place of the first row that traps, and the cause.
fn first_trap<T, R: Iterator<Item = Result<T, Stop>>>(
    mut rows: R,
    place: impl Fn(&R) -> RowPlace,
) -> Option<(RowPlace, TrapCause)> {
    loop {
        let at = place(&rows);
        if let Err(stop) = rows.next()? {
            return if let Stop::Trap(cause) = stop { Some((at, cause)) } else { None };
        }
    }
}

/// Describes a row that traps.
fn row(
    config: &HwConfig,
    RowPlace { plane, row, dram, first, len }: RowPlace,
    cause: TrapCause,
    (mem, bytes): (Mem, u32),
    (base, limit): (u32, u64),
) -> String {
    match dram.filter(|_| cause == TrapCause::Limit) {
        Some(at) => format!(
            "row {row} of plane {plane} covers offsets {at:#x} to {:#x} from base {base}, whose limit is {limit:#x}; lower offset, \
             a stride, a count or row_bytes, or raise the base's limit",
            at + u64::from(bytes) - 1
        ),
        None => {
            let entry_bytes = u64::from(config.entry_bytes(mem));
            format!(
                "row {row} of plane {plane} needs entries {} to {} of {}, which has {} entries; lower entry, a count, padding or \
                 row_bytes",
                first / entry_bytes,
                (first + len - 1) / entry_bytes,
                mem.name(),
                config.entries(mem)
            )
        }
    }
}

/// Returns the micro-ops that a device holds.
fn micro_ops(device: &mut dyn Device, mem: Mem) -> Option<Vec<[u32; 3]>> {
    let config = device.config().clone();
    let bytes = device.scratchpad(mem, 0, config.entries(mem)).ok()?;
    let uops = bytes.chunks(config.entry_bytes(mem) as usize).map(|row| match mem {
        Mem::GemmUop => {
            let GemmUop { acc, inp, wgt } = GemmUop::from_bytes(row, &config);
            [acc, inp, wgt]
        }
        _ => {
            let VectorUop { dst, a, b } = VectorUop::from_bytes(row, &config);
            [dst, a, b]
        }
    });
    Some(uops.collect())
}

/// Describes a port that another unit uses in the same cycle.
fn other_unit(unit: &str) -> String {
    format!(
        "{unit} and another unit access the same bank in the same cycle; put the data they use at the same time into different \
         banks, or order the two with tokens (csim --strict names the other instruction)"
    )
}

/// Describes a micro-op index past the end of micro-op memory.
fn no_micro_op(config: &HwConfig, mem: Mem, uop: u32) -> String {
    format!("micro-op {uop} is past the {} entries of {}; lower uop or uops", config.entries(mem), mem.name())
}

fn gemm(config: &HwConfig, x: &Gemm, uops: &[[u32; 3]]) -> Option<(TrapCause, String)> {
    let outside = |text| (TrapCause::Scratchpad, text);
    let visit = |uop, index: Option<[u64; 3]>| {
        let Some(index) = index else { return Err(no_micro_op(config, Mem::GemmUop, uop)) };
        let mut operands = index.into_iter().zip([Mem::Acc, Mem::Inp, Mem::Wgt]);
        match operands.find(|(at, mem)| *at >= u64::from(config.entries(*mem))) {
            Some((at, mem)) => Err(format!(
                "micro-op {uop} uses entry {at} of {}, which has {} entries; lower its index, the instruction's index or a loop's \
                 step",
                mem.name(),
                config.entries(mem)
            )),
            None => Ok(()),
        }
    };
    Affine::from(x).for_each(uops, visit).err().map(outside)
}

fn vector(config: &HwConfig, x: &Vector, uops: &[[u32; 3]]) -> Option<(TrapCause, String)> {
    let outside = |text| (TrapCause::Scratchpad, text);
    if x.op.needs_descriptor(x.b) {
        let end = x.descriptor + config.constant_entries(x.op);
        if end > config.param_depth {
            let (first, last, depth) = (x.descriptor, end - 1, config.param_depth);
            return Some(outside(format!(
                "its constants are entries {first} to {last} of param, which has {depth}; lower descriptor"
            )));
        }
    }
    let mems = [Some(x.dst.mem()), x.a.mem(), x.b.mem()];
    let visit = |uop, index: Option<[u64; 3]>| {
        let Some(index) = index else { return Err(outside(no_micro_op(config, Mem::VectorUop, uop))) };
        for ((at, mem), name) in index.into_iter().zip(mems).zip(["dst", "a", "b"]) {
            let Some(mem) = mem else { continue };
            if !is_inside(config, x.op, mem, at) {
                let depth = if mem == Mem::Param { config.param_depth } else { config.entries(mem) };
                return Err(outside(format!(
                    "{name} of micro-op {uop} is at {at} of {}, which has {depth} entries; lower its index, the instruction's \
                     index or a loop's step",
                    mem.name()
                )));
            }
        }
        let [_, a, b] = index.map(|at| at as u32);
        if let (Some(mem), Some(other)) = (mems[1], mems[2])
            && mem == other
            && config.bank_of(mem, a) == config.bank_of(mem, b)
        {
            let text = format!(
                "a and b of micro-op {uop} are entries {a} and {b} of {}, both in bank {}, which reads one entry per cycle; put \
                 one of them into another bank (each holds {} consecutive entries) or another memory",
                mem.name(),
                config.bank_of(mem, a),
                config.entries(mem) / config.banks(mem)
            );
            return Err((TrapCause::Collision, text));
        }
        Ok(())
    };
    Affine::from(x).for_each(uops, visit).err()
}
