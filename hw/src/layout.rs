//! Layout of tensors in device memory. Compiler, driver and runtime take every address from here.
//!
//! Version 2:
//! - Activations are blocked by channels, `[N][C/b][H][W][b]` with b the block of [`HwConfig::block`]. If windows of
//!   columns are loaded as channels, activations are dense with padded rows instead, `[N][H][before + W + behind][C]`.
//! - Weights are tiles in the order in which gemm reads them.
//! - Parameters are nine rows of block_out bytes per entry.

use crate::config::HwConfig;
use crate::isa::{PARAM_BIAS_ROW, PARAM_MULTIPLIER_ROW, PARAM_ROWS, PARAM_SHIFT_ROW};

/// Version of the layout; change it when the meaning of bytes in memory changes.
pub const LAYOUT_VERSION: u32 = 2;

/// An int8 activation tensor in device memory, with channels in blocks of `block`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Activation {
    /// Images.
    pub n: usize,
    /// Channels of the tensor; the last block is padded.
    pub c: usize,
    /// Rows.
    pub h: usize,
    /// Columns.
    pub w: usize,
    /// Channels of a block.
    pub block: usize,
}

impl Activation {
    /// The layout of a tensor for a configuration.
    pub fn new(config: &HwConfig, n: usize, c: usize, h: usize, w: usize) -> Activation {
        Activation { n, c, h, w, block: config.block() as usize }
    }

    /// Blocks of channels.
    pub fn blocks(&self) -> usize {
        self.c.div_ceil(self.block)
    }

    /// Bytes from one pixel of a block to the next.
    pub fn pixel_stride(&self) -> usize {
        self.block
    }

    /// Bytes from one row of a block to the next.
    pub fn row_stride(&self) -> usize {
        self.w * self.block
    }

    /// Bytes from one block of channels to the next.
    pub fn block_stride(&self) -> usize {
        self.h * self.row_stride()
    }

    /// Bytes from one image to the next.
    pub fn image_stride(&self) -> usize {
        self.blocks() * self.block_stride()
    }

    /// Bytes of the tensor.
    pub fn bytes(&self) -> usize {
        self.n * self.image_stride()
    }

    /// Byte of an element.
    pub fn offset(&self, n: usize, c: usize, y: usize, x: usize) -> usize {
        n * self.image_stride()
            + c / self.block * self.block_stride()
            + y * self.row_stride()
            + x * self.block
            + c % self.block
    }

    /// Packs `n * c * h * w` values into blocks, reading each from `at(n, c, y, x)`. Padding channels are set to
    /// `fill`.
    pub fn pack(&self, fill: i8, at: impl Fn(usize, usize, usize, usize) -> i8) -> Vec<i8> {
        let mut packed = vec![fill; self.bytes()];
        self.each(|n, c, y, x| packed[self.offset(n, c, y, x)] = at(n, c, y, x));
        packed
    }

    /// Calls `put(n, c, y, x, value)` for every element of a blocked tensor. Bytes past the end of `packed` read as 0.
    pub fn unpack(&self, packed: &[i8], mut put: impl FnMut(usize, usize, usize, usize, i8)) {
        self.each(|n, c, y, x| put(n, c, y, x, packed.get(self.offset(n, c, y, x)).copied().unwrap_or(0)));
    }

    fn each(&self, mut f: impl FnMut(usize, usize, usize, usize)) {
        for n in 0..self.n {
            for c in 0..self.c {
                for y in 0..self.h {
                    for x in 0..self.w {
                        f(n, c, y, x);
                    }
                }
            }
        }
    }
}

/// Weights of a matrix product or convolution, as gemm's tiles: `[O/bo][I/bi][taps][bo][bi]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Weights {
    /// Output channels.
    pub o: usize,
    /// Input channels.
    pub i: usize,
    /// Kernel positions, row by row.
    pub taps: usize,
    /// Output channels of a tile.
    pub block_out: usize,
    /// Input channels of a tile.
    pub block_in: usize,
}

impl Weights {
    /// The layout of weights for a configuration.
    pub fn new(config: &HwConfig, o: usize, i: usize, taps: usize) -> Weights {
        Weights { o, i, taps, block_out: config.block_out as usize, block_in: config.block_in as usize }
    }

    /// Tiles over the output channels.
    pub fn out_tiles(&self) -> usize {
        self.o.div_ceil(self.block_out)
    }

    /// Tiles over the input channels.
    pub fn in_tiles(&self) -> usize {
        self.i.div_ceil(self.block_in)
    }

    /// Index of a tile.
    pub fn tile(&self, out_tile: usize, in_tile: usize, tap: usize) -> usize {
        (out_tile * self.in_tiles() + in_tile) * self.taps + tap
    }

    /// Bytes of a tile.
    pub fn tile_bytes(&self) -> usize {
        self.block_out * self.block_in
    }

    /// Bytes of all tiles.
    pub fn bytes(&self) -> usize {
        self.out_tiles() * self.in_tiles() * self.taps * self.tile_bytes()
    }

    /// Packs weights into tiles, reading each from `at(output channel, input channel, tap)`. Padding is zero.
    pub fn pack(&self, at: impl Fn(usize, usize, usize) -> i8) -> Vec<i8> {
        let mut packed = vec![0; self.bytes()];
        for o in 0..self.o {
            for i in 0..self.i {
                for tap in 0..self.taps {
                    let tile = self.tile(o / self.block_out, i / self.block_in, tap);
                    let within = o % self.block_out * self.block_in + i % self.block_in;
                    packed[tile * self.tile_bytes() + within] = at(o, i, tap);
                }
            }
        }
        packed
    }
}

/// Packs requantization parameters, one entry per block of output channels: rows of bias, multiplier and shift bytes.
///
/// Each slice has one value per channel. Channels that pad the last block get zeros.
pub fn pack_params(config: &HwConfig, bias: &[i32], multiplier: &[i32], shift: &[i8]) -> Vec<u8> {
    let block = config.block_out as usize;
    let entries = bias.len().max(multiplier.len()).max(shift.len()).div_ceil(block);
    let mut packed = vec![0u8; entries * PARAM_ROWS as usize * block];
    for entry in 0..entries {
        let at = |first: u32, byte: usize| (entry * PARAM_ROWS as usize + first as usize + byte) * block;
        for lane in 0..block {
            let channel = entry * block + lane;
            let b = bias.get(channel).copied().unwrap_or(0).to_le_bytes();
            let m = multiplier.get(channel).copied().unwrap_or(0).to_le_bytes();
            let s = shift.get(channel).copied().unwrap_or(0) as u8;
            for row in 0..4 {
                packed[at(PARAM_BIAS_ROW, row) + lane] = b[row];
                packed[at(PARAM_MULTIPLIER_ROW, row) + lane] = m[row];
            }
            packed[at(PARAM_SHIFT_ROW, 0) + lane] = s;
        }
    }
    packed
}

/// Packs a lookup table into whole param entries. Element `i` is the result for the unsigned byte `i`.
pub fn pack_table(config: &HwConfig, table: &[i8; crate::isa::TABLE_BYTES]) -> Vec<u8> {
    let (whole, part) = (config.param_entry_bytes() as usize, config.table_entry_bytes() as usize);
    let mut packed = vec![0u8; config.table_entries() as usize * whole];
    for (entry, values) in packed.chunks_mut(whole).zip(table.chunks(part)) {
        entry.iter_mut().zip(values).for_each(|(to, &v)| *to = v as u8);
    }
    packed
}

/// Packs a descriptor into whole param entries.
pub fn pack_descriptor(config: &HwConfig, descriptor: &crate::isa::Descriptor) -> Vec<u8> {
    let mut packed = descriptor.to_bytes().to_vec();
    packed.resize((config.descriptor_entries() * config.param_entry_bytes()) as usize, 0);
    packed
}
