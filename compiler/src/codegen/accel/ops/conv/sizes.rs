//! Sizes of a product in tiles of the array, and the rows and columns of the input that its outputs read.

use super::first_blocks::FirstBlocks;
use super::op::Conv;
use crate::codegen::accel::padded_range::{PaddedRange, reach};
use crate::codegen::accel::view::View;
use tilewright_hw::config::HwConfig;

/// Sizes of a product, in tiles of the array and in blocks of channels.
pub struct Sizes {
    /// Entries of inp per pixel of a block.
    pub in_ratio: usize,
    /// Entries of out per pixel of a block.
    pub out_ratio: usize,
    /// Input tiles (over the input channels) that an output tile needs.
    pub in_tiles: usize,
    /// Blocks of the input.
    pub in_blocks: usize,
    /// Blocks of the output.
    pub out_blocks: usize,
}

impl Sizes {
    pub fn new(conv: &Conv, input: View, output: View, config: &HwConfig) -> Sizes {
        let (block, block_in) = (config.block() as usize, config.block_in as usize);
        let (in_ratio, out_ratio) = (block / block_in, block / config.block_out as usize);
        let out_blocks = output.c.div_ceil(block);
        let all = input.c.div_ceil(block_in);
        let mut sizes = Sizes { in_ratio, out_ratio, in_tiles: all, in_blocks: input.c.div_ceil(block), out_blocks };
        if conv.groups > 1 {
            let tiles = output.c.div_ceil(config.block_out as usize);
            sizes.in_tiles = 1;
            loop {
                let width = |(first, last): (usize, usize)| last - sizes.clamped(first, input, config) + 1;
                let widest = (0..tiles).map(|t| width(sizes.group_tiles(conv, t, config))).max().unwrap_or(1);
                if widest <= sizes.in_tiles {
                    break;
                }
                sizes.in_tiles = widest;
            }
        }
        sizes
    }

    /// Returns the first and last input tile that an output tile's channels need. The first one begins a block.
    fn group_tiles(&self, conv: &Conv, out_tile: usize, config: &HwConfig) -> (usize, usize) {
        let (bo, bi) = (config.block_out as usize, config.block_in as usize);
        let outputs = conv.finish.bias.len();
        let (per_group, depth) = ((outputs / conv.groups).max(1), conv.depth());
        let first = (out_tile * bo).min(outputs - 1) / per_group * depth;
        let last = (((out_tile + 1) * bo).min(outputs) - 1) / per_group * depth + depth - 1;
        (first / bi / self.in_ratio * self.in_ratio, last / bi)
    }

    /// Returns the first of the [`Sizes::in_tiles`] input tiles that are multiplied for an output tile.
    pub fn first_tile(&self, conv: &Conv, out_tile: usize, input: View, config: &HwConfig) -> usize {
        if conv.groups == 1 {
            return 0;
        }
        let tiles = conv.finish.bias.len().div_ceil(config.block_out as usize);
        self.clamped(self.group_tiles(conv, out_tile.min(tiles - 1), config).0, input, config)
    }

    /// Returns the first input tile, or an earlier one that begins a block, so that all of [`Sizes::in_tiles`] exist.
    fn clamped(&self, first: usize, input: View, config: &HwConfig) -> usize {
        let all = input.c.div_ceil(config.block() as usize) * self.in_ratio;
        first.min(all.saturating_sub(self.in_tiles) / self.in_ratio * self.in_ratio)
    }

    /// Returns the first block of the input of each output tile.
    pub fn first_blocks(&self, conv: &Conv, input: View, config: &HwConfig) -> FirstBlocks {
        let tiles = if conv.groups == 1 { 0 } else { self.out_blocks * self.out_ratio };
        let first = |tile: usize| (self.first_tile(conv, tile, input, config) / self.in_ratio) as i64;
        FirstBlocks { of_tiles: (0..tiles).map(first).collect(), out_ratio: self.out_ratio }
    }

    /// Whether parts of the output blocks read parts of the input, all the same distance apart.
    pub fn is_grouped(&self, conv: &Conv, input: View, config: &HwConfig) -> bool {
        conv.groups > 1 && self.first_blocks(conv, input, config).is_even()
    }

    /// Returns the first block and the number of blocks of the input that are loaded for some blocks of the output.
    pub fn blocks_for(
        &self,
        conv: &Conv,
        blocks: std::ops::Range<usize>,
        input: View,
        config: &HwConfig,
    ) -> (usize, usize) {
        if !self.is_grouped(conv, input, config) {
            return (0, self.in_blocks);
        }
        let tiles = blocks.start * self.out_ratio..blocks.end * self.out_ratio;
        let first = self.first_tile(conv, tiles.start, input, config) / self.in_ratio;
        let last = (self.first_tile(conv, tiles.end - 1, input, config) + self.in_tiles - 1) / self.in_ratio;
        (first, last - first + 1)
    }
}

/// Returns the rows of input for some output rows, with the distance between loaded rows: a kernel of one row skips the
/// rows that it does not read.
pub fn row_span(conv: &Conv, first: usize, count: usize, input: View) -> (PaddedRange, usize) {
    let [stride, pad] = [conv.strides[0], conv.pads[0]];
    if skips_rows(conv) {
        return (PaddedRange { start: first * stride, inside: count, before: 0, after: 0 }, stride);
    }
    (PaddedRange::new(first, count, stride, pad, reach(conv.kernel[0], conv.dilations[0]), input.h), 1)
}

/// Whether loads skip rows that the kernel does not read.
pub fn skips_rows(conv: &Conv) -> bool {
    conv.kernel[0] == 1 && conv.strides[0] > 1 && conv.pads[0] == 0 && conv.pads[2] == 0
}

/// Returns the columns of input for some output columns.
pub fn column_span(conv: &Conv, first: usize, count: usize, input: View) -> PaddedRange {
    PaddedRange::new(first, count, conv.strides[1], conv.pads[1], reach(conv.kernel[1], conv.dilations[1]), input.w)
}
