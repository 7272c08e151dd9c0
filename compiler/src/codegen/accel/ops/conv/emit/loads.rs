//! Loads of a step of a product: parameters, weights, and the rows that its windows read.

use super::{ConvEmission, ConvStep, StepParams};
use crate::codegen::accel::batch::stride;
use crate::codegen::accel::emit::{DeviceTensor, Emit, LayerTensor};
use crate::codegen::accel::ops::conv::sizes::{column_span, row_span};
use crate::codegen::accel::view::ColumnWindows;
use crate::codegen::accel::window::Window;
use std::ops::Range;
use tilewright_driver::DriverError;
use tilewright_hw::config::Mem;
use tilewright_hw::isa::Load;

impl ConvEmission<'_> {
    /// Loads the descriptor and the requantizations of a step's output tiles.
    pub(super) fn load_params(&self, e: &mut Emit, s: &ConvStep) -> Result<StepParams, DriverError> {
        let group = self.params.iter().find(|(blocks, _)| blocks.contains(&s.blocks.start));
        let (blocks, offset) = group.cloned().unwrap_or((0..0, 0));
        let descriptor = e.config.descriptor_entries();
        let entries = self.param_entries(e.config, blocks.len());
        let key = [blocks.start, 0, 0, 0, 0];
        let entry = e.load_param_entries(key, offset, entries)?;
        let first = entry + descriptor + ((s.blocks.start - blocks.start) * self.sizes.out_ratio) as u32;
        let slope = first + (blocks.len() * self.sizes.out_ratio) as u32;
        Ok(StepParams { descriptor: entry, finish: first, slope })
    }

    /// Loads the weights of a pass of a step, and returns their first entry.
    pub(super) fn load_weights(
        &self,
        e: &mut Emit,
        s: &ConvStep,
        in_blocks: &Range<usize>,
    ) -> Result<u32, DriverError> {
        let tiles = self.pass_tiles(in_blocks);
        let key = [s.blocks.start, tiles.start, 0, 0, 0];
        if let Some(entry) = e.wgt.find(&key) {
            return Ok(entry);
        }
        let (taps, all) = (self.taps(), self.sizes.in_tiles);
        let out_tiles = s.blocks.len() * self.sizes.out_ratio;
        let first = s.blocks.start * self.sizes.out_ratio;
        let main = out_tiles * tiles.len() * taps;
        let entry = e.wgt.hold(key, (main + self.rest.count(first..first + out_tiles, &tiles)) as u32);
        let tile_bytes = u64::from(e.config.entry_bytes(Mem::Wgt));
        let row = (tiles.len() * taps) as u64 * tile_bytes;
        let offset = |t: usize| self.weights + (((first + t) * all + tiles.start) * taps) as u64 * tile_bytes;
        let constants = e.b.constants();
        let mut further = |from: usize, to: usize, count: usize| {
            let offset = self.rest_weights + from as u64 * tile_bytes;
            e.b.load_linear(Mem::Wgt, constants, offset, entry + (main + to) as u32, count as u64 * tile_bytes)
        };
        if tiles.len() == all {
            let count = self.rest.count(first..first + out_tiles, &tiles);
            if count > 0 {
                further(self.rest.tiles(first, &tiles).start, 0, count)?;
            }
            e.b.load_linear(Mem::Wgt, constants, offset(0), entry, row * out_tiles as u64)?;
            return Ok(entry);
        }
        let mut at = 0;
        for t in 0..out_tiles {
            let rest = self.rest.tiles(first + t, &tiles);
            if !rest.is_empty() {
                further(rest.start, at, rest.len())?;
            }
            at += rest.len();
        }
        for t in 0..out_tiles {
            let to = entry + (t * tiles.len() * taps) as u32;
            e.b.load_linear(Mem::Wgt, constants, offset(t), to, row)?;
        }
        Ok(entry)
    }

    /// Loads the input of a pass of a step, unless it is in inp, and returns its first entry.
    pub(super) fn load_input(&self, e: &mut Emit, s: &ConvStep, in_blocks: &Range<usize>) -> Result<u32, DriverError> {
        let [image, row, column] = s.pixels.key();
        let LayerTensor { place, view } = self.input;
        let Some(place) = place else {
            let first = |k: usize, at: usize| (at * self.conv.strides[k]) as i64 - self.conv.pads[k] as i64;
            let kept = self.on_chip.input.map(|k| k.at(in_blocks.start, first(0, row), first(1, column)));
            return kept.ok_or_else(|| DriverError::Rule { index: e.b.len(), what: "an input has no place".into() });
        };
        // Windows of two tiles can begin with the same row, so the key uses the position in the results.
        let [_, first_row, first_column] = s.pixels.key();
        let key = [image, first_row, first_column, in_blocks.start, in_blocks.end];
        if let Some(entry) = e.inp.find(&key) {
            return Ok(entry);
        }
        let ratio = self.sizes.in_ratio;
        let entries = in_blocks.len() * s.window[0] * s.window[1] * ratio;
        let entry = e.inp.hold(key, entries as u32);
        if let Some(columns) = view.windows() {
            self.load_windows(e, s, in_blocks, place, entry, columns)?;
            return Ok(entry);
        }
        let windows: Vec<Window> = s
            .pixels
            .tiles
            .iter()
            .map(|t| {
                let (rows, skip) = row_span(self.conv, t.rows.start, t.rows.len(), view);
                let columns = column_span(self.conv, t.columns.start, t.columns.len(), view);
                Window { image: t.image, blocks: in_blocks.clone(), rows, skip, columns }
            })
            .collect();
        let load = Load { mem: Mem::Inp, entry, pad_value: self.conv.pad_value, ..Load::default() };
        s.pixels.load(e, place, &windows, s.window, load, ratio)?;
        Ok(entry)
    }

    /// Loads windows of columns to inp from `entry` on. Each window is a row of bytes per block of its channels.
    fn load_windows(
        &self,
        e: &mut Emit,
        s: &ConvStep,
        in_blocks: &Range<usize>,
        place: DeviceTensor,
        entry: u32,
        windows: ColumnWindows,
    ) -> Result<(), DriverError> {
        let view = self.input.view;
        let block = e.config.block() as usize;
        for t in &s.pixels.tiles {
            let (rows, skip) = row_span(self.conv, t.rows.start, t.rows.len(), view);
            let offset = place.layout.offset(t.image, 0, rows.start, t.columns.start * windows.step);
            for (i, first) in in_blocks.clone().map(|b| b * block).enumerate() {
                e.load(Load {
                    mem: Mem::Inp,
                    base: place.region.0,
                    offset: place.offset + (offset + first) as u64,
                    entry: entry + (i * s.window[0] * s.window[1]) as u32,
                    row_bytes: block.min(view.c - first) as u32,
                    rows: t.columns.len() as u32,
                    planes: rows.inside as u32,
                    row_stride: stride(t.columns.len(), windows.step * windows.c),
                    plane_stride: stride(rows.inside, skip * place.layout.row_stride()),
                    z_before: rows.before as u32,
                    z_after: rows.after as u32,
                    pad_value: self.conv.pad_value,
                    ..Load::default()
                })?;
            }
        }
        Ok(())
    }
}
