//! A pooling that is fused into the tiles of a product: a tile computes the product's results that its windows read,
//! and stores only the results of the pooling.
//!
//! The product's results are in the lower half of out, with padding around them if windows reach beyond the image. The
//! vector unit reads them there like loaded data. The pooling's results go to the upper half, from which they are
//! stored while the next tile is computed. Sums of windows overwrite the product's sums. Rows that windows of two tiles
//! read are computed twice.

use super::op::Conv;
use super::tiles::ConvTile;
use super::windows::PooledWindows;
use crate::codegen::accel::batch::Group;
use crate::codegen::accel::emit::{DeviceTensor, Emit, LayerTensor};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::ops::pool::{Data, PoolEmission, PoolTile};
use crate::codegen::accel::padded_range::PaddedRange;
use crate::codegen::accel::requant::RequantTile;
use crate::codegen::accel::target::{Frame, PendingBorder, Target};
use std::ops::Range;
use tilewright_driver::{Dim, DriverError, Nest, Role};
use tilewright_hw::isa::{Descriptor, PARAM_ROWS, VecDst, VecSrc, Vector};
use tilewright_hw::layout::pack_descriptor;

/// Emits a pooling that is fused into a product's tiles.
pub struct Pooled<'a> {
    windows: PooledWindows<'a>,
    emission: PoolEmission<'a>,
    ratio: u32,
    /// Offset and length, in the constants, of the descriptor of the clip that writes padding.
    padding: (u64, u64),
}

impl<'a> Pooled<'a> {
    /// Prepares the pooling of a layer whose product has this tile, and adds its constants to the program. `None` if
    /// the layer has no pooling.
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
        let input = LayerTensor { place: None, view: windows.of };
        let output = LayerTensor { place: output, view: windows.results };
        let emission = PoolEmission::new(e, layer, windows.pool, pool_tile, [input, output]);
        let ratio = e.config.block() / e.config.block_out;
        Some(Pooled { windows, emission, ratio, padding: (padding, bytes.len() as u64) })
    }

    /// Returns the tiles of the product that a group of the pooling's tiles reads.
    pub fn pixels(&self, results: &Group) -> Group {
        let inside = |s: PaddedRange| s.start..s.start + s.inside;
        results.reading(|t| {
            let (rows, columns) = (&t.rows, &t.columns);
            [
                inside(self.windows.rows(rows.start, rows.len())),
                inside(self.windows.columns(columns.start, columns.len())),
            ]
        })
    }

    /// Returns the entries of acc for a step, which hold the product's sums and then the pooling's sums.
    pub fn sums(&self, entries: u32, results: &Group, blocks: &Range<usize>) -> u32 {
        entries.max(self.emission.entries(results, blocks))
    }

    /// Allocates entries for the product's results of a step, with padding around them.
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

    /// Writes the padding around the product's results, reduces the windows into the entries of the sums, and writes
    /// and stores the pooling's results.
    pub fn apply(
        &self,
        e: &mut Emit,
        frame: &Frame,
        results: &Group,
        blocks: &Range<usize>,
        acc: u32,
        border: &mut PendingBorder,
    ) -> Result<(), DriverError> {
        if frame.border != [0; 4] {
            let key = [usize::MAX, 1, 0, 0, 0];
            let row = e.load_params(key, self.padding, PARAM_ROWS * e.config.descriptor_entries())?;
            frame.write(&mut e.b, row / PARAM_ROWS, (VecSrc::Acc, acc))?;
        }
        let params = self.emission.load_params(e, blocks)?;
        let [rows, columns] = frame.size();
        let data = Data { size: [rows, columns / self.ratio], at: frame.entry, acc };
        self.emission.reduce(e, results, blocks, &data, params, border)
    }
}

impl Frame {
    /// Requantizes consecutive sums, from entry `acc` on, into the image.
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

    /// Applies a vector operation to the image's entries and consecutive entries from `b` on; results overwrite the
    /// image.
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
