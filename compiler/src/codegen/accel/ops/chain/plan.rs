//! The strips of a chain.

use super::op::Chain;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::limits::{Limit, check_entries};
use crate::codegen::accel::ops::conv::sizes::{column_span, row_span, skips_rows};
use crate::codegen::accel::padded_range::{PaddedRange, reach};
use crate::codegen::accel::parts::{cut, parts};
use crate::codegen::accel::requant::keeps_params;
use crate::codegen::accel::view::View;
use std::ops::Range;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::PARAM_ROWS;

/// How a chain is cut into strips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainTile {
    /// Rows of the depthwise convolution's results in a strip.
    pub rows: usize,
    /// Columns of them.
    pub columns: usize,
    /// Blocks of their channels.
    pub blocks: usize,
    /// Number of taps of the depthwise convolution that the array sums, in strips with an even and with an odd number.
    pub array_taps: [usize; 2],
    /// Estimated cycles.
    pub cycles: u64,
}

impl ChainTile {
    /// The least and the greatest number of the array's taps.
    pub fn tap_range(&self) -> [usize; 2] {
        let [even, odd] = self.array_taps;
        [even.min(odd), even.max(odd)]
    }
}

/// Slots of weights that are loaded for each iteration: those of the last stage that reads them wait for three others.
pub const WEIGHT_SLOTS: usize = 4;

/// Estimated cycles of an instruction beyond its work: its start, and the drain of its unit.
const GEMM_START: u64 = 12;
const VECTOR_START: u64 = 24;

/// Estimated bytes of instructions per iteration of the pipeline.
const INSN_BYTES: u64 = 12 * 32;

/// A chain with the sizes of its layer.
pub struct Sized<'a> {
    chain: &'a Chain,
    input: View,
    output: View,
    config: &'a HwConfig,
}

/// Sums over all strips along one dimension.
#[derive(Debug, Clone, Copy, Default)]
struct Along {
    /// Positions of wide tensors that strips compute, and the most of one strip with padding.
    wide: usize,
    widest: usize,
    /// The most without padding.
    summed: usize,
    /// Positions of data that strips load, and the most of one strip with padding.
    data: usize,
    longest: usize,
}

impl<'a> Sized<'a> {
    /// The sizes of a chain.
    pub fn new(chain: &'a Chain, layer: &Layer, config: &'a HwConfig) -> Sized<'a> {
        Sized { chain, input: layer.input_view(), output: layer.output_view(), config }
    }

    /// Blocks of channels of the wide tensors.
    pub fn blocks(&self) -> usize {
        self.chain.depth.c.div_ceil(self.config.block() as usize)
    }

    /// Blocks of channels of the last product's results; 0 if there is none.
    fn last_blocks(&self) -> usize {
        self.chain.last.as_ref().map_or(0, |_| self.output.c.div_ceil(self.config.block() as usize))
    }

    /// Weight tiles for a block of the wide tensors in the first product and in the array's taps.
    fn tiles_of_block(&self, array_taps: usize) -> usize {
        self.product() + array_taps
    }

    /// Micro-ops of the first product for an entry of its sums.
    fn product(&self) -> usize {
        self.in_blocks() * self.chain.first.taps()
    }

    /// Blocks of channels of the data.
    fn in_blocks(&self) -> usize {
        self.input.c.div_ceil(self.config.block() as usize)
    }

    /// Whether param holds all parameters and taps of the vector unit at once.
    pub fn keeps_params(&self) -> bool {
        // At most all taps are the vector unit's.
        let taps = self.chain.depthwise.taps().div_ceil(PARAM_ROWS as usize);
        // Each requantization has a descriptor of its own, and so have the taps.
        let descriptors = 2 * self.config.descriptor_entries() as usize;
        keeps_params(self.blocks() * (2 + taps) + self.last_blocks() + descriptors, self.config)
    }

    /// Weight tiles of all products, if the array sums that many taps.
    fn weights(&self, array_taps: usize) -> usize {
        self.blocks() * (self.tiles_of_block(array_taps) + self.last_blocks())
    }

    /// Whether wgt holds the weights of all products at once.
    pub fn keeps_weights(&self, array_taps: usize) -> bool {
        self.weights(array_taps) <= self.config.entries(Mem::Wgt) as usize
    }

    /// Rows (`k` = 0) or columns of the wide tensor that some outputs read.
    fn span(&self, k: usize, outputs: &Range<usize>) -> PaddedRange {
        let c = &self.chain.depthwise;
        let size = [self.chain.wide.h, self.chain.wide.w][k];
        PaddedRange::new(
            outputs.start,
            outputs.len(),
            c.strides[k],
            c.pads[k],
            reach(c.kernel[k], c.dilations[k]),
            size,
        )
    }

    /// Returns what strips of `step` rows (`k` = 0) or columns read.
    ///
    /// # Errors
    /// A strip reads only padding.
    fn along(&self, k: usize, step: usize) -> Result<Along, Limit> {
        let mut sum = Along::default();
        for part in cut([self.chain.depth.h, self.chain.depth.w][k], step) {
            let wide = self.span(k, &part);
            if wide.inside == 0 {
                return Err(Limit::Pads);
            }
            let first = &self.chain.first;
            let data = match k {
                0 => row_span(first, wide.start, wide.inside, self.input).0,
                _ => column_span(first, wide.start, wide.inside, self.input),
            };
            // The buffer has room for what padding would read, but not for more than there is.
            let reads = |rows: usize| match k {
                0 if skips_rows(first) => rows,
                _ => first.span(k, rows),
            };
            let all = [self.chain.wide.h, self.chain.wide.w][k];
            let longest = reads(wide.padded()).min(reads(all));
            sum.wide += wide.inside;
            sum.widest = sum.widest.max(wide.padded());
            sum.summed = sum.summed.max(wide.padded().min(all));
            sum.data += data.inside;
            sum.longest = sum.longest.max(longest);
        }
        Ok(sum)
    }

    /// Returns a tile with its estimated cycles.
    ///
    /// # Errors
    /// The limit that it exceeds.
    pub fn cost(&self, tile: ChainTile) -> Result<ChainTile, Limit> {
        self.cost_of(tile, [self.along(0, tile.rows)?, self.along(1, tile.columns)?])
    }

    fn cost_of(&self, tile: ChainTile, [y, x]: [Along; 2]) -> Result<ChainTile, Limit> {
        let ChainTile { rows, columns, blocks, array_taps, .. } = tile;
        let (chain, config) = (self.chain, self.config);
        let taps = chain.depthwise.taps();
        let [_, most] = tile.tap_range();
        let (all, in_blocks) = (self.blocks(), self.in_blocks());
        let half = |mem: Mem| (config.entries(mem) / 2) as usize;
        let narrow = self.last_blocks();
        let last = usize::from(chain.last.is_some());
        let outputs = rows * columns;
        // Each half of the banks has one of two slots of every buffer.
        let inp = in_blocks * y.longest * x.longest + blocks * (y.widest * x.widest + last * outputs);
        let acc = blocks * (y.summed * x.summed + outputs) + narrow * outputs;
        let product = self.product();
        let wgt = self.weights(most);
        let out = if last == 1 { narrow } else { blocks } * outputs;
        let keeps_weights = self.keeps_weights(most);
        let iteration = WEIGHT_SLOTS * blocks * self.tiles_of_block(most);
        // A chain with a last product has all weights at once.
        let weights = match (keeps_weights, last) {
            (true, _) => 0,
            (false, 0) => iteration,
            (false, _) => wgt,
        };
        check_entries([
            (Mem::Inp, inp, half(Mem::Inp)),
            (Mem::Acc, acc, half(Mem::Acc)),
            (Mem::Wgt, weights, config.entries(Mem::Wgt) as usize),
            (Mem::Out, 2 * out, config.entries(Mem::Out) as usize),
        ])?;
        let images = self.output.n as u64;
        let wide = images * (all * y.wide * x.wide) as u64;
        let depth = images * (all * chain.depth.h * chain.depth.w) as u64;
        let ends = images * (narrow * chain.depth.h * chain.depth.w) as u64;
        let pixels = chain.depth.h.div_ceil(rows) * chain.depth.w.div_ceil(columns);
        let iterations = images * (pixels * all.div_ceil(blocks)) as u64;
        let beats = |mem: Mem| u64::from(config.entry_bytes(mem).div_ceil(config.bus_bytes()));
        let requant = u64::from(config.deep_row_cycles(1));
        let mac = u64::from(config.row_elements().div_ceil(config.vector_lanes));
        let both = array_taps.iter().sum::<usize>();
        let gemm = wide * product as u64
            + depth * both as u64 / 2
            + ends * all as u64
            + iterations * GEMM_START * (3 + last as u64);
        let vector = (wide + depth + ends) * requant
            + depth * (2 * taps - both) as u64 * mac / 2
            + iterations * VECTOR_START * (3 + last as u64);
        // Two strips of channels need the data in both banks.
        let copies = all.div_ceil(blocks).min(2) as u64;
        let data = images * copies * (in_blocks * y.data * x.data) as u64 * beats(Mem::Inp);
        let stored = if last == 1 { ends } else { depth } * beats(Mem::Out);
        let fetched = (iterations * INSN_BYTES).div_ceil(u64::from(config.bus_bytes()));
        let times = if keeps_weights { 1 } else { images * pixels as u64 };
        let bus = data + times * wgt as u64 * beats(Mem::Wgt) + stored + fetched;
        let longest = gemm.max(vector).max(bus + bus / 16);
        // The first iterations of the pipeline and its last ones run alone.
        let ends = (gemm + vector) / iterations.max(1) * 3 / 2;
        Ok(ChainTile { cycles: longest + ends, ..tile })
    }

    /// Returns at most `most` tiles with the fewest estimated cycles, the fastest first.
    pub fn tiles(&self, most: usize) -> Vec<ChainTile> {
        let mut found = Vec::new();
        let along = |k: usize, size: usize| -> Vec<(usize, Along)> {
            parts(size).into_iter().filter_map(|step| Some((step, self.along(k, step).ok()?))).collect()
        };
        let (rows, columns) = (along(0, self.chain.depth.h), along(1, self.chain.depth.w));
        let all_blocks = if self.chain.last.is_some() { vec![self.blocks()] } else { parts(self.blocks()) };
        for &(rows, y) in &rows {
            for &(columns, x) in &columns {
                for &blocks in &all_blocks {
                    let each = 1..self.chain.depthwise.taps();
                    let pairs = each.clone().flat_map(|taps| [[taps; 2], [taps, taps + 1]]);
                    for array_taps in pairs.filter(|[_, odd]| each.contains(odd)) {
                        let tile = ChainTile { rows, columns, blocks, array_taps, cycles: 0 };
                        found.extend(self.cost_of(tile, [y, x]));
                    }
                }
            }
        }
        found.sort_by_key(|t| t.cycles);
        found.truncate(most);
        found
    }
}
