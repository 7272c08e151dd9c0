//! A 3x3 convolution of 28 x 28 pixels, 128 to 128 channels, on the 1x16x16 preset. It is tiled the way a compiler does
//! it: rows of output pixels in the inner loops, the kernel and the input blocks as micro-ops. It computes only the
//! products, or a whole layer from DRAM to DRAM: bias, requantization and clamp of each tile, and the sum with a
//! residual.

use tilewright_hw::device::{Base, Command, Device};
use tilewright_hw::isa::{
    Descriptor, Gemm, GemmUop, INSN_BYTES, Insn, Load, Op, Store, Unit, VecDst, VecOp, VecSrc, Vector, VectorUop,
    encode,
};
use tilewright_hw::{HwConfig, Mem};

const PIXELS: u32 = 28;
const BLOCKS: u32 = 8;
const ROWS: u32 = 4;
const WIDTH: u32 = PIXELS + 2;
const STREAM: u64 = 0x40_0000;
const UOPS: u64 = 0x50_0000;
const VECTOR_UOP: u64 = 0x50_8000;
const PARAMS: u64 = 0x51_0000;
const RESULTS: u64 = 0x60_0000;
/// First entry of inp that holds a residual tile.
const RESIDUAL: u32 = BLOCKS * (ROWS + 2) * WIDTH;

/// What happens to a tile's sums.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Results {
    /// Nothing: they stay in acc.
    #[allow(dead_code, reason = "not every benchmark uses it")]
    Sums,
    /// They become bytes in DRAM: bias, requantization, clamp, and the sum with a residual.
    #[allow(dead_code, reason = "not every benchmark uses it")]
    Bytes,
}

/// Returns a param entry for each of the two descriptors and one for each output block, with plausible scales.
fn params(config: &HwConfig) -> Vec<u8> {
    let requant = Descriptor { lo: -128, hi: 127, zero_point: -3, ..Descriptor::default() };
    let sum = Descriptor {
        multiplier_a: 1 << 30,
        multiplier_b: 3 << 29,
        multiplier: 5 << 28,
        shift_b: -1,
        shift: -19,
        left_shift: 20,
        zero_a: -3,
        zero_b: 5,
        ..requant
    };
    let n = config.block_out as usize;
    let mut bytes = vec![0; (2 + BLOCKS as usize) * 9 * n];
    for (entry, descriptor) in bytes.chunks_exact_mut(9 * n).zip([requant, sum]) {
        entry[..36].copy_from_slice(&descriptor.to_bytes());
    }
    for (block, entry) in bytes.chunks_exact_mut(9 * n).skip(2).enumerate() {
        for o in 0..n {
            let channel = (block * n + o) as i32;
            let words = [channel * 50 - 3000, (1 << 30) + channel * 7_654_321].map(i32::to_le_bytes).concat();
            for (k, byte) in words.iter().enumerate() {
                entry[k * n + o] = *byte;
            }
            entry[8 * n + o] = -11i8 as u8;
        }
    }
    bytes
}

/// Returns the instructions from a tile's sums to bytes in DRAM.
fn finish(tile: u32, block: u32, entry: u32) -> Vec<Insn> {
    let pixels = ROWS * PIXELS;
    let at = u64::from((block * PIXELS * PIXELS + tile * pixels) * entry);
    let rows = Vector { dst: VecDst::Out, count0: pixels, dst0: 1, a0: 1, ..Vector::default() };
    let requant = Vector { op: VecOp::Requant, b: VecSrc::Param, b_at: 2 + block, ..rows };
    let residual = Load { offset: at, entry: RESIDUAL, row_bytes: pixels * entry, ..Load::default() };
    let sum = Vector { op: VecOp::Qadd, a: VecSrc::Out, b: VecSrc::Inp, descriptor: 1, b0: 1, b_at: RESIDUAL, ..rows };
    let store = Store { offset: RESULTS + at, row_bytes: pixels * entry, ..Store::default() };
    // Each instruction waits for the previous one, so the units run in program order.
    let order = [Unit::Gemm, Unit::Load, Unit::Vector, Unit::Vector, Unit::Store, Unit::Load];
    let ops: [Op; 4] = [residual.into(), requant.into(), sum.into(), store.into()];
    let mut insns = ops.map(Insn::new).to_vec();
    for (i, insn) in insns.iter_mut().enumerate() {
        if order[i] != order[i + 1] {
            insn.pop.insert(order[i]);
        }
        if order[i + 1] != order[i + 2] {
            insn.push.insert(order[i + 2]);
        }
    }
    insns
}

/// Writes the program for all tiles of 4 rows of 28 pixels, each with 8 output blocks from 8 input blocks. Returns its
/// command.
pub fn stream(config: &HwConfig, device: &mut dyn Device, results: Results) -> Command {
    let entry = config.block_in;
    let mut uops = Vec::new();
    for block in 0..BLOCKS {
        for ky in 0..3 {
            for kx in 0..3 {
                let inp = block * (ROWS + 2) * WIDTH + ky * WIDTH + kx;
                uops.push(GemmUop { acc: 0, inp, wgt: block * 9 + ky * 3 + kx });
            }
        }
    }
    let bytes: Vec<u8> = uops.iter().flat_map(|u| u.to_bytes(config)).collect();
    device.write(UOPS, &bytes).expect("inside memory");
    let mut program =
        vec![Insn::new(Load { mem: Mem::GemmUop, offset: UOPS, row_bytes: bytes.len() as u32, ..Load::default() })];
    if results == Results::Bytes {
        let (params, uop) = (params(config), VectorUop::default().to_bytes(config));
        device.write(PARAMS, &params).expect("inside memory");
        device.write(VECTOR_UOP, &uop).expect("inside memory");
        let (mem, row_bytes) = (Mem::Param, params.len() as u32);
        program.push(Insn::new(Load { mem, offset: PARAMS, row_bytes, ..Load::default() }));
        let (mem, row_bytes) = (Mem::VectorUop, uop.len() as u32);
        program.push(Insn::new(Load { mem, offset: VECTOR_UOP, row_bytes, ..Load::default() }));
    }
    // Load the next operands only after the previous products, so that no two units use the same port.
    let before = if results == Results::Bytes { Unit::Store } else { Unit::Gemm };
    let loads = |op: Load, first: bool, last: bool| {
        let mut insn = Insn::new(op);
        if first {
            insn.pop.insert(before);
        }
        if last {
            insn.push.insert(Unit::Gemm);
        }
        insn
    };
    for tile in 0..PIXELS / ROWS {
        let input = Load {
            offset: u64::from(tile * ROWS * PIXELS * entry),
            row_bytes: PIXELS * entry,
            rows: ROWS + 2,
            planes: BLOCKS,
            row_stride: u64::from(PIXELS * entry),
            plane_stride: u64::from(PIXELS * (PIXELS + 2) * entry),
            x_before: 1,
            x_after: 1,
            ..Load::default()
        };
        program.push(loads(input, tile > 0, false));
        for block in 0..BLOCKS {
            let weights = Load {
                mem: Mem::Wgt,
                offset: 0x20_0000 + u64::from(block) * 72 * 256,
                row_bytes: 72 * 256,
                ..Load::default()
            };
            // The first block does not wait here, because the tile's input already did.
            program.push(loads(weights, block > 0, true));
            let mut first = Insn::new(Gemm {
                accumulate: false,
                uops: 1,
                count0: ROWS,
                count1: PIXELS,
                acc0: PIXELS,
                inp0: WIDTH,
                acc1: 1,
                inp1: 1,
                ..Gemm::default()
            });
            first.pop.insert(Unit::Load);
            program.push(first);
            let mut rest = Insn::new(Gemm {
                uop: 1,
                uops: uops.len() as u32 - 1,
                count0: ROWS,
                count1: PIXELS,
                acc0: PIXELS,
                inp0: WIDTH,
                acc1: 1,
                inp1: 1,
                ..Gemm::default()
            });
            rest.push.insert(Unit::Load);
            program.push(rest);
            if results == Results::Bytes {
                program.extend(finish(tile, block, entry));
            }
        }
    }
    let bytes: Vec<u8> = program.iter().flat_map(|i| encode(i, config).expect("fits")).collect();
    device.write(STREAM, &bytes).expect("inside memory");
    Command {
        stream_addr: STREAM,
        insns: (bytes.len() / INSN_BYTES) as u32,
        bases: vec![Base { addr: 0, limit: device.memory_bytes() }],
        cycle_limit: None,
    }
}

/// Fills memory with random operands.
pub fn fill(memory: &mut [u8]) {
    let mut seed = 1u32;
    for byte in memory[..0x30_0000].iter_mut() {
        seed = seed.wrapping_mul(0x19660d).wrapping_add(0x3c6ef35f);
        *byte = (seed >> 24) as u8;
    }
}
