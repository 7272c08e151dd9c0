//! Loop nests of gemm for a step's tiles.

use super::{ConvEmission, ConvStep};
use crate::codegen::accel::emit::Emit;
use crate::codegen::accel::ops::conv::sizes::skips_rows;
use crate::codegen::accel::product::ProductTile;
use std::ops::Range;
use tilewright_driver::{DriverError, Nest};

impl ConvEmission<'_> {
    /// Returns the work of a pass for all output tiles of a step.
    fn tile(&self, s: &ConvStep, in_blocks: &Range<usize>) -> ProductTile {
        let (conv, sizes) = (self.conv, &self.sizes);
        let pair = |v: [usize; 2]| v.map(|n| n as u32);
        let row_step = if skips_rows(conv) && self.on_chip.input.is_none() { 1 } else { conv.strides[0] as u32 };
        ProductTile {
            blocks: s.blocks.len() as u32,
            out_ratio: sizes.out_ratio as u32,
            pixels: pair(s.pixels.size),
            tiles: self.pass_tiles(in_blocks).len() as u32,
            first: 0,
            in_ratio: sizes.in_ratio as u32,
            window: [in_blocks.len() as u32, s.window[0] as u32, s.window[1] as u32],
            kernel: pair(conv.kernel),
            steps: [row_step, conv.strides[1] as u32],
            dilations: pair(conv.dilations),
        }
    }

    /// Returns the loops of a pass for output tile `t` of a step. Weights are counted from the tile's first.
    fn one_nest(&self, e: &mut Emit, s: &ConvStep, in_blocks: &Range<usize>, t: usize) -> Result<Nest, DriverError> {
        let (sizes, all) = (&self.sizes, self.tile(s, in_blocks));
        let (ri, ro) = (all.in_ratio, all.out_ratio);
        let first = if self.conv.groups == 1 {
            in_blocks.start * sizes.in_ratio
        } else {
            sizes.first_tile(self.conv, s.blocks.start * sizes.out_ratio + t, self.input.view, e.config)
        };
        let block = (first / sizes.in_ratio - in_blocks.start) as u32;
        let (t, first) = (t as u32, (first % sizes.in_ratio) as u32);
        let blocks = (first + all.tiles).div_ceil(ri);
        let one = ProductTile { blocks: 1, out_ratio: 1, first, window: [blocks, all.window[1], all.window[2]], ..all };
        let mut nest = e.nest(&one)?;
        // The distance of the sums of neighboring pixels is the number of entries per pixel of a block.
        nest.dims.iter_mut().for_each(|d| d.steps[0] *= ro);
        let plane = all.window[1] * all.window[2] * ri;
        nest.at = [t / ro * all.pixels[0] * all.pixels[1] * ro + t % ro, block * plane, 0];
        Ok(nest)
    }

    /// Returns the loops of a pass: one nest for all output tiles or, with groups, one for each.
    pub(super) fn nests(&self, e: &mut Emit, s: &ConvStep, in_blocks: &Range<usize>) -> Result<Vec<Nest>, DriverError> {
        let all = self.tile(s, in_blocks);
        if self.conv.groups == 1 {
            return Ok(vec![e.nest(&all)?]);
        }
        let per_tile = all.tiles * self.taps() as u32;
        let each = |t: usize| {
            let mut nest = self.one_nest(e, s, in_blocks, t)?;
            nest.at[2] = t as u32 * per_tile;
            Ok(nest)
        };
        (0..s.blocks.len() * self.sizes.out_ratio).map(each).collect()
    }

    /// Returns the loops for the weights beyond 8 bits. Each output tile runs only the micro-ops that have such
    /// weights.
    pub(super) fn rest_nests(
        &self,
        e: &mut Emit,
        s: &ConvStep,
        in_blocks: &Range<usize>,
    ) -> Result<Vec<Nest>, DriverError> {
        let (tiles, taps) = (self.pass_tiles(in_blocks), self.taps());
        let (first, out_tiles) = (s.blocks.start * self.sizes.out_ratio, s.blocks.len() * self.sizes.out_ratio);
        // These weights follow the others, in the order of output tiles.
        let mut at = (out_tiles * tiles.len() * taps) as u32;
        let mut nests = Vec::new();
        for t in 0..out_tiles {
            let places = self.rest.places(first + t, &tiles);
            if places.is_empty() {
                continue;
            }
            let mut nest = self.one_nest(e, s, in_blocks, t)?;
            let numbered = places.iter().enumerate();
            nest.body = numbered
                .map(|(k, &(tile, tap))| {
                    let [acc, inp, _] = nest.body[tile * taps + tap];
                    [acc, inp, k as u32]
                })
                .collect();
            nest.at[2] = at;
            at += places.len() as u32;
            nests.push(nest);
        }
        Ok(nests)
    }
}
