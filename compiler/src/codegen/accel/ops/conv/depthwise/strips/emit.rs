//! Emits depthwise convolutions for the array and the vector unit, step by step.

use super::plan::{DepthwiseStep, Shape, StripTile};
use super::taps::{Diagonal, Mac, Taps};
use crate::codegen::accel::emit::{DeviceTensor, Emit};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::ops::conv::Conv;
use crate::codegen::accel::ops::conv::rest::{stored, stored_zero_point};
use crate::codegen::accel::requant::{RequantTile, requant_entries};
use crate::codegen::accel::target::{PendingBorder, Target};
use crate::codegen::accel::window::{Window, store_tile};
use std::ops::Range;
use tilewright_driver::{DriverError, Nest, Role};
use tilewright_hw::config::Mem;
use tilewright_hw::isa::{Descriptor, Load, PARAM_ROWS, TAP_STRIDE, VecDst, VecOp, VecSrc, Vector};
use tilewright_hw::layout::{Weights, pack_descriptor};

/// Key of the descriptor in param. All other keys begin with the number of a block.
const DESCRIPTOR: usize = usize::MAX;

/// A depthwise convolution while it is emitted.
struct DepthwiseEmission<'a> {
    shape: Shape<'a>,
    tile: StripTile,
    name: &'a str,
    input: Option<DeviceTensor>,
    output: Option<DeviceTensor>,
    /// Zero point that both units subtract from every weight.
    zero_point: i8,
    /// Offset of the descriptor in the constants.
    descriptor: u64,
    /// Constants of the blocks of each strip.
    constants: Vec<StripConstants>,
}

/// Constants of the blocks of a strip.
struct StripConstants {
    blocks: Range<usize>,
    /// Offset of the weight tiles in the constants.
    weights: u64,
    /// Offset of the requantization parameters and of the vector unit's taps in the constants.
    params: u64,
}

/// Emits a depthwise convolution.
///
/// # Errors
/// The driver refuses an instruction or a constant.
pub fn emit(e: &mut Emit, layer: &Layer, conv: &Conv, tile: StripTile) -> Result<(), DriverError> {
    let shape = Shape { conv, input: layer.inputs[0].1, output: layer.output.1, on_chip: layer.on_chip };
    let missing = || DriverError::Rule { index: e.b.len(), what: "a strip of the depthwise layer has no data".into() };
    let steps = shape.steps(&tile, e.config).ok_or_else(missing)?;
    let (input, output) = (e.input(layer)?, e.output(layer)?);
    let name = &layer.name;
    let (zero_point, descriptor, constants) = (0, 0, Vec::new());
    let mut emission = DepthwiseEmission { shape, tile, name, input, output, zero_point, descriptor, constants };
    emission.constants(e, &steps);
    let mut border = PendingBorder::of(&layer.on_chip);
    border.early(e, name)?;
    // Loads and kept results are written to the same bank, so load the next pair's data before this pair writes its
    // results.
    let early = layer.on_chip.output.is_some();
    for (i, s) in steps.iter().enumerate() {
        let begins = i == 0 || steps[i - 1].pair != s.pair;
        let next = if begins && early { s.pair + 1 } else { usize::MAX };
        let ahead: Vec<&DepthwiseStep> = steps.iter().filter(|other| other.pair == next).collect();
        let loads = !early || s.pair == 0;
        emission.step(e, s, loads, &ahead, &mut border)?;
    }
    Ok(())
}

impl DepthwiseEmission<'_> {
    fn constants(&mut self, e: &mut Emit, steps: &[DepthwiseStep]) {
        let (config, conv, name) = (e.config, self.shape.conv, self.name);
        let (taps, tiles, lanes) = (self.shape.conv.taps(), self.tile.stored(), config.block() as usize);
        let (weights, zero_point) = (stored(conv, config), stored_zero_point(conv, config));
        self.zero_point = zero_point;
        let weight = |channel: usize, tap: usize| weights.get(channel * taps + tap).copied().unwrap_or(zero_point);
        let finish = &conv.finish;
        let (lo, hi, zero) = (finish.lo, finish.hi, finish.zero_point);
        let descriptor = Descriptor { lo, hi, zero_point: zero, zero_b: zero_point, ..Descriptor::default() };
        let bytes = pack_descriptor(config, &descriptor);
        self.descriptor = e.b.constant(&format!("{name} descriptor"), Role::Params, &bytes);
        for step in steps {
            let blocks = &step.strip.blocks;
            if self.constants.iter().any(|c| c.blocks == *blocks) {
                continue;
            }
            let first = blocks.start * lanes;
            let entries = blocks.len() * tiles;
            let bytes = e.values(entries * config.entry_bytes(Mem::Wgt) as usize, || {
                let packed = Weights::new(config, blocks.len() * lanes, lanes, tiles)
                    .pack(|o, i, tap| if o % lanes == i { weight(first + o, tap) } else { zero_point });
                packed.into_iter().map(|w| w as u8).collect()
            });
            let weights = e.b.constant(&format!("{name} weights"), Role::Weights, &bytes);
            let mut bytes = requant_entries(config, finish, blocks.clone());
            let rows = self.shape.tap_entries() * PARAM_ROWS as usize;
            for block in blocks.clone() {
                let value =
                    |row: usize, lane: usize| if row < taps { weight(block * lanes + lane, row) as u8 } else { 0 };
                bytes.extend((0..rows).flat_map(|row| (0..lanes).map(move |lane| value(row, lane))));
            }
            let params = e.b.constant(&format!("{name} parameters"), Role::Params, &bytes);
            self.constants.push(StripConstants { blocks: blocks.clone(), weights, params });
        }
    }

    /// Offsets of the weight tiles and of the parameters of a strip's blocks in the constants.
    fn offsets(&self, blocks: &Range<usize>) -> [u64; 2] {
        let found = self.constants.iter().find(|c| c.blocks == *blocks);
        found.map_or([0; 2], |c| [c.weights, c.params])
    }

    /// Loads the weight tiles of a strip's blocks, and returns their first entry.
    fn load_weights(&self, e: &mut Emit, blocks: &Range<usize>) -> Result<u32, DriverError> {
        let key = [blocks.start, blocks.end, 0, 0, 0];
        if let Some(entry) = e.wgt.find(&key) {
            return Ok(entry);
        }
        let tiles = (blocks.len() * self.tile.stored()) as u32;
        let entry = e.wgt.hold(key, tiles);
        let bytes = u64::from(tiles) * u64::from(e.config.entry_bytes(Mem::Wgt));
        let [weights, _] = self.offsets(blocks);
        e.b.load_linear(Mem::Wgt, e.b.constants(), weights, entry, bytes)?;
        Ok(entry)
    }

    /// Returns the work of some taps of a step.
    fn taps(&self, s: &DepthwiseStep, taps: Range<usize>, stored: usize) -> Taps {
        let (conv, strip) = (self.shape.conv, &s.strip);
        let lines = self.shape.row_span(&strip.rows).padded();
        let width = self.shape.column_span(&strip.columns).padded();
        let pair = |v: [usize; 2]| v.map(|n| n as u32);
        let window = self.shape.on_chip.input.map_or(pair([lines, width]), |kept| kept.size());
        Taps {
            blocks: strip.blocks.len() as u32,
            pixels: pair([s.rows.len(), strip.columns.len()]),
            window,
            kernel_columns: conv.kernel[1] as u32,
            steps: pair(conv.strides),
            dilations: pair(conv.dilations),
            first: taps.start as u32,
            count: taps.len() as u32,
            stored: stored as u32,
        }
    }

    /// Loads the rows of a step that earlier steps of its strip have not loaded.
    fn load(&self, e: &mut Emit, s: &DepthwiseStep) -> Result<(), DriverError> {
        let Some(input) = self.input else { return Ok(()) };
        let (strip, columns) = (&s.strip, self.shape.column_span(&s.strip.columns));
        let load = Load {
            mem: Mem::Inp,
            entry: strip.entry + (s.line * columns.padded()) as u32,
            pad_value: self.shape.conv.pad_value,
            ..Load::default()
        };
        let window = Window { image: strip.image, blocks: strip.blocks.clone(), rows: s.load, skip: 1, columns };
        e.load(window.load(input, load, 1))
    }

    /// Emits a step. `loads`: its data must still be loaded. `ahead`: later steps whose data are loaded during this
    /// one.
    fn step(
        &self,
        e: &mut Emit,
        s: &DepthwiseStep,
        loads: bool,
        ahead: &[&DepthwiseStep],
        border: &mut PendingBorder,
    ) -> Result<(), DriverError> {
        let (strip, blocks) = (&s.strip, &s.strip.blocks);
        let size = [s.rows.len(), strip.columns.len()].map(|n| n as u32);
        let pixels = size[0] * size[1];
        let entries = blocks.len() as u32 * pixels;
        let width = self.shape.column_span(&strip.columns).padded();
        let wgt = self.load_weights(e, blocks)?;
        let product = e.nest(&Diagonal(self.taps(s, 0..s.taps, self.tile.stored())))?;
        let begin = Nest { body: product.body[..1].to_vec(), ..product.clone() };
        let go_on = Nest { body: product.body[1..].to_vec(), ..product };
        e.b.prepare_gemm(&begin)?;
        e.b.prepare_gemm(&go_on)?;
        if loads {
            self.load(e, s)?;
        }
        let first_line = (s.rows.start - strip.rows.start) * self.shape.conv.strides[0];
        let data = match &self.shape.on_chip.input {
            Some(kept) => self.shape.kept_at(kept, blocks.start, s.rows.start, strip.columns.start),
            None => strip.entry + (first_line * width) as u32,
        };
        let acc = e.acc.take(entries);
        let place = |nest: Nest| Nest { at: [acc, data, wgt], ..nest };
        e.b.gemm_nest_less(false, self.zero_point, &place(begin))?;
        e.b.gemm_nest_less(true, self.zero_point, &place(go_on))?;

        let count = (blocks.len() * (1 + self.shape.tap_entries())) as u32;
        let [_, offset] = self.offsets(blocks);
        e.load_param_entries([blocks.start, blocks.end, 0, 0, 0], offset, count)?;
        let descriptor =
            e.load_param_entries([DESCRIPTOR, 0, 0, 0, 0], self.descriptor, e.config.descriptor_entries())?;
        // Loading the descriptor can evict the parameters. In that case they are loaded again, after it.
        let params = e.load_param_entries([blocks.start, blocks.end, 0, 0, 0], offset, count)?;
        ahead.iter().try_for_each(|s| self.load(e, s))?;
        let (taps, tap_rows) = (self.shape.conv.taps(), self.shape.tap_entries() * PARAM_ROWS as usize);
        if s.taps < taps {
            let nest = e.nest(&Mac { taps: self.taps(s, s.taps..taps, tap_rows), zero_point: self.zero_point })?;
            let a = VecSrc::Inp;
            let mac = Vector { op: VecOp::Mac, dst: VecDst::Acc, a, b: VecSrc::Param, descriptor, ..Vector::default() };
            let first = TAP_STRIDE * (params + blocks.len() as u32);
            e.b.vector_nest(mac, &Nest { at: [acc, data, first], ..nest })?;
        }
        let on_chip = &self.shape.on_chip;
        let kept = on_chip.output.map(|k| k.target(blocks.start, s.rows.start, strip.columns.start));
        let (out, target) = match kept.filter(|_| !on_chip.stored) {
            Some(target) => (0, target),
            None => {
                let out = if kept.is_some() { e.banks.take(entries) } else { e.out.take(entries) };
                (out, Target::out(out, size, 1))
            }
        };
        let count = blocks.len() as u32;
        let work = RequantTile::new(&self.shape.conv.finish, count, 1, pixels);
        let (nest, requant) = (e.nest(&work)?, work.instruction(target.dst, descriptor));
        e.b.vector_nest(requant, &target.results(Nest { at: [out, acc, params], ..nest }, count, size))?;
        border.late(e, self.name, acc)?;
        let Some(output) = self.output else { return Ok(()) };
        if let Some(kept) = kept {
            kept.fill(e, out, count, size)?;
        }
        store_tile(e, output, self.shape.output, strip.image, blocks, &s.rows, &strip.columns, out)
    }
}
