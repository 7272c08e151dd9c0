//! What an instruction reads and writes: entries of scratchpads and bytes of device memory.

use crate::set::EntrySet;
use std::ops::Range;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{Gemm, GemmUop, Load, Op, PARAM_ROWS, Store, TAP_STRIDE, VecOp, Vector, VectorUop};

/// Entries of a memory that an instruction reads or writes; param counts rows.
#[derive(Debug, Clone)]
pub struct Touch {
    /// Memory.
    pub mem: Mem,
    /// Whether they are written.
    pub write: bool,
    /// The entries.
    pub set: EntrySet,
}

/// Bytes of a region that an instruction reads or writes.
#[derive(Debug, Clone)]
pub struct DramTouch {
    /// Base register.
    pub base: u32,
    /// Whether they are written.
    pub write: bool,
    /// Byte ranges from the region's start, in the order of access; adjacent ranges are merged.
    pub spans: Vec<Range<u64>>,
}

/// Everything that an instruction touches.
#[derive(Debug, Clone, Default)]
pub struct Footprint {
    /// Scratchpads and micro-op memories.
    pub scratch: Vec<Touch>,
    /// Device memory.
    pub dram: Option<DramTouch>,
}

/// An entry outside its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outside {
    /// Memory.
    pub mem: Mem,
    /// The greatest requested entry.
    pub entry: u64,
}

/// The micro-ops that an instruction runs.
#[derive(Debug, Clone, Copy)]
pub enum Kernel<'a> {
    /// Loads and stores have none.
    None,
    /// Gemm's.
    Gemm(&'a [GemmUop]),
    /// Vector's.
    Vector(&'a [VectorUop]),
}

/// Returns what an instruction touches, given its micro-ops.
///
/// # Errors
/// [`Outside`] if the hardware would trap because an entry is outside its scratchpad.
pub fn footprint(op: &Op, kernel: Kernel, config: &HwConfig) -> Result<Footprint, Outside> {
    let mut found = Footprint::default();
    match (op, kernel) {
        (Op::Load(x), _) => load(x, config, &mut found)?,
        (Op::Store(x), _) => store(x, config, &mut found)?,
        (Op::Gemm(x), Kernel::Gemm(uops)) => gemm(x, uops, config, &mut found)?,
        (Op::Vector(x), Kernel::Vector(uops)) => vector(x, uops, config, &mut found)?,
        _ => {}
    }
    Ok(found)
}

fn touch(
    found: &mut Footprint,
    config: &HwConfig,
    mem: Mem,
    write: bool,
    fill: impl FnOnce(&mut EntrySet) -> Result<(), u64>,
) -> Result<(), Outside> {
    let mut set = EntrySet::new(config.entries(mem));
    fill(&mut set).map_err(|entry| Outside { mem, entry })?;
    found.scratch.push(Touch { mem, write, set });
    Ok(())
}

/// Byte ranges of rows and planes in the order of access; offsets that wrap are left as they are.
fn spans(offset: u64, row_bytes: u32, counts: [u32; 2], strides: [u64; 2]) -> Vec<Range<u64>> {
    let mut spans: Vec<Range<u64>> = Vec::new();
    for plane in 0..u64::from(counts[1]) {
        for row in 0..u64::from(counts[0]) {
            let start = offset + row * strides[0] + plane * strides[1];
            let end = start + u64::from(row_bytes);
            match spans.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => spans.push(start..end),
            }
        }
    }
    spans
}

/// Inserts the entries that packed rows of scratchpad bytes touch.
fn packed(
    set: &mut EntrySet,
    entry_bytes: u64,
    first: u64,
    length: u64,
    counts: [u64; 2],
    strides: [u32; 2],
) -> Result<(), u64> {
    for plane in 0..counts[1] {
        for row in 0..counts[0] {
            let start = first + row * u64::from(strides[0]) + plane * u64::from(strides[1]);
            let entry = start / entry_bytes;
            set.insert_range(entry, (start + length - 1) / entry_bytes - entry + 1)?;
        }
    }
    Ok(())
}

fn load(x: &Load, config: &HwConfig, found: &mut Footprint) -> Result<(), Outside> {
    let entry_bytes = u64::from(config.entry_bytes(x.mem));
    let rows = u64::from(x.y_before + x.rows + x.y_after);
    let planes = u64::from(x.z_before + x.planes + x.z_after);
    touch(found, config, x.mem, true, |set| {
        if x.pack {
            let length = u64::from(x.x_before + x.row_bytes + x.x_after);
            let first = u64::from(x.entry) * entry_bytes + u64::from(x.pack_byte);
            packed(set, entry_bytes, first, length, [rows, planes], [x.pack_row_stride, x.pack_plane_stride])
        } else {
            let row = u64::from(x.x_before + x.x_after) + u64::from(x.row_bytes).div_ceil(entry_bytes);
            set.insert_range(x.entry.into(), row * rows * planes)
        }
    })?;
    let spans = spans(x.offset, x.row_bytes, [x.rows, x.planes], [x.row_stride, x.plane_stride]);
    found.dram = Some(DramTouch { base: x.base, write: false, spans });
    Ok(())
}

fn store(x: &Store, config: &HwConfig, found: &mut Footprint) -> Result<(), Outside> {
    let entry_bytes = u64::from(config.entry_bytes(x.mem));
    touch(found, config, x.mem, false, |set| {
        if x.pack {
            let first = u64::from(x.entry) * entry_bytes + u64::from(x.pack_byte);
            let counts = [x.rows.into(), x.planes.into()];
            packed(set, entry_bytes, first, x.row_bytes.into(), counts, [x.pack_row_stride, x.pack_plane_stride])
        } else {
            let row = u64::from(x.row_bytes).div_ceil(entry_bytes);
            set.insert_range(x.entry.into(), row * u64::from(x.rows) * u64::from(x.planes))
        }
    })?;
    let spans = spans(x.offset, x.row_bytes, [x.rows, x.planes], [x.row_stride, x.plane_stride]);
    found.dram = Some(DramTouch { base: x.base, write: true, spans });
    Ok(())
}

/// Inserts the indices of one operand over micro-ops and loops.
fn indexed(
    set: &mut EntrySet,
    at: u32,
    uops: impl Iterator<Item = u32>,
    steps: [u32; 3],
    counts: [u32; 3],
) -> Result<(), u64> {
    for index in uops {
        set.insert(u64::from(index) + u64::from(at))?;
    }
    steps.into_iter().zip(counts).try_for_each(|(step, count)| set.spread(step, count))
}

fn gemm(x: &Gemm, uops: &[GemmUop], config: &HwConfig, found: &mut Footprint) -> Result<(), Outside> {
    let counts = [x.count0, x.count1, x.count2];
    touch(found, config, Mem::GemmUop, false, |s| s.insert_range(x.uop.into(), x.uops.into()))?;
    touch(found, config, Mem::Inp, false, |s| {
        indexed(s, x.inp, uops.iter().map(|u| u.inp), [x.inp0, x.inp1, x.inp2], counts)
    })?;
    touch(found, config, Mem::Wgt, false, |s| {
        indexed(s, x.wgt, uops.iter().map(|u| u.wgt), [x.wgt0, x.wgt1, x.wgt2], counts)
    })?;
    touch(found, config, Mem::Acc, true, |s| {
        indexed(s, x.acc, uops.iter().map(|u| u.acc), [x.acc0, x.acc1, x.acc2], counts)
    })?;
    if x.accumulate
        && let Some(written) = found.scratch.last().cloned()
    {
        found.scratch.push(Touch { write: false, ..written });
    }
    Ok(())
}

/// First row of param, as loads address it, for index `at` of a second operand. A row that an entry does not have maps
/// past the memory's end.
fn param_row(op: VecOp, at: u64, config: &HwConfig) -> u64 {
    let Ok(at) = u32::try_from(at) else { return u64::MAX };
    let (entry, row) = op.param_entry(at);
    let past = if row >= PARAM_ROWS { u64::from(config.param_depth) } else { 0 };
    (u64::from(entry) + past) * u64::from(PARAM_ROWS)
}

fn vector(x: &Vector, uops: &[VectorUop], config: &HwConfig, found: &mut Footprint) -> Result<(), Outside> {
    let counts = [x.count0, x.count1, x.count2];
    let rows = u64::from(PARAM_ROWS);
    touch(found, config, Mem::VectorUop, false, |s| s.insert_range(x.uop.into(), x.uops.into()))?;
    touch(found, config, x.dst.mem(), true, |s| {
        indexed(s, x.dst_at, uops.iter().map(|u| u.dst), [x.dst0, x.dst1, x.dst2], counts)
    })?;
    if x.op.reads_dst() {
        touch(found, config, x.dst.mem(), false, |s| {
            indexed(s, x.dst_at, uops.iter().map(|u| u.dst), [x.dst0, x.dst1, x.dst2], counts)
        })?;
    }
    if let Some(mem) = x.a.mem() {
        touch(found, config, mem, false, |s| indexed(s, x.a_at, uops.iter().map(|u| u.a), [x.a0, x.a1, x.a2], counts))?;
    }
    if let Some(mem) = x.b.mem() {
        if mem == Mem::Param {
            let indices = config.param_depth * if x.op == VecOp::Mac { TAP_STRIDE } else { 1 };
            let mut found_indices = EntrySet::new(indices);
            indexed(&mut found_indices, x.b_at, uops.iter().map(|u| u.b), [x.b0, x.b1, x.b2], counts)
                .map_err(|index| Outside { mem, entry: param_row(x.op, index, config) })?;
            touch(found, config, mem, false, |s| {
                found_indices.iter().try_for_each(|index| s.insert_range(param_row(x.op, index.into(), config), rows))
            })?;
        } else {
            touch(found, config, mem, false, |s| {
                indexed(s, x.b_at, uops.iter().map(|u| u.b), [x.b0, x.b1, x.b2], counts)
            })?;
        }
    }
    if x.op.needs_descriptor(x.b) {
        touch(found, config, Mem::Param, false, |s| {
            s.insert_range(u64::from(x.descriptor) * rows, u64::from(config.constant_entries(x.op)) * rows)
        })?;
    }
    Ok(())
}
