//! How depthwise convolutions are cut when the array and the vector unit compute them together.
//!
//! The array sums the first taps of each output by products with diagonal weight tiles. The vector unit adds the other
//! taps to these sums with `mac`, and requantizes them. Both read the data in inp, where a bank serves only one of them
//! at a time. So the layer is cut into strips in alternating banks, and two strips are computed in parallel, in steps
//! of some rows: while the vector unit finishes a step of one strip, the array begins a step of the other.

use crate::codegen::accel::kept::{Kept, OnChip};
use crate::codegen::accel::limits::{PAD_ENTRIES, PAD_ROWS, ROW_BYTES, ROWS};
use crate::codegen::accel::ops::conv::Conv;
use crate::codegen::accel::ops::conv::depthwise::plan::is_shared;
use crate::codegen::accel::ops::conv::sizes::{column_span, row_span};
use crate::codegen::accel::padded_range::PaddedRange;
use crate::codegen::accel::parts::{cut, parts};
use crate::codegen::accel::view::View;
use crate::codegen::accel::work::overhead;
use std::ops::{Range, RangeInclusive};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::PARAM_ROWS;

/// How a depthwise layer is cut. Blocks are blocks of channels of the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StripTile {
    /// Blocks of channels of a strip.
    pub blocks: usize,
    /// Output rows of a strip.
    pub strip_rows: usize,
    /// Output columns of a strip.
    pub columns: usize,
    /// Output rows of a step.
    pub rows: usize,
    /// Average number of taps of an output that the array sums, in eighths of a tap.
    pub array_eighths: usize,
    /// Estimated cycles.
    pub cycles: u64,
}

/// Fractions of a tap in which the array's share is counted.
const PARTS: usize = 8;

impl StripTile {
    /// Average number of taps of an output that the array sums.
    pub fn array_taps(&self) -> f64 {
        self.array_eighths as f64 / PARTS as f64
    }

    /// Number of weight tiles per block: the maximum number of taps that the array sums in a step.
    pub fn stored(&self) -> usize {
        self.array_eighths.div_ceil(PARTS)
    }
}

/// A part of the layer whose data are in the scratchpad together.
#[derive(Debug, Clone)]
pub struct Strip {
    pub image: usize,
    pub blocks: Range<usize>,
    pub rows: Range<usize>,
    pub columns: Range<usize>,
    /// First entry of its data.
    pub entry: u32,
}

/// Some output rows of a strip.
#[derive(Debug, Clone)]
pub struct DepthwiseStep {
    pub strip: Strip,
    pub rows: Range<usize>,
    /// Rows of data that the strip's earlier steps do not read.
    pub load: PaddedRange,
    /// Position of the first of these rows in the strip's data, padding included.
    pub line: usize,
    /// Index of the pair of strips to which the step belongs.
    pub pair: usize,
    /// Number of taps that the array sums.
    pub taps: usize,
}

/// A layer's geometry.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    pub conv: &'a Conv,
    pub input: View,
    pub output: View,
    pub on_chip: OnChip,
}

impl Shape<'_> {
    /// Number of param entries for a block's taps.
    pub fn tap_entries(&self) -> usize {
        self.conv.taps().div_ceil(PARAM_ROWS as usize)
    }

    pub fn row_span(&self, rows: &Range<usize>) -> PaddedRange {
        // A layer that both units share skips no rows.
        row_span(self.conv, rows.start, rows.len(), self.input).0
    }

    pub fn column_span(&self, columns: &Range<usize>) -> PaddedRange {
        column_span(self.conv, columns.start, columns.len(), self.input)
    }

    /// Whether the vector unit can share the layer's work with the array.
    fn is_shared(&self, config: &HwConfig) -> bool {
        is_shared(self.conv, [self.input, self.output], self.on_chip, config)
    }

    /// Maximum number of entries of a strip. With two banks it is half a bank, so that a strip is loaded while the
    /// previous one is computed.
    fn slot(&self, config: &HwConfig) -> u32 {
        let banks = config.banks(Mem::Inp);
        let bank = config.entries(Mem::Inp) / banks;
        let free = match self.on_chip.room {
            None => bank,
            Some((0, entries)) => bank.min(entries.saturating_sub(bank * (banks - 1))),
            Some(_) => 0,
        };
        if banks == 2 { free / 2 } else { free }
    }

    /// First entry, in a kept tensor, of the data that an output row and column of a block reads.
    pub fn kept_at(&self, kept: &Kept, block: usize, row: usize, column: usize) -> u32 {
        let first = |k: usize, at: usize| (at * self.conv.strides[k]) as i64 - self.conv.pads[k] as i64;
        kept.at(block, first(0, row), first(1, column))
    }

    /// Returns one strip per block of a kept tensor. Consecutive strips are in different banks as far as possible.
    fn kept_strips(&self, kept: &Kept, config: &HwConfig) -> Vec<Strip> {
        let first = |block: usize| self.kept_at(kept, block, 0, 0);
        let bank = |block: usize| config.bank_of(Mem::Inp, first(block));
        let (low, high): (Vec<usize>, Vec<usize>) = (0..kept.blocks as usize).partition(|&b| bank(b) == bank(0));
        let both = low.len().min(high.len());
        let pairs = low.iter().zip(&high).flat_map(|(&a, &b)| [a, b]);
        let rest = low[both..].iter().chain(&high[both..]).copied();
        let whole = |block: usize| Strip {
            image: 0,
            blocks: block..block + 1,
            rows: 0..self.output.h,
            columns: 0..self.output.w,
            entry: first(block),
        };
        pairs.chain(rest).map(whole).collect()
    }

    /// Returns the strips, each with its place in inp. If their number is odd, the last one is halved if possible.
    fn strips(&self, tile: &StripTile, config: &HwConfig) -> Vec<Strip> {
        if let Some(kept) = &self.on_chip.input {
            return self.kept_strips(kept, config);
        }
        let out_blocks = self.output.c.div_ceil(config.block() as usize);
        let mut strips = Vec::new();
        for image in 0..self.output.n {
            for blocks in cut(out_blocks, tile.blocks) {
                for columns in cut(self.output.w, tile.columns) {
                    for rows in cut(self.output.h, tile.strip_rows) {
                        let (blocks, columns) = (blocks.clone(), columns.clone());
                        strips.push(Strip { image, blocks, rows, columns, entry: 0 });
                    }
                }
            }
        }
        if strips.len() % 2 == 1
            && let Some(last) = strips.pop()
        {
            let halves = |r: &Range<usize>| {
                let middle = r.start + r.len().div_ceil(2);
                [r.start..middle, middle..r.end]
            };
            if last.blocks.len() > 1 {
                strips.extend(halves(&last.blocks).map(|blocks| Strip { blocks, ..last.clone() }));
            } else if last.rows.len() > 1 {
                strips.extend(halves(&last.rows).map(|rows| Strip { rows, ..last.clone() }));
            } else {
                strips.push(last);
            }
        }
        let banks = config.banks(Mem::Inp);
        let bank = config.entries(Mem::Inp) / banks;
        let slot = self.slot(config);
        for (i, strip) in strips.iter_mut().enumerate() {
            let i = i as u32;
            strip.entry = if banks == 2 { i % 2 * bank + i / 2 % 2 * slot } else { i % banks * bank };
        }
        strips
    }

    /// Returns the steps in their order, or `None` if a load's fields or padding do not allow this cut.
    pub fn steps(&self, tile: &StripTile, config: &HwConfig) -> Option<Vec<DepthwiseStep>> {
        let strips = self.strips(tile, config);
        let mut steps = Vec::new();
        let pairs = strips.len().div_ceil(2);
        for (i, pair) in strips.chunks(2).enumerate() {
            let ends = [i == 0, i + 1 == pairs];
            let lists: Vec<Vec<DepthwiseStep>> =
                pair.iter().map(|s| self.strip_steps(s, tile.rows, ends)).collect::<Option<_>>()?;
            let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
            let turns = (0..longest).flat_map(|k| lists.iter().filter_map(move |l| l.get(k).cloned()));
            steps.extend(turns.map(|step| DepthwiseStep { pair: i, ..step }));
        }
        for (i, step) in steps.iter_mut().enumerate() {
            step.taps = ((i + 1) * tile.array_eighths) / PARTS - (i * tile.array_eighths) / PARTS;
        }
        Some(steps)
    }

    /// Returns the steps of a strip. `ends`: the strip is at the beginning or end of the layer, where the first or last
    /// step is shorter.
    fn strip_steps(&self, strip: &Strip, rows: usize, ends: [bool; 2]) -> Option<Vec<DepthwiseStep>> {
        let all = self.row_span(&strip.rows);
        let columns = self.column_span(&strip.columns);
        let pads_fit = columns.before.max(columns.after) <= PAD_ENTRIES;
        let kept = self.on_chip.input.is_some();
        if !kept && (!pads_fit || columns.inside == 0) {
            return None;
        }
        let (mut steps, mut line) = (Vec::new(), 0);
        let whole = strip.blocks.len() > 1;
        let (all_rows, step) = (strip.rows.len(), if whole { strip.rows.len() } else { rows });
        for part in ramp(all_rows, step, if whole { [false; 2] } else { ends }) {
            let end = self.conv.span(0, part.end);
            // Lines inside the image, counted from the strip's first line.
            let inside = line.max(all.before)..end.min(all.before + all.inside);
            if !kept && inside.is_empty() {
                return None;
            }
            let load = PaddedRange {
                start: all.start + inside.start.saturating_sub(all.before),
                inside: inside.len(),
                before: inside.start.saturating_sub(line),
                after: end.saturating_sub(inside.end),
            };
            if !kept && (load.inside > ROWS || load.before.max(load.after) > PAD_ROWS) {
                return None;
            }
            let rows = strip.rows.start + part.start..strip.rows.start + part.end;
            steps.push(DepthwiseStep { strip: strip.clone(), rows, load, line, pair: 0, taps: 0 });
            line = end;
        }
        Some(steps)
    }

    /// Returns the cut with the best of some shares of the array and its estimated cycles, or `None` if it does not fit.
    fn cost(&self, tile: StripTile, shares: RangeInclusive<usize>, config: &HwConfig) -> Option<StripTile> {
        let block_bytes = config.block() as usize;
        let (lines, width) = (self.conv.span(0, tile.strip_rows), self.conv.span(1, tile.columns));
        let room = |mem: Mem, parts: u32| (config.entries(mem) / parts) as usize;
        let kept = self.on_chip.input;
        let step_rows = tile.blocks * tile.rows * tile.columns;
        let params = tile.blocks * (1 + self.tap_entries());
        let fits = (kept.is_some() || tile.blocks * lines * width <= self.slot(config) as usize)
            && step_rows <= room(Mem::Acc, config.banks(Mem::Acc))
            && step_rows <= room(Mem::Out, 2)
            && 4 * params + 2 * config.descriptor_entries() as usize <= config.param_depth as usize
            && width.max(tile.columns) * block_bytes <= ROW_BYTES
            && tile.rows <= ROWS;
        if !fits {
            return None;
        }
        let out_blocks = self.output.c.div_ceil(block_bytes);
        let per_image = self.output.h.div_ceil(tile.strip_rows) * self.output.w.div_ceil(tile.columns);
        let strips = (self.output.n * out_blocks.div_ceil(tile.blocks) * per_image) as u64;
        let steps = strips * tile.strip_rows.div_ceil(tile.rows) as u64 + overhead::STRIP_STEPS;
        let rows = (self.output.n * out_blocks * self.output.h * self.output.w) as u64;
        let beats = |mem: Mem| u64::from(config.entry_bytes(mem).div_ceil(config.bus_bytes()));
        let mac = u64::from(config.row_elements().div_ceil(config.vector_lanes));
        let requant = u64::from(config.deep_row_cycles(1));
        let blocks = (self.output.n * out_blocks) as u64;
        // Rows and columns of data that all strips of a block load, without and with padding.
        let sums = |spans: Vec<PaddedRange>| {
            let sum = |f: fn(&PaddedRange) -> usize| spans.iter().map(f).sum::<usize>() as u64;
            [sum(|s| s.inside), sum(PaddedRange::padded)]
        };
        let lines = sums(cut(self.output.h, tile.strip_rows).iter().map(|r| self.row_span(r)).collect());
        let columns = sums(cut(self.output.w, tile.columns).iter().map(|c| self.column_span(c)).collect());
        let (data, padded) = (blocks * lines[0] * columns[0], blocks * lines[1] * columns[1]);
        let (data, padded) = if kept.is_some() { (0, 0) } else { (data, padded) };
        let loaded = data * beats(Mem::Inp);
        let params = blocks * (1 + self.tap_entries() as u64) * u64::from(PARAM_ROWS) * beats(Mem::Param);
        let hides = self.on_chip.hides_output();
        let store = if hides { 0 } else { rows * beats(Mem::Out) };
        let fetch = steps * overhead::STRIP_INSNS * u64::from(256 / config.bus_bits.min(256));
        let first_rows = if tile.blocks == 1 { tile.rows.div_ceil(2) } else { tile.rows };
        let first_entries =
            if kept.is_some() { 0 } else { (tile.blocks * self.conv.span(0, first_rows) * width) as u64 };
        // If the kept tensor is in a single bank of inp, the array and the vector unit must take turns.
        let in_turn = kept.is_some_and(|k| {
            let bank = |block| config.bank_of(Mem::Inp, self.kept_at(&k, block, 0, 0));
            bank(0) == bank(k.blocks as usize - 1)
        });
        let stored_beats = if hides { 0 } else { beats(Mem::Out) };
        let step_rows = (tile.blocks * first_rows * tile.columns) as u64;
        let mut best: Option<StripTile> = None;
        for array_eighths in shares {
            let share = |per_tap: u64| per_tap * array_eighths as u64 / PARTS as u64;
            let stored = array_eighths.div_ceil(PARTS);
            if 4 * tile.blocks * stored > config.wgt_depth as usize {
                break;
            }
            let vector_row = (self.conv.taps() as u64 * mac) + requant;
            let wgt = stored as u64 * beats(Mem::Wgt);
            let gemm = share(rows) + overhead::STRIP_GEMM * steps;
            let vector = rows * vector_row - share(rows * mac) + overhead::STRIP_VECTOR * steps;
            let load = loaded + blocks * wgt + params;
            let dram = load + store + fetch;
            let first = tile.blocks as u64 * wgt + first_entries * beats(Mem::Inp);
            let ends = first + share(step_rows) + step_rows * (requant + stored_beats) + overhead::STRIP_LAYER;
            let units = if in_turn { gemm + vector } else { gemm.max(vector) };
            let longest = units.max(dram + dram / 16).max(load + padded - data);
            let cycles = longest + ends;
            if best.is_none_or(|b| cycles < b.cycles) {
                best = Some(StripTile { array_eighths, cycles, ..tile });
            }
        }
        best
    }
}

/// Cuts `size` rows into steps of `step` rows. The `first`, the `last` or both steps are about half as long, so that
/// units that wait for them start earlier and the layer ends earlier.
fn ramp(size: usize, step: usize, [first, last]: [bool; 2]) -> Vec<Range<usize>> {
    let short = step.div_ceil(2);
    let begin = if first { short.min(size) } else { 0 };
    let end = if last { size - short.min(size - begin) } else { size };
    let middle = cut(end - begin, step).into_iter().map(|r| begin + r.start..begin + r.end);
    let all = std::iter::once(0..begin).chain(middle).chain(std::iter::once(end..size));
    all.filter(|r| !r.is_empty()).collect()
}

/// Returns at most `most` cuts of a depthwise layer, the fastest first. Empty if the array and the vector unit cannot
/// share the layer.
pub fn tiles(
    conv: &Conv,
    [input, output]: [View; 2],
    on_chip: OnChip,
    most: usize,
    config: &HwConfig,
) -> Vec<StripTile> {
    let shape = Shape { conv, input, output, on_chip };
    if !shape.is_shared(config) {
        return Vec::new();
    }
    let out_blocks = output.c.div_ceil(config.block() as usize);
    let mut found: Vec<StripTile> = Vec::new();
    for columns in parts(output.w) {
        for strip_rows in parts(output.h) {
            let whole = columns == output.w && strip_rows == output.h;
            let kept = on_chip.input.is_some();
            if kept && !whole {
                continue;
            }
            for blocks in if whole && !kept { parts(out_blocks) } else { vec![1] } {
                for rows in if blocks == 1 { parts(strip_rows) } else { vec![strip_rows] } {
                    let tile = StripTile { blocks, strip_rows, columns, rows, array_eighths: 0, cycles: 0 };
                    found.extend(shape.cost(tile, shares(conv), config));
                }
            }
        }
    }
    found.sort_by_key(|t| t.cycles);
    found.into_iter().filter(|t| shape.steps(t, config).is_some()).take(most).collect()
}

/// Returns the shares of the array between which a plan of a shared layer decides, in eighths of a tap: both units get at
/// least one tap.
pub fn shares(conv: &Conv) -> RangeInclusive<usize> {
    PARTS..=(conv.taps() - 1) * PARTS
}

/// Returns a cut with its estimated cycles.
///
/// # Errors
/// The reason why the layer cannot be cut in this way.
pub fn tile(
    conv: &Conv,
    [input, output]: [View; 2],
    on_chip: OnChip,
    tile: StripTile,
    config: &HwConfig,
) -> Result<StripTile, String> {
    let shape = Shape { conv, input, output, on_chip };
    if !shape.is_shared(config) {
        return Err("the array and the vector unit cannot share the layer".into());
    }
    let whole = tile.columns == output.w && tile.strip_rows == output.h;
    let kept = on_chip.input.is_some();
    if (kept || tile.blocks > 1) && !whole || kept && tile.blocks > 1 {
        return Err(
            "strips of kept data or of several blocks are whole images; those of kept data have one block".into()
        );
    }
    if tile.rows > tile.strip_rows || tile.blocks > 1 && tile.rows != tile.strip_rows {
        return Err("a step has more rows than its strip, or is a part of a strip of several blocks".into());
    }
    let found = shape.cost(tile, tile.array_eighths..=tile.array_eighths, config);
    found.filter(|t| shape.steps(t, config).is_some()).ok_or_else(|| "the strips or steps do not fit".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_a_layer_have_short_steps() {
        assert_eq!(ramp(14, 7, [false, false]), [0..7, 7..14]);
        assert_eq!(ramp(14, 7, [true, false]), [0..4, 4..11, 11..14]);
        assert_eq!(ramp(14, 7, [false, true]), [0..7, 7..10, 10..14]);
        assert!(ramp(3, 7, [true, true]).iter().eq(std::iter::once(&(0..3))));
        assert_eq!(ramp(5, 7, [true, true]), [0..4, 4..5]);
    }
}
