//! Random operations. They are legal but can leave their memories; the builder rejects those that do.

use super::image::{BAD_BASE, DATA, GEMM_UOPS, PARAMS, RESULTS, VECTOR_UOPS, bases_of};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use std::ops::Range;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{
    Gemm, Insn, Load, Op, Store, TAP_STRIDE, Unit, VecDst, VecOp, VecSrc, Vector, WidthName, illegal_reasons,
};
use tilewright_hw::num::Rounding;

/// Whether an operation should stay inside its memories and regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    /// Stay inside.
    Good,
    /// Possibly leave a scratchpad.
    OutsideScratchpad,
    /// Possibly leave the base's limit.
    OutsideLimit,
    /// Possibly pass the end of memory.
    OutsideMemory,
}

/// Returns a random operation of a unit.
pub(super) fn sample(unit: Unit, config: &HwConfig, aim: Aim, rng: &mut SmallRng) -> Op {
    match unit {
        Unit::Load => load(config, aim, rng).into(),
        Unit::Gemm => gemm(config, aim, rng).into(),
        Unit::Vector => vector(config, aim, rng).into(),
        Unit::Store => store(config, aim, rng).into(),
    }
}

fn pick<T: Copy>(rng: &mut SmallRng, from: &[T]) -> T {
    *from.choose(rng).unwrap_or(&from[0])
}

/// Returns mostly 0, otherwise up to `most`.
fn rarely(rng: &mut SmallRng, most: u32) -> u32 {
    if rng.random_bool(0.6) { 0 } else { rng.random_range(0..=most) }
}

/// Returns often 1, otherwise up to `most`.
fn some(rng: &mut SmallRng, most: u32) -> u32 {
    if rng.random_bool(0.4) { 1 } else { rng.random_range(1..=most.max(1)) }
}

/// Returns a first entry so that `n` entries fit in `depth`.
fn first(rng: &mut SmallRng, depth: u32, n: u32) -> u32 {
    rng.random_range(0..=depth.saturating_sub(n))
}

/// The DRAM side of a transfer.
struct Dram {
    base: u32,
    offset: u64,
    row_stride: u64,
    plane_stride: u64,
}

fn dram(config: &HwConfig, region: &Range<u64>, shape: [u32; 3], aim: Aim, rng: &mut SmallRng) -> Dram {
    let align = u64::from(config.dma_align);
    let [row_bytes, rows, planes] = shape.map(u64::from);
    let stride = |rng: &mut SmallRng, least: u64| {
        let most = ((1u64 << config.stride_bits) - 1).min(400);
        let stride = match rng.random_range(0..4) {
            0 => 0,
            1 => least.min(most),
            _ => rng.random_range(0..=most),
        };
        stride / align * align
    };
    let mut row_stride = stride(rng, row_bytes);
    let plane_stride = stride(rng, rows * row_stride.max(row_bytes));
    let size = region.end - region.start;
    let mut back = 0;
    if config.stride_bits == config.offset_bits && rng.random_bool(0.2) {
        // Rows that go backward: the stride is negative modulo the offset's width.
        back = (rows - 1) * row_stride;
        row_stride = (1u64 << config.offset_bits).wrapping_sub(row_stride) & ((1u64 << config.offset_bits) - 1);
    }
    let forward = if back > 0 { 0 } else { (rows - 1) * row_stride };
    let extent = row_bytes + forward + back + (planes - 1) * plane_stride;
    let (base, start) = pick(rng, &bases_of(region, config));
    let room = size.saturating_sub(extent + 64);
    // A base can be a few bytes after the region's start.
    let begin = start.max(0) as u64 + back;
    let offset = (begin.next_multiple_of(align) + rng.random_range(0..=room)) / align * align;
    match aim {
        Aim::OutsideLimit => {
            let offset = match rng.random_range(0..3) {
                0 => rng.random_range(0..1u64 << config.offset_bits),
                1 => (1u64 << config.offset_bits) - rng.random_range(1..100u64),
                _ => offset + rng.random_range(0..size),
            };
            Dram { base, offset: offset / align * align, row_stride, plane_stride }
        }
        Aim::OutsideMemory => {
            let offset = rng.random_range(0..0x80u64) / align * align;
            Dram { base: BAD_BASE, offset, row_stride, plane_stride }
        }
        _ => Dram { base, offset, row_stride, plane_stride },
    }
}

fn load(config: &HwConfig, aim: Aim, rng: &mut SmallRng) -> Load {
    let mem = pick(rng, &Mem::ALL);
    let size = config.entry_bytes(mem);
    let depth = config.entries(mem);
    let region = match mem {
        _ if rng.random_bool(0.25) => RESULTS,
        Mem::GemmUop => GEMM_UOPS,
        Mem::VectorUop => VECTOR_UOPS,
        Mem::Param if rng.random_bool(0.7) => PARAMS,
        _ => DATA,
    };
    let pack = config.dma_pack && matches!(mem, Mem::Inp | Mem::Out) && rng.random_bool(0.5);
    let row_bytes = match rng.random_range(0..3) {
        0 => size * rng.random_range(1..=4),
        1 => rng.random_range(1..=size * 2),
        _ => rng.random_range(1..=size * 5),
    };
    let (rows, planes) = (some(rng, 5), some(rng, 3));
    let mut x = Load { mem, row_bytes, rows, planes, ..Load::default() };
    if config.dma_pad {
        let most = if pack { size + 2 } else { 3 };
        x.pad_value = rng.random();
        x.x_before = rarely(rng, most.min(255));
        x.x_after = rarely(rng, most.min(255));
        x.y_before = rarely(rng, 2);
        x.y_after = rarely(rng, 2);
        x.z_before = rarely(rng, 2);
        x.z_after = rarely(rng, 2);
    }
    let lines = (x.z_before + planes + x.z_after) * (x.y_before + rows + x.y_after);
    if pack {
        x.pack = true;
        x.fill = rng.random();
        let len = x.x_before + row_bytes + x.x_after;
        let total = size * depth;
        (x.entry, x.pack_byte, x.pack_row_stride, x.pack_plane_stride) =
            pack_fields(total, size, len, [x.y_before + rows + x.y_after, lines], rng);
        if aim == Aim::OutsideScratchpad {
            x.entry = rng.random_range(depth / 2..depth);
        }
    } else {
        let n = lines * (x.x_before + row_bytes.div_ceil(size) + x.x_after);
        x.entry = first(rng, depth, n);
        if aim == Aim::OutsideScratchpad {
            x.entry = rng.random_range(0..1 << config.width(WidthName::Entry));
        }
    }
    let mut region = region;
    if matches!(mem, Mem::GemmUop | Mem::VectorUop) && region != RESULTS {
        // Load whole micro-ops, so that their indices are the small ones.
        let d = dram(config, &region, [row_bytes, rows, planes], aim, rng);
        let whole = |v: u64| v / u64::from(size.max(config.dma_align)) * u64::from(size.max(config.dma_align));
        x.base = d.base;
        x.offset = if aim == Aim::Good && d.base == 0 { whole(d.offset) } else { d.offset };
        x.row_stride = whole(d.row_stride);
        x.plane_stride = whole(d.plane_stride);
        return x;
    }
    if region == RESULTS && rng.random_bool(0.3) {
        region = DATA;
    }
    let d = dram(config, &region, [row_bytes, rows, planes], aim, rng);
    Load { base: d.base, offset: d.offset, row_stride: d.row_stride, plane_stride: d.plane_stride, ..x }
}

/// Returns entry, byte, row stride and plane stride of packed rows that stay inside, if possible.
fn pack_fields(total: u32, size: u32, len: u32, lines: [u32; 2], rng: &mut SmallRng) -> (u32, u32, u32, u32) {
    let [per_plane, all] = lines;
    let planes = all / per_plane;
    let spare = total.saturating_sub(len) / (all.max(2) - 1).max(1);
    let row = rng.random_range(0..=spare.min(len * 2));
    let plane_room = total.saturating_sub(len + (per_plane - 1) * row) / (planes.max(2) - 1);
    let plane = rng.random_range(0..=plane_room.min(len * 8));
    let extent = len + (per_plane - 1) * row + (planes - 1) * plane;
    let at = rng.random_range(0..=total.saturating_sub(extent));
    (at / size, at % size, row, plane)
}

fn store(config: &HwConfig, aim: Aim, rng: &mut SmallRng) -> Store {
    let mem = pick(rng, &[Mem::Inp, Mem::Out, Mem::Out]);
    let size = config.entry_bytes(mem);
    let depth = config.entries(mem);
    let row_bytes = match rng.random_range(0..3) {
        0 => size * rng.random_range(1..=4),
        1 => rng.random_range(1..=size * 2),
        _ => rng.random_range(1..=size * 6),
    };
    let (rows, planes) = (some(rng, 6), some(rng, 3));
    let d = dram(config, &RESULTS, [row_bytes, rows, planes], aim, rng);
    let mut x = Store {
        mem,
        base: d.base,
        offset: d.offset,
        row_bytes,
        rows,
        planes,
        row_stride: d.row_stride,
        plane_stride: d.plane_stride,
        ..Store::default()
    };
    if config.dma_pack && rng.random_bool(0.5) {
        x.pack = true;
        (x.entry, x.pack_byte, x.pack_row_stride, x.pack_plane_stride) =
            pack_fields(size * depth, size, row_bytes, [rows, rows * planes], rng);
    } else {
        x.entry = first(rng, depth, rows * planes * row_bytes.div_ceil(size));
    }
    if aim == Aim::OutsideScratchpad {
        x.entry = rng.random_range(depth / 2..depth);
    }
    x
}

/// Returns loop counts, and steps of three operands for each loop.
fn loops(config: &HwConfig, most_step: u32, rng: &mut SmallRng) -> ([u32; 3], [[u32; 3]; 3]) {
    let mut counts = [some(rng, 4), some(rng, 4), some(rng, 4)];
    let mut steps = [[0; 3]; 3].map(|s: [u32; 3]| s.map(|_| rng.random_range(0..=most_step)));
    if config.loops < 3 {
        counts[2] = 1;
        steps[2] = [0; 3];
    }
    (counts, steps)
}

fn gemm(config: &HwConfig, aim: Aim, rng: &mut SmallRng) -> Gemm {
    let wild = aim == Aim::OutsideScratchpad;
    let (counts, s) = loops(config, if wild { 6 } else { 3 }, rng);
    let uops = rng.random_range(1..=6);
    let uop = first(rng, config.gemm_uop_depth, if wild { 0 } else { uops });
    let base = |rng: &mut SmallRng, depth: u32| {
        if wild { rng.random_range(0..depth) } else { rarely(rng, depth / 2) }
    };
    Gemm {
        accumulate: rng.random_bool(0.7),
        wgt_zp: if config.wgt_zp && rng.random_bool(0.3) { rng.random() } else { 0 },
        uop: uop.min(config.gemm_uop_depth - 1),
        uops,
        count0: counts[0],
        count1: counts[1],
        count2: counts[2],
        acc: base(rng, config.acc_depth),
        inp: base(rng, config.inp_depth),
        wgt: base(rng, config.wgt_depth),
        acc0: s[0][0],
        inp0: s[0][1],
        wgt0: s[0][2],
        acc1: s[1][0],
        inp1: s[1][1],
        wgt1: s[1][2],
        acc2: s[2][0],
        inp2: s[2][1],
        wgt2: s[2][2],
    }
}

fn vector(config: &HwConfig, aim: Aim, rng: &mut SmallRng) -> Vector {
    let wild = aim == Aim::OutsideScratchpad;
    let built: Vec<VecOp> = VecOp::ALL.iter().copied().filter(|op| op.is_built(config)).collect();
    let op = pick(rng, &built);
    // Which operands an operation supports does not depend on its other operands.
    let takes = |field: &str, x: Vector| {
        illegal_reasons(&Insn::new(Vector { op, ..x }), config).iter().all(|illegal| illegal.field != field)
    };
    let x = Vector::default();
    let dsts: Vec<VecDst> = VecDst::ALL.into_iter().filter(|&dst| takes("dst", Vector { dst, ..x })).collect();
    let firsts: Vec<VecSrc> = VecSrc::ALL.into_iter().filter(|&a| takes("a", Vector { a, ..x })).collect();
    let seconds: Vec<VecSrc> = VecSrc::ALL.into_iter().filter(|&b| takes("b", Vector { b, ..x })).collect();
    let (counts, s) = loops(config, if wild { 6 } else { 3 }, rng);
    let uops = rng.random_range(1..=5);
    let uop = first(rng, config.vector_uop_depth, if wild { 0 } else { uops });
    let deepest = config.acc_depth.min(config.out_depth);
    let base = |rng: &mut SmallRng| {
        if wild || rng.random_bool(0.3) { rng.random_range(0..deepest) } else { rarely(rng, deepest / 2) }
    };
    Vector {
        op,
        mode: if op.has_mode() && rng.random() { Rounding::Single } else { Rounding::Double },
        dst: pick(rng, &dsts),
        a: pick(rng, &firsts),
        b: pick(rng, &seconds),
        descriptor: if op.needs_descriptor(VecSrc::None) || rng.random() {
            first(rng, config.param_depth, if wild { 1 } else { config.constant_entries(op) })
        } else {
            0
        },
        uop: uop.min(config.vector_uop_depth - 1),
        uops,
        count0: counts[0],
        count1: counts[1],
        count2: counts[2],
        dst_at: base(rng),
        a_at: base(rng),
        b_at: if op == VecOp::Mac { rng.random_range(0..TAP_STRIDE * config.param_depth) } else { base(rng) },
        dst0: s[0][0],
        a0: s[0][1],
        b0: s[0][2],
        dst1: s[1][0],
        a1: s[1][1],
        b1: s[1][2],
        dst2: s[2][0],
        a2: s[2][1],
        b2: s[2][2],
    }
}
