//! A 3x3 convolution of 28 x 28 pixels, 128 to 128 channels, on the 1x16x16 preset, tiled as a compiler tiles it: rows of
//! output pixels in the inner loops, the kernel and the input blocks as micro-ops.

use tilewright_hw::device::{Base, Command, Device};
use tilewright_hw::isa::{Gemm, GemmUop, INSN_BYTES, Insn, Load, Unit, encode};
use tilewright_hw::{HwConfig, Mem};

const PIXELS: u32 = 28;
const BLOCKS: u32 = 8;
const ROWS: u32 = 4;
const WIDTH: u32 = PIXELS + 2;
const STREAM: u64 = 0x40_0000;
const UOPS: u64 = 0x50_0000;

/// One tile: 4 rows of 28 pixels of one output block, from 8 input blocks.
pub fn stream(config: &HwConfig, device: &mut dyn Device) -> Command {
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
    // The next operands are loaded when the products before are done, so that no two units meet at a port.
    let loads = |op: Load, first: bool, last: bool| {
        let mut insn = Insn::new(op);
        if first {
            insn.pop.insert(Unit::Gemm);
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

/// Random operands.
pub fn fill(memory: &mut [u8]) {
    let mut seed = 1u32;
    for byte in memory[..0x30_0000].iter_mut() {
        seed = seed.wrapping_mul(0x19660d).wrapping_add(0x3c6ef35f);
        *byte = (seed >> 24) as u8;
    }
}
