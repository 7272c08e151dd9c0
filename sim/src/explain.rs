//! What an instruction met when it trapped, in words with the remedy.
//!
//! It is worked out again from the instruction, so that a trap of the design, which tells place and cause alone, is explained
//! as one of the models is.

use crate::functional::Stop;
use crate::functional::dma::{LoadRows, Place, StoreRows};
use crate::functional::loops::Affine;
use crate::functional::vector::is_inside;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::{Base, Device};
use tilewright_hw::isa::{Gemm, GemmUop, Load, Op, Store, Vector, VectorUop};
use tilewright_hw::regs::TrapCause;

/// Why an instruction that stopped a device for this cause did so, and what to change. Micro-ops are those that the device
/// holds now. `None` where the instruction alone does not show it.
pub fn explain(device: &mut dyn Device, op: &Op, bases: &[Base], cause: TrapCause) -> Option<String> {
    let config = device.config().clone();
    let found = match op {
        // Alone these meet nobody.
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

/// A base and its limit.
fn limit(bases: &[Base], base: u32) -> (u32, u64) {
    (base, bases.get(base as usize).copied().unwrap_or_default().limit)
}

/// The place of the first row that traps, and why it does.
fn first_trap<T, R: Iterator<Item = Result<T, Stop>>>(
    mut rows: R,
    place: impl Fn(&R) -> Place,
) -> Option<(Place, TrapCause)> {
    loop {
        let at = place(&rows);
        if let Err(stop) = rows.next()? {
            return if let Stop::Trap(cause) = stop { Some((at, cause)) } else { None };
        }
    }
}

/// A row that traps.
fn row(
    config: &HwConfig,
    Place { plane, row, dram, first, len }: Place,
    cause: TrapCause,
    (mem, bytes): (Mem, u32),
    (base, limit): (u32, u64),
) -> String {
    match dram.filter(|_| cause == TrapCause::Limit) {
        Some(at) => format!(
            "row {row} of plane {plane} is bytes {at:#x} to {:#x} behind base {base}, whose limit is {limit:#x}; lower offset, a \
             stride, a count or row_bytes, or give the base a higher limit",
            at + u64::from(bytes) - 1
        ),
        None => {
            let entry_bytes = u64::from(config.entry_bytes(mem));
            format!(
                "row {row} of plane {plane} needs entries {} to {} of {}, which has {}; lower entry, a count, padding or row_bytes",
                first / entry_bytes,
                (first + len - 1) / entry_bytes,
                mem.name(),
                config.entries(mem)
            )
        }
    }
}

/// The micro-ops that a device holds.
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

/// A port that another unit uses in the same cycle.
fn other_unit(unit: &str) -> String {
    format!(
        "{unit} and another unit access one bank in one cycle; put what they use at a time into different banks, or order the two \
         by tokens: csim --strict names the other instruction"
    )
}

/// Micro-op `uop` lies behind the memory of micro-ops.
fn no_micro_op(config: &HwConfig, mem: Mem, uop: u32) -> String {
    format!("micro-op {uop} is behind the {} entries of {}; lower uop or uops", config.entries(mem), mem.name())
}

fn gemm(config: &HwConfig, x: &Gemm, uops: &[[u32; 3]]) -> Option<(TrapCause, String)> {
    let outside = |text| (TrapCause::Scratchpad, text);
    let visit = |uop, index: Option<[u64; 3]>| {
        let Some(index) = index else { return Err(no_micro_op(config, Mem::GemmUop, uop)) };
        let mut operands = index.into_iter().zip([Mem::Acc, Mem::Inp, Mem::Wgt]);
        match operands.find(|(at, mem)| *at >= u64::from(config.entries(*mem))) {
            Some((at, mem)) => Err(format!(
                "micro-op {uop} uses entry {at} of {}, which has {}; lower its index, the instruction's or a step of the loops",
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
                    "{name} of micro-op {uop} is at {at} of {}, which has {depth} entries; lower its index, the instruction's or a \
                     step of the loops",
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
                "a and b of micro-op {uop} are entries {a} and {b} of {}, both in its bank {}, which gives one entry a cycle; put \
                 one of them into another bank (each has {} entries in a row) or another memory",
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
