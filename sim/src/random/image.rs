//! Memory layout of random programs: data, micro-ops, parameters, results and stream.

use rand::Rng;
use rand::rngs::SmallRng;
use std::ops::Range;
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::Base;
use tilewright_hw::isa::{
    DESCRIPTOR_BYTES, Descriptor, GemmUop, PARAM_BIAS_ROW, PARAM_MULTIPLIER_ROW, PARAM_SHIFT_ROW, VectorUop,
};

/// Bytes of device memory.
pub const MEMORY_BYTES: u64 = 0x40000;
/// Random bytes for loads.
pub(super) const DATA: Range<u64> = 0..0x10000;
/// Micro-ops of gemm with small indices.
pub(super) const GEMM_UOPS: Range<u64> = 0x10000..0x11000;
/// Micro-ops of vector with small indices.
pub(super) const VECTOR_UOPS: Range<u64> = 0x11000..0x12000;
/// Bias rows for the shifts that dump acc (see [`shift_words`]), and zeros at the end.
pub(super) const SHIFTS: Range<u64> = 0x13000..0x14000;
/// Zeros at the end of [`SHIFTS`].
pub(super) const ZEROS: u64 = SHIFTS.end - 0x100;
/// Meaningful param entries: requantization parameters and descriptors in turn.
pub(super) const PARAMS: Range<u64> = 0x12000..0x13000;
/// Memory that stores write and loads read.
pub(super) const RESULTS: Range<u64> = 0x14000..0x1c000;
/// Memory for the final stores of the scratchpads.
pub(super) const DUMP: Range<u64> = 0x1c000..0x30000;
/// Address of the stream.
pub const STREAM: u64 = 0x30000;

/// The base register whose region passes the end of memory.
pub(super) const BAD_BASE: u32 = 3;

/// Returns the base registers that every random program uses.
pub(super) fn bases(config: &HwConfig) -> Vec<Base> {
    // If addresses can be odd, make one region's address odd.
    let odd = if config.dma_align == 1 { 3 } else { 0 };
    vec![
        Base { addr: 0, limit: STREAM },
        Base { addr: odd, limit: RESULTS.start - odd },
        Base { addr: RESULTS.start, limit: RESULTS.end - RESULTS.start },
        Base { addr: MEMORY_BYTES - 0x40, limit: 0x1000 },
    ]
}

/// Returns the base registers that cover a region, each with the offset of the region's first byte, which can be
/// negative.
pub(super) fn bases_of(region: &Range<u64>, config: &HwConfig) -> Vec<(u32, i64)> {
    bases(config)
        .iter()
        .enumerate()
        .take(BAD_BASE as usize)
        .filter(|(_, b)| region.start + 64 >= b.addr && region.end <= b.addr + b.limit)
        .map(|(i, b)| (i as u32, region.start as i64 - b.addr as i64))
        .collect()
}

/// Generates the contents of memory.
pub(super) fn image(config: &HwConfig, rng: &mut SmallRng) -> Vec<u8> {
    let mut memory = vec![0; MEMORY_BYTES as usize];
    let bytes = &mut memory[DATA.start as usize..DATA.end as usize];
    for chunk in bytes.chunks_mut(64) {
        match rng.random_range(0..4) {
            0 => chunk.fill_with(|| if rng.random() { 0x80 } else { 0x7f }),
            1 => chunk.fill_with(|| rng.random_range(-4i8..=4) as u8),
            _ => rng.fill(chunk),
        }
    }
    let mut at = GEMM_UOPS.start as usize;
    let few = |rng: &mut SmallRng, depth: u32| {
        let part = [2, 4, 8][rng.random_range(0..3usize)];
        rng.random_range(0..(depth / part).max(1))
    };
    let size = config.gemm_uop_bytes() as usize;
    while at + size <= GEMM_UOPS.end as usize {
        let uop = GemmUop {
            acc: few(rng, config.acc_depth),
            inp: few(rng, config.inp_depth),
            wgt: few(rng, config.wgt_depth),
        };
        memory[at..at + size].copy_from_slice(&uop.to_bytes(config));
        at += size;
    }
    let mut at = VECTOR_UOPS.start as usize;
    let size = config.vector_uop_bytes() as usize;
    let depth = config.acc_depth.min(config.out_depth).min(config.inp_depth);
    while at + size <= VECTOR_UOPS.end as usize {
        let uop = VectorUop { dst: few(rng, depth), a: few(rng, depth), b: few(rng, depth) };
        memory[at..at + size].copy_from_slice(&uop.to_bytes(config));
        at += size;
    }
    let outputs = config.block_out as usize;
    // The lowest byte of a bias is in the first row of an entry. The other three are zero.
    for amount in SHIFT_AMOUNTS {
        let at = shift_words(amount) as usize;
        memory[at..at + config.block_out as usize].fill(amount as u8);
    }
    let mut at = PARAMS.start as usize;
    let entry = config.param_entry_bytes() as usize;
    while at + entry <= PARAMS.end as usize {
        for o in 0..outputs {
            let bias = rng.random_range(-20000i32..20000).to_le_bytes();
            let multiplier = rng.random_range(1 << 30..=i32::MAX).to_le_bytes();
            for row in 0..4 {
                memory[at + (PARAM_BIAS_ROW as usize + row) * outputs + o] = bias[row];
                memory[at + (PARAM_MULTIPLIER_ROW as usize + row) * outputs + o] = multiplier[row];
            }
            memory[at + PARAM_SHIFT_ROW as usize * outputs + o] = rng.random_range(-12i8..=3) as u8;
        }
        at += entry;
        let entries = config.descriptor_entries() as usize;
        if at + entries * entry > PARAMS.end as usize {
            break;
        }
        memory[at..at + DESCRIPTOR_BYTES].copy_from_slice(&descriptor(rng).to_bytes());
        at += entries * entry;
    }
    memory
}

fn descriptor(rng: &mut SmallRng) -> Descriptor {
    let multiplier = |rng: &mut SmallRng| rng.random_range(1 << 30..=i32::MAX);
    Descriptor {
        scalar: rng.random_range(-1000..1000),
        lo: rng.random_range(-160..0),
        hi: rng.random_range(0..160),
        zero_point: rng.random_range(-128..128),
        multiplier_a: multiplier(rng),
        multiplier_b: multiplier(rng),
        multiplier: multiplier(rng),
        shift_a: rng.random_range(-4..=1),
        shift_b: rng.random_range(-4..=1),
        shift: rng.random_range(-20..=3),
        left_shift: rng.random_range(0..=20),
        zero_a: rng.random(),
        zero_b: rng.random(),
        reserved: 0,
    }
}

/// Shift amounts used to dump acc.
pub(super) const SHIFT_AMOUNTS: [u32; 2] = [24, 8];

/// Returns the address of the bias rows for a shift amount.
pub(super) fn shift_words(amount: u32) -> u64 {
    SHIFTS.start + u64::from(amount) * 64
}
