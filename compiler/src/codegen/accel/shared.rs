//! Depthwise convolutions on the array and the vector unit at once, step by step.

use super::build::{Emit, Place, Work};
use super::conv::{Window, requant_entries, store_tile};
use super::depthwise::{DepthwiseTile, Shape, Step};
use super::layer::{Conv, Layer};
use super::rest::stored;
use super::taps::Taps;
use super::vector::Requant;
use crate::graph::ValueId;
use std::ops::Range;
use tilewright_driver::{DriverError, Nest, Role};
use tilewright_hw::config::Mem;
use tilewright_hw::isa::{Descriptor, Load, PARAM_ROWS, TAP_STRIDE, VecDst, VecOp, VecSrc, Vector};
use tilewright_hw::layout::{Weights, pack_descriptor};

/// Names the descriptor among the tiles of param, whose names begin with a block.
const DESCRIPTOR: usize = usize::MAX;

struct Walk<'a> {
    shape: Shape<'a>,
    tile: DepthwiseTile,
    input: Place,
    output: Place,
    /// What both units subtract from every weight.
    zero_point: i8,
    descriptor: u64,
    /// Offsets in the constants of the weight tiles and of the parameters of a strip's blocks.
    constants: Vec<(Range<usize>, u64, u64)>,
}

/// Emits a depthwise convolution.
pub(super) fn emit(
    e: &mut Emit,
    layer: &Layer,
    conv: &Conv,
    tile: DepthwiseTile,
    root: &dyn Fn(ValueId) -> ValueId,
) -> Result<(), DriverError> {
    let shape = Shape { conv, input: layer.inputs[0].1, output: layer.output.1 };
    let missing = || DriverError::Rule { index: e.b.len(), what: "a strip of the depthwise layer has no data".into() };
    let steps = shape.steps(&tile, e.config).ok_or_else(missing)?;
    let (input, output) = (e.place(layer.inputs[0], root)?, e.place(layer.output, root)?);
    let mut walk = Walk { shape, tile, input, output, zero_point: 0, descriptor: 0, constants: Vec::new() };
    walk.constants(e, &layer.name, &steps);
    steps.iter().try_for_each(|s| walk.step(e, s))
}

impl Walk<'_> {
    fn constants(&mut self, e: &mut Emit, name: &str, steps: &[Step]) {
        let (config, conv) = (e.config, self.shape.conv);
        let (taps, tiles, lanes) = (self.shape.taps(), self.tile.stored(), config.block() as usize);
        let (weights, zero_point) = stored(conv, config);
        self.zero_point = zero_point;
        let weight = |channel: usize, tap: usize| weights.get(channel * taps + tap).copied().unwrap_or(zero_point);
        let finish = &conv.finish;
        let (lo, hi, zero) = (finish.lo, finish.hi, finish.zero_point);
        let descriptor = Descriptor { lo, hi, zero_point: zero, zero_b: zero_point, ..Descriptor::default() };
        let bytes = pack_descriptor(config, &descriptor);
        self.descriptor = e.b.constant(&format!("{name} descriptor"), Role::Params, &bytes);
        for step in steps {
            let blocks = &step.strip.blocks;
            if self.constants.iter().any(|(b, ..)| b == blocks) {
                continue;
            }
            let first = blocks.start * lanes;
            let packed = Weights::new(config, blocks.len() * lanes, lanes, tiles)
                .pack(|o, i, tap| if o % lanes == i { weight(first + o, tap) } else { zero_point });
            let bytes: Vec<u8> = packed.into_iter().map(|w| w as u8).collect();
            let tile_bytes = e.b.constant(&format!("{name} weights"), Role::Weights, &bytes);
            let mut bytes = requant_entries(config, finish, blocks.clone());
            let rows = self.shape.tap_entries() * PARAM_ROWS as usize;
            for block in blocks.clone() {
                let value =
                    |row: usize, lane: usize| if row < taps { weight(block * lanes + lane, row) as u8 } else { 0 };
                bytes.extend((0..rows).flat_map(|row| (0..lanes).map(move |lane| value(row, lane))));
            }
            let params = e.b.constant(&format!("{name} parameters"), Role::Params, &bytes);
            self.constants.push((blocks.clone(), tile_bytes, params));
        }
    }

    fn of(&self, blocks: &Range<usize>) -> (u64, u64) {
        let found = self.constants.iter().find(|(b, ..)| b == blocks);
        found.map_or((0, 0), |&(_, weights, params)| (weights, params))
    }

    fn load_weights(&self, e: &mut Emit, blocks: &Range<usize>) -> Result<u32, DriverError> {
        let key = [blocks.start, blocks.end, 0, 0, 0];
        if let Some(entry) = e.wgt.find(&key) {
            return Ok(entry);
        }
        let tiles = (blocks.len() * self.tile.stored()) as u32;
        let entry = e.wgt.hold(key, tiles);
        let bytes = u64::from(tiles) * u64::from(e.config.entry_bytes(Mem::Wgt));
        e.b.load_linear(Mem::Wgt, e.b.constants(), self.of(blocks).0, entry, bytes)?;
        Ok(entry)
    }

    /// Param entries of what lies at an offset of the constants; loads them where they are not there.
    fn load_params(&self, e: &mut Emit, key: [usize; 2], offset: u64, entries: u32) -> Result<u32, DriverError> {
        let key = [key[0], key[1], 0, 0, 0];
        if let Some(row) = e.param.find(&key) {
            return Ok(row / PARAM_ROWS);
        }
        let row = e.param.hold(key, PARAM_ROWS * entries);
        let bytes = u64::from(entries * e.config.param_entry_bytes());
        e.b.load_linear(Mem::Param, e.b.constants(), offset, row, bytes)?;
        Ok(row / PARAM_ROWS)
    }

    /// Some taps of a step.
    fn taps(&self, s: &Step, taps: Range<usize>, stored: usize) -> Taps {
        let (conv, strip) = (self.shape.conv, &s.strip);
        let lines = self.shape.row_span(&strip.rows).padded();
        let width = self.shape.column_span(&strip.columns).padded();
        let pair = |v: [usize; 2]| v.map(|n| n as u32);
        Taps {
            blocks: strip.blocks.len() as u32,
            pixels: pair([s.rows.len(), strip.columns.len()]),
            window: pair([lines, width]),
            kernel_columns: conv.kernel[1] as u32,
            steps: pair(conv.strides),
            dilations: pair(conv.dilations),
            first: taps.start as u32,
            count: taps.len() as u32,
            stored: stored as u32,
        }
    }

    fn step(&self, e: &mut Emit, s: &Step) -> Result<(), DriverError> {
        let (strip, blocks) = (&s.strip, &s.strip.blocks);
        let pixels = s.rows.len() * strip.columns.len();
        let entries = (blocks.len() * pixels) as u32;
        let columns = self.shape.column_span(&strip.columns);
        let width = columns.padded();
        let wgt = self.load_weights(e, blocks)?;
        let product = e.nest(&Work::Diagonal(self.taps(s, 0..s.taps, self.tile.stored())))?;
        let begin = Nest { body: product.body[..1].to_vec(), ..product.clone() };
        let go_on = Nest { body: product.body[1..].to_vec(), ..product };
        e.b.prepare_gemm(&begin)?;
        e.b.prepare_gemm(&go_on)?;
        let load = Load {
            mem: Mem::Inp,
            entry: strip.entry + (s.line * width) as u32,
            pad_value: self.shape.conv.pad_value,
            ..Load::default()
        };
        let window = Window { image: strip.image, blocks: blocks.clone(), rows: s.load, skip: 1, columns };
        e.b.load(window.load(self.input, load, 1))?;
        let first_line = (s.rows.start - strip.rows.start) * self.shape.conv.strides[0];
        let data = strip.entry + (first_line * width) as u32;
        let acc = e.acc.take(entries);
        let place = |nest: Nest| Nest { at: [acc, data, wgt], ..nest };
        e.b.gemm_nest_less(false, self.zero_point, &place(begin))?;
        e.b.gemm_nest_less(true, self.zero_point, &place(go_on))?;

        let count = (blocks.len() * (1 + self.shape.tap_entries())) as u32;
        let offset = self.of(blocks).1;
        self.load_params(e, [blocks.start, blocks.end], offset, count)?;
        let descriptor = self.load_params(e, [DESCRIPTOR, 0], self.descriptor, e.config.descriptor_entries())?;
        // The descriptor may have taken their room; then they come to lie behind it.
        let params = self.load_params(e, [blocks.start, blocks.end], offset, count)?;
        let (taps, tap_rows) = (self.shape.taps(), self.shape.tap_entries() * PARAM_ROWS as usize);
        if s.taps < taps {
            let nest = e.nest(&Work::Mac(self.taps(s, s.taps..taps, tap_rows), self.zero_point))?;
            let a = VecSrc::Inp;
            let mac = Vector { op: VecOp::Mac, dst: VecDst::Acc, a, b: VecSrc::Param, descriptor, ..Vector::default() };
            let first = TAP_STRIDE * (params + blocks.len() as u32);
            e.b.vector_nest(mac, &Nest { at: [acc, data, first], ..nest })?;
        }
        let out = e.out.take(entries);
        let finish = &self.shape.conv.finish;
        let (bounds, mode) = ([finish.zero_point, finish.lo, finish.hi], finish.mode);
        let work = Requant { blocks: blocks.len() as u32, ratio: 1, pixels: pixels as u32, bounds, mode };
        let nest = e.nest(&Work::Requant(work))?;
        let requant = Vector {
            op: VecOp::Requant,
            mode,
            dst: VecDst::Out,
            a: VecSrc::Acc,
            b: VecSrc::Param,
            descriptor,
            ..Vector::default()
        };
        e.b.vector_nest(requant, &Nest { at: [out, acc, params], ..nest })?;
        store_tile(e, self.output, self.shape.output, strip.image, blocks, &s.rows, &strip.columns, out)
    }
}
