//! The input channels that an output tile of a product multiplies.

use super::first_blocks::FirstBlocks;
use super::op::Conv;
use super::sizes::Sizes;
use crate::codegen::accel::view::View;
use crate::te::Expr;
use tilewright_hw::config::HwConfig;

/// The terms of a sum over input channels: blocks, and the entries of a block's pixel.
pub struct Depth {
    /// Blocks.
    pub blocks: i64,
    /// Entries of each.
    pub entries: i64,
    /// Input tiles, which can be fewer than the entries of all blocks.
    tiles: i64,
    /// Entries of a pixel of a block in inp.
    ratio: i64,
    firsts: FirstBlocks,
}

impl Depth {
    pub fn new(conv: &Conv, sizes: &Sizes, input: View, config: &HwConfig) -> Depth {
        let (ratio, tiles) = (sizes.in_ratio, sizes.in_tiles);
        Depth {
            blocks: tiles.div_ceil(ratio) as i64,
            entries: ratio.min(tiles) as i64,
            tiles: tiles as i64,
            ratio: ratio as i64,
            firsts: sizes.first_blocks(conv, input, config),
        }
    }

    /// Returns the block of a term, given the block and the tile of the output.
    pub fn block(&self, out_block: &Expr, out_tile: &Expr, d: &Expr) -> Expr {
        match self.firsts.at(out_block, out_tile) {
            None => d.clone(),
            Some(first) if self.blocks == 1 => first,
            Some(first) => first + d.clone(),
        }
    }

    /// Returns the input tile of a term, counted from the first of its output tile.
    pub fn tile(&self, d: &Expr, e: &Expr) -> Expr {
        if self.ratio == 1 { d.clone() } else { d.clone() * self.ratio + e.clone() }
    }

    /// Returns the condition for a term's input tile to exist; `None` if all exist.
    pub fn exists(&self, d: &Expr, e: &Expr) -> Option<Expr> {
        (self.blocks * self.entries > self.tiles).then(|| self.tile(d, e).lt(Expr::int(self.tiles)))
    }
}
