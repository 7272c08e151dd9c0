//! What an instruction met when it trapped, in words with the remedy.
//!
//! It is worked out again from the instruction, so that a trap of the design, which tells place and cause alone, is explained
//! as one of the models is.

use crate::functional::Stop;
use crate::functional::dma::{LoadRows, StoreRows};
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
    let (n, found) = first_trap(LoadRows::new(config, x, bases))?;
    let rows = u64::from(x.y_before + x.rows + x.y_after);
    let (y, z) = (n % rows, n / rows);
    let entry_bytes = u64::from(config.entry_bytes(x.mem));
    let unit = if x.pack { 1 } else { entry_bytes };
    let len = u64::from(x.x_before + x.x_after) * unit + u64::from(x.row_bytes).next_multiple_of(unit);
    let packed = [x.pack_byte, x.pack_row_stride, x.pack_plane_stride].map(u64::from);
    let skipped = if x.pack { packed[0] + y * packed[1] + z * packed[2] } else { n * len };
    let dram = [y.saturating_sub(x.y_before.into()), z.saturating_sub(x.z_before.into())];
    let row = Row { y, z, bytes: x.row_bytes, strides: [x.row_stride, x.plane_stride], dram };
    match found {
        TrapCause::Limit => Some((found, row.past_limit(config, bases, x.base, x.offset))),
        _ => Some((found, row.outside(config, x.mem, u64::from(x.entry) * entry_bytes + skipped, len))),
    }
}

fn store(config: &HwConfig, x: &Store, bases: &[Base]) -> Option<(TrapCause, String)> {
    let (n, found) = first_trap(StoreRows::new(config, x, bases))?;
    let (y, z) = (n % u64::from(x.rows), n / u64::from(x.rows));
    let entry_bytes = u64::from(config.entry_bytes(x.mem));
    let len = u64::from(x.row_bytes);
    let packed = [x.pack_byte, x.pack_row_stride, x.pack_plane_stride].map(u64::from);
    let skipped =
        if x.pack { packed[0] + y * packed[1] + z * packed[2] } else { n * len.next_multiple_of(entry_bytes) };
    let row = Row { y, z, bytes: x.row_bytes, strides: [x.row_stride, x.plane_stride], dram: [y, z] };
    match found {
        TrapCause::Limit => Some((found, row.past_limit(config, bases, x.base, x.offset))),
        _ => Some((found, row.outside(config, x.mem, u64::from(x.entry) * entry_bytes + skipped, len))),
    }
}

/// The number of the first row that traps, and why it does.
fn first_trap<T>(rows: impl Iterator<Item = Result<T, Stop>>) -> Option<(u64, TrapCause)> {
    rows.zip(0..).find_map(|(row, n)| match row {
        Err(Stop::Trap(cause)) => Some((n, cause)),
        _ => None,
    })
}

/// A row that traps.
struct Row {
    /// Its place in the block, padding counted.
    y: u64,
    z: u64,
    /// Bytes in device memory.
    bytes: u32,
    /// Of rows and of planes, in device memory.
    strides: [u64; 2],
    /// Its place in the block, padding left out.
    dram: [u64; 2],
}

impl Row {
    fn past_limit(&self, config: &HwConfig, bases: &[Base], base: u32, offset: u64) -> String {
        let limit = bases.get(base as usize).copied().unwrap_or_default().limit;
        let steps: u64 = self.dram.iter().zip(self.strides).map(|(n, stride)| n * stride).sum();
        let first = offset.wrapping_add(steps) & config.last_address();
        format!(
            "row {} of plane {} is bytes {first:#x} to {:#x} behind base {base}, whose limit is {limit:#x}; lower offset, a stride, \
             a count or row_bytes, or give the base a higher limit",
            self.y,
            self.z,
            first + u64::from(self.bytes) - 1
        )
    }

    /// `first` and `len` are the bytes that it needs of a memory.
    fn outside(&self, config: &HwConfig, mem: Mem, first: u64, len: u64) -> String {
        let entry_bytes = u64::from(config.entry_bytes(mem));
        format!(
            "row {} of plane {} needs entries {} to {} of {}, which has {}; lower entry, a count, padding or row_bytes",
            self.y,
            self.z,
            first / entry_bytes,
            (first + len - 1) / entry_bytes,
            mem.name(),
            config.entries(mem)
        )
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
