//! A pooling in the tiles of the product before it: of the product's results a tile computes those that its windows read, and
//! stores what the windows become.
//!
//! The product's results lie in the lower half of out, with padding around them where windows reach beyond the image, and
//! there the vector unit finds them as it finds loaded data; the pooling's results go to the upper half, from which they are
//! stored while the next tile's come. Sums of windows take the place of the product's sums. Rows that windows of two tiles
//! read are computed for both.

use super::op::Conv;
use super::tiles::ConvTile;
use super::windows::PooledWindows;
use crate::codegen::accel::batch::Group;
use crate::codegen::accel::emit::{DeviceTensor, Emit};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::ops::pool::{Data, PoolEmission, PoolTile};
use crate::codegen::accel::requant::RequantTile;
use crate::codegen::accel::span::Span;
use crate::codegen::accel::target::{Frame, PendingBorder, Target};
use std::ops::Range;
use tilewright_driver::{Dim, DriverError, Nest, Role};
use tilewright_hw::isa::{Descriptor, PARAM_ROWS, VecDst, VecSrc, Vector};
use tilewright_hw::layout::pack_descriptor;

/// A pooling in a product's tiles, as it is emitted.
pub struct Pooled<'a> {
    windows: PooledWindows<'a>,
    emission: PoolEmission<'a>,
    ratio: u32,
    /// Offset in the constants, and bytes, of the descriptor that makes padding.
    padding: (u64, u64),
}

impl<'a> Pooled<'a> {
    /// The pooling of a layer whose product has this tile, with its constants among the program's.
    pub fn new(
        e: &mut Emit,
        layer: &'a Layer,
        conv: &'a Conv,
        tile: ConvTile,
        output: Option<DeviceTensor>,
    ) -> Option<Pooled<'a>> {
        let windows = PooledWindows::of(conv, layer)?;
        let value = i32::from(windows.pool.pad_value);
        let bytes = pack_descriptor(e.config, &Descriptor { lo: value, hi: value, ..Descriptor::default() });
        let pads = windows.needed([tile.rows, tile.columns], e.config).is_some_and(|n| n.pads);
        let name = format!("{} padding", layer.name);
        let padding = if pads { e.b.constant(&name, Role::Params, &bytes) } else { 0 };
        let pool_tile = PoolTile { blocks: tile.out_blocks, rows: tile.rows, columns: tile.columns };
        let ends = ((None, windows.of), (output, windows.results));
        let emission = PoolEmission::new(e, layer, (windows.pool, pool_tile), ends, true);
        let ratio = e.config.block() / e.config.block_out;
        Some(Pooled { windows, emission, ratio, padding: (padding, bytes.len() as u64) })
    }

    /// The product's tiles that a group of the pooling's reads.
    pub fn pixels(&self, results: &Group) -> Group {
        let inside = |s: Span| s.start..s.start + s.inside;
        results.reading(|t| {
            let (rows, columns) = (&t.rows, &t.columns);
            [
                inside(self.windows.rows(rows.start, rows.len())),
                inside(self.windows.columns(columns.start, columns.len())),
            ]
        })
    }

    /// Entries of acc for a step's sums, the product's and then the pooling's.
    pub fn sums(&self, entries: u32, results: &Group, blocks: &Range<usize>) -> u32 {
        entries.max(self.emission.entries(results, blocks))
    }

    /// Room for a step's results of the product, with padding around them.
    pub fn frame(&self, e: &mut Emit, results: &Group, blocks: &Range<usize>) -> Frame {
        let pixels = self.pixels(results).size.map(|n| n as u32);
        let spans = results.tiles.first().map(|t| self.windows.spans(t)).unwrap_or_default();
        let [[top, _, bottom], [left, _, right]] = spans.map(|s| s.map(|n| n as u32));
        let frame = Frame {
            dst: VecDst::Out,
            entry: 0,
            blocks: blocks.len() as u32,
            image: [pixels[0], pixels[1] * self.ratio],
            border: [top, left * self.ratio, bottom, right * self.ratio],
        };
        let [rows, columns] = frame.size();
        Frame { entry: e.lower.take(frame.blocks * rows * columns), ..frame }
    }

    /// Puts the padding around the results, reduces the windows in the place of the sums, and keeps and stores what they
    /// become.
    pub fn apply(
        &self,
        e: &mut Emit,
        frame: &Frame,
        (results, blocks): (&Group, &Range<usize>),
        acc: u32,
        border: &mut PendingBorder,
    ) -> Result<(), DriverError> {
        if frame.border != [0; 4] {
            let key = [usize::MAX, 1, 0, 0, 0];
            let row = e.load_params(key, self.padding, PARAM_ROWS * e.config.descriptor_entries())?;
            frame.write(e, row / PARAM_ROWS, (VecSrc::Acc, acc))?;
        }
        let params = self.emission.load_params(e, blocks)?;
        let [rows, columns] = frame.size();
        let data = Data { size: [rows, columns / self.ratio], at: frame.entry, acc };
        self.emission.reduce(e, (results, blocks), &data, params, border)
    }
}

impl Frame {
    /// Requantizes sums that lie one behind the other, from `acc` on, to the image.
    pub fn requantize(
        &self,
        e: &mut Emit,
        vector: Vector,
        work: RequantTile,
        [acc, param]: [u32; 2],
    ) -> Result<(), DriverError> {
        let Target { at, plane, row, .. } = self.target();
        let [rows, columns] = self.image;
        let nest = e.nest(&RequantTile { blocks: 1, pixels: columns / work.ratio, ..work })?;
        let around = [Dim::new(self.blocks, [plane, rows * columns, work.ratio]), Dim::new(rows, [row, columns, 0])];
        let dims = around.into_iter().chain(nest.dims).collect();
        e.b.vector_nest(vector, &Nest { at: [at, acc, param], body: nest.body, dims })
    }

    /// An operator on the image's entries and others that lie one behind the other, from `b` on.
    pub fn combine(&self, e: &mut Emit, vector: Vector, b: u32) -> Result<(), DriverError> {
        let Target { at, plane, row, .. } = self.target();
        let [rows, columns] = self.image;
        let dims = vec![
            Dim::new(self.blocks, [plane, plane, rows * columns]),
            Dim::new(rows, [row, row, columns]),
            Dim::new(columns, [1, 1, 1]),
        ];
        e.b.vector_nest(vector, &Nest { at: [at, at, b], body: vec![[0; 3]], dims })
    }
}
