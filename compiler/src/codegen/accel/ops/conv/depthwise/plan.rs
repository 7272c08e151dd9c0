//! How depthwise convolutions are cut when the array and the vector unit compute them together.
//!
//! The array sums the first taps of each output by products with diagonal weight tiles. The vector unit adds the other
//! taps to these sums with `mac`, and requantizes them. Both read the data in inp, where a bank serves only one of them
//! at a time. So the layer is cut into tiles whose data are in the two halves of inp in turn: while the vector unit
//! finishes a tile, the array begins the next one.
//!
//! In each step, the array's taps of a tile and the vector unit's taps of the tile before it should take equally long. So
//! their number alternates from tile to tile. With few taps on the array in the first tile, the vector unit starts early.

use crate::codegen::accel::kept::{Kept, OnChip};
use crate::codegen::accel::limits::{Limit, PAD_ENTRIES, PAD_ROWS, check_entries};
use crate::codegen::accel::ops::conv::Conv;
use crate::codegen::accel::ops::conv::rest::array_subtracts;
use crate::codegen::accel::ops::conv::sizes::{column_span, row_span};
use crate::codegen::accel::padded_range::{PaddedRange, reach};
use crate::codegen::accel::parts::{cut, parts};
use crate::codegen::accel::requant::keeps_params;
use crate::codegen::accel::view::View;
use crate::codegen::accel::work::overhead;
use std::ops::Range;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::PARAM_ROWS;

/// How a depthwise layer is cut. Blocks are blocks of channels of the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DepthwiseTile {
    /// Blocks of channels of a tile.
    pub blocks: usize,
    /// Output rows of a tile.
    pub rows: usize,
    /// Output columns of a tile.
    pub columns: usize,
    /// Number of taps of an output that the array sums.
    pub array_taps: ArrayTaps,
    /// Estimated cycles.
    pub cycles: u64,
}

/// Number of taps that the array sums in the tiles, which are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrayTaps {
    /// In the first tile.
    pub first: usize,
    /// In the others with an even number.
    pub even: usize,
    /// In those with an odd number.
    pub odd: usize,
    /// In the last tile.
    pub last: usize,
}

impl ArrayTaps {
    /// The numbers in the order of the fields.
    pub fn all(&self) -> [usize; 4] {
        [self.first, self.even, self.odd, self.last]
    }

    /// The least and the greatest number.
    pub fn range(&self) -> [usize; 2] {
        let all = self.all();
        [all.into_iter().min().unwrap_or(0), all.into_iter().max().unwrap_or(0)]
    }
}

/// Slots of weights and parameters that do not fit their memory all at once.
pub const WEIGHT_SLOTS: usize = 4;
/// As [`WEIGHT_SLOTS`].
pub const PARAM_SLOTS: usize = 2;

/// A layer's geometry.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    pub conv: &'a Conv,
    pub input: View,
    pub output: View,
    pub on_chip: OnChip,
    pub config: &'a HwConfig,
}

impl Shape<'_> {
    pub fn row_span(&self, rows: &Range<usize>) -> PaddedRange {
        // A layer that both units share skips no rows.
        row_span(self.conv, rows.start, rows.len(), self.input).0
    }

    pub fn column_span(&self, columns: &Range<usize>) -> PaddedRange {
        column_span(self.conv, columns.start, columns.len(), self.input)
    }

    /// Blocks of channels of the layer.
    pub fn blocks(&self) -> usize {
        self.output.c.div_ceil(self.config.block() as usize)
    }

    /// Entries of inp for a tile's data, padding included.
    pub fn data_entries(&self, tile: &DepthwiseTile) -> usize {
        tile.blocks * self.conv.span(0, tile.rows) * self.conv.span(1, tile.columns)
    }

    /// Whether the array and the vector unit can share the layer's work.
    fn is_shared(&self) -> bool {
        let (c, channels, config) = (self.conv, self.input.c, self.config);
        let single =
            c.groups == channels && self.output.c == channels && c.finish.bias.len() == channels && c.depth() == 1;
        // Unless the array subtracts the zero point, weights beyond 8 bits need additional tiles, which are not
        // supported here.
        let whole = c.rest.is_empty() || array_subtracts(c, config).is_some();
        let walks = (0..2).all(|i| reach(c.kernel[i], c.dilations[i]) >= c.strides[i]);
        let banks = config.banks(Mem::Inp) >= 2 && config.banks(Mem::Acc) >= 2;
        config.vector_mac
            && config.block_is_row()
            && config.batch == 1
            && banks
            && single
            && whole
            && walks
            && c.epilogue.is_empty()
            && c.slope.is_none()
            && c.taps() > 1
            && c.taps() <= config.gemm_uop_depth.min(config.vector_uop_depth) as usize
    }

    /// Entries of inp for loads in the half that has fewer of them.
    fn half(&self) -> usize {
        let all = self.config.entries(Mem::Inp);
        let (start, entries) = self.on_chip.room.unwrap_or((0, all));
        let (half, end) = (all / 2, start + entries);
        let free = [end.min(half).saturating_sub(start), end.saturating_sub(start.max(half))];
        free[0].min(free[1]) as usize
    }

    /// Slots of a tile's data: with two in each half of inp, loads run ahead.
    pub fn data_slots(&self, tile: &DepthwiseTile) -> usize {
        if 2 * self.data_entries(tile) <= self.half() { 4 } else { 2 }
    }

    /// If the data stay in inp: the number of blocks from one to another that is in the other half of the banks, or all
    /// blocks.
    pub fn distance(&self) -> usize {
        let Some(kept) = self.on_chip.input else { return self.blocks() };
        let bank = |block: usize| self.config.bank_of(Mem::Inp, self.kept_at(&kept, block));
        let low = (0..self.blocks()).take_while(|&block| bank(block) == bank(0)).count();
        low.max(self.blocks() - low)
    }

    /// First entry of the data of a block of a kept tensor.
    fn kept_at(&self, kept: &Kept, block: usize) -> u32 {
        kept.at(block, -(self.conv.pads[0] as i64), -(self.conv.pads[1] as i64))
    }

    /// Whether wgt holds all weight tiles at once.
    pub fn keeps_weights(&self, most: usize) -> bool {
        self.blocks() * most <= self.config.entries(Mem::Wgt) as usize
    }

    /// Entries of param for a block.
    fn param_entries(&self, least: usize) -> usize {
        let [_, columns] = self.conv.kernel;
        1 + (self.conv.taps() - least / columns * columns).div_ceil(PARAM_ROWS as usize)
    }

    /// Whether param holds the parameters and taps of all blocks at once.
    pub fn keeps_params(&self, least: usize) -> bool {
        let descriptors = self.config.descriptor_entries() as usize;
        keeps_params(self.blocks() * self.param_entries(least) + descriptors, self.config)
    }

    /// Checks that a tile's weights and parameters fit.
    ///
    /// # Errors
    /// The scratchpad that they do not fit.
    fn check_constants(&self, blocks: usize, [least, most]: [usize; 2]) -> Result<(), Limit> {
        let config = self.config;
        let weights = if self.keeps_weights(most) { 0 } else { WEIGHT_SLOTS * blocks * most };
        let descriptors = 2 * config.descriptor_entries() as usize;
        let rows = PARAM_ROWS as usize * (PARAM_SLOTS * blocks * self.param_entries(least) + descriptors);
        let params = if self.keeps_params(least) { 0 } else { rows };
        let all = |mem: Mem| config.entries(mem) as usize;
        check_entries([(Mem::Wgt, weights, all(Mem::Wgt)), (Mem::Param, params, all(Mem::Param))])
    }

    /// Returns the tile with its estimated cycles, and with the best numbers of taps unless they are given.
    ///
    /// # Errors
    /// The limit that the tile exceeds.
    fn cost(&self, tile: DepthwiseTile, given: Option<ArrayTaps>) -> Result<DepthwiseTile, Limit> {
        let config = self.config;
        let (images, all) = (self.output.n as u64, self.blocks());
        let kept = self.on_chip.input;
        let outputs = tile.blocks * tile.rows * tile.columns;
        let hides = self.on_chip.hides_output();
        let half = |mem: Mem| (config.entries(mem) / 2) as usize;
        let rows: Vec<PaddedRange> = cut(self.output.h, tile.rows).iter().map(|r| self.row_span(r)).collect();
        let columns: Vec<PaddedRange> = cut(self.output.w, tile.columns).iter().map(|c| self.column_span(c)).collect();
        let pads = |s: &PaddedRange, most: usize| s.inside > 0 && s.before.max(s.after) <= most;
        let loadable = rows.iter().all(|s| pads(s, PAD_ROWS)) && columns.iter().all(|s| pads(s, PAD_ENTRIES));
        check_entries([
            (Mem::Inp, if kept.is_some() { 0 } else { self.data_entries(&tile) }, self.half()),
            (Mem::Acc, outputs, half(Mem::Acc)),
            (Mem::Out, if hides { 0 } else { outputs }, half(Mem::Out)),
        ])?;
        if kept.is_none() && !loadable {
            return Err(Limit::Pads);
        }
        let inside = |spans: &[PaddedRange]| spans.iter().map(|s| s.inside).sum::<usize>() as u64;
        let pixel_tiles = images * (rows.len() * columns.len()) as u64;
        let tiles = pixel_tiles * all.div_ceil(tile.blocks) as u64;
        let entries = images * (all * self.output.h * self.output.w) as u64;
        let beats = |mem: Mem| u64::from(config.entry_bytes(mem).div_ceil(config.bus_bytes()));
        let mac = u64::from(config.row_elements().div_ceil(config.vector_lanes));
        let requant = u64::from(config.deep_row_cycles(1));
        let loaded = if kept.is_some() { 0 } else { images * all as u64 * inside(&rows) * inside(&columns) };
        let stored = if hides { 0 } else { entries };
        let fetched = tiles * overhead::DEPTHWISE_INSNS * u64::from(256 / config.bus_bits.min(256));
        let first_load = if kept.is_some() { 0 } else { loaded * beats(Mem::Inp) / tiles };
        let load = match self.data_slots(&tile) {
            2 if kept.is_none() => first_load,
            _ => 0,
        };
        // If the kept tensor is in a single bank of inp, the array and the vector unit must take turns.
        let in_turn = kept.is_some() && self.distance() == all;
        let gemm = |taps: usize| entries * taps as u64 / tiles + overhead::DEPTHWISE_GEMM + load;
        let others = |taps: usize| (self.conv.taps() - taps) as u64 * mac + requant;
        let vector = |taps: usize| entries * others(taps) / tiles + overhead::DEPTHWISE_VECTOR;
        let step = |vector_taps: usize, array_taps: usize| match in_turn {
            true => vector(vector_taps) + gemm(array_taps),
            false => vector(vector_taps).max(gemm(array_taps)),
        };
        let (mut best, mut limit): (Option<DepthwiseTile>, _) = (None, Limit::Fields);
        for array_taps in given.map_or_else(|| self.choices(&gemm, &vector), |taps| vec![taps]) {
            let ArrayTaps { first, even, odd, last } = array_taps;
            let [least, most] = array_taps.range();
            if let Err(reason) = self.check_constants(tile.blocks, [least, most]) {
                limit = reason;
                continue;
            }
            let units = match tiles {
                1 => vector(first),
                2 => step(first, last) + vector(last),
                _ => {
                    let (after_odd, after_even) = ((tiles - 2) / 2, (tiles - 3) / 2);
                    let before = if tiles.is_multiple_of(2) { even } else { odd };
                    let middle = step(first, odd) + after_odd * step(odd, even) + after_even * step(even, odd);
                    middle + step(before, last) + vector(last)
                }
            } + gemm(first);
            let weights = (all * most) as u64 * beats(Mem::Wgt);
            let params = (all * self.param_entries(least)) as u64 * u64::from(PARAM_ROWS) * beats(Mem::Param);
            let times = |kept: bool, slots: usize| {
                let again = (pixel_tiles / images).min(slots as u64) * images;
                if kept { 1 } else { again }
            };
            let constants = weights * times(self.keeps_weights(most), WEIGHT_SLOTS)
                + params * times(self.keeps_params(least), PARAM_SLOTS);
            let bus = loaded * beats(Mem::Inp) + stored * beats(Mem::Out) + constants + fetched;
            let first_weights = (tile.blocks * most) as u64 * beats(Mem::Wgt);
            let ends = first_load + first_weights + stored * beats(Mem::Out) / tiles + overhead::DEPTHWISE_LAYER;
            let cycles = units.max(bus + bus / 16) + ends;
            if best.is_none_or(|b| cycles < b.cycles) {
                best = Some(DepthwiseTile { array_taps, cycles, ..tile });
            }
        }
        best.ok_or(limit)
    }

    /// The numbers of taps between which a plan decides, given the cycles of each unit. Both units get at least one tap.
    ///
    /// In a step, the array works on a tile while the vector unit works on the one before. So for each number of one
    /// tile, those of its neighbors are tried with which both units take about the same time.
    fn choices(&self, gemm: &dyn Fn(usize) -> u64, vector: &dyn Fn(usize) -> u64) -> Vec<ArrayTaps> {
        let all = || 1..self.conv.taps();
        // The number around which the array takes as long as the vector unit does for the tile before, or after.
        let after = |taps: usize| all().find(|&t| gemm(t) >= vector(taps)).unwrap_or(self.conv.taps() - 1);
        let before = |taps: usize| all().find(|&t| vector(t) <= gemm(taps)).unwrap_or(self.conv.taps() - 1);
        let around = |taps: usize| [taps.saturating_sub(1).max(1), taps];
        let mut found = Vec::new();
        for even in all() {
            let mut odds = [around(after(even)), around(before(even)), [even, self.conv.taps() - 1]].concat();
            odds.sort_unstable();
            odds.dedup();
            for odd in odds.into_iter().filter(|odd| *odd >= even) {
                let mut lasts = [around(after(even)), around(after(odd)), [even, odd]].concat();
                lasts.push(self.conv.taps() - 1);
                lasts.sort_unstable();
                lasts.dedup();
                let firsts = if even == 1 { vec![1] } else { vec![even, 1] };
                let ends = lasts.iter().flat_map(|&last| firsts.iter().map(move |&first| (first, last)));
                found.extend(ends.map(|(first, last)| ArrayTaps { first, even, odd, last }));
            }
        }
        found
    }
}

/// Returns at most `most` cuts of a depthwise layer, the fastest first. Empty if the array and the vector unit cannot
/// share the layer.
pub fn tiles(
    conv: &Conv,
    [input, output]: [View; 2],
    on_chip: OnChip,
    most: usize,
    config: &HwConfig,
) -> Vec<DepthwiseTile> {
    let shape = Shape { conv, input, output, on_chip, config };
    if !shape.is_shared() {
        return Vec::new();
    }
    let mut found: Vec<DepthwiseTile> = Vec::new();
    // Loads of the last columns would be row by row if there were fewer of them.
    for columns in parts(output.w).into_iter().filter(|&columns| output.w.is_multiple_of(columns)) {
        for rows in parts(output.h) {
            // If the data stay in inp, all blocks of a tile are in the same half of it.
            let together = |blocks: &usize| on_chip.input.is_none() || shape.distance().is_multiple_of(*blocks);
            for blocks in parts(shape.distance()).into_iter().filter(together) {
                let array_taps = ArrayTaps { first: 1, even: 1, odd: 1, last: 1 };
                let tile = DepthwiseTile { blocks, rows, columns, array_taps, cycles: 0 };
                found.extend(shape.cost(tile, None));
            }
        }
    }
    found.sort_by_key(|t| t.cycles);
    found.truncate(most);
    found
}

/// Whether the array and the vector unit can share a layer.
pub fn is_shared(conv: &Conv, [input, output]: [View; 2], on_chip: OnChip, config: &HwConfig) -> bool {
    Shape { conv, input, output, on_chip, config }.is_shared()
}

/// Returns a cut with its estimated cycles.
///
/// # Errors
/// The reason why the layer cannot be cut in this way.
pub fn tile(
    conv: &Conv,
    [input, output]: [View; 2],
    on_chip: OnChip,
    tile: DepthwiseTile,
    config: &HwConfig,
) -> Result<DepthwiseTile, String> {
    let shape = Shape { conv, input, output, on_chip, config };
    if !shape.is_shared() {
        return Err("the array and the vector unit cannot share the layer".into());
    }
    if on_chip.input.is_some() && !shape.distance().is_multiple_of(tile.blocks) {
        return Err(format!("the data stay in inp, so blocks must divide {}", shape.distance()));
    }
    shape.cost(tile, Some(tile.array_taps)).map_err(|limit| format!("the tile needs {limit}"))
}
