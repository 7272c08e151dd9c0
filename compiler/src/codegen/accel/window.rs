//! Loads and stores of rectangular parts of tensors in device memory.

use super::emit::{DeviceTensor, Emit};
use super::limits::ROW_BYTES;
use super::padded_range::PaddedRange;
use super::view::View;
use std::ops::Range;
use tilewright_driver::DriverError;
use tilewright_hw::config::Mem;
use tilewright_hw::isa::{Load, Store};

/// A window of a tensor, with its padding.
pub struct Window {
    pub image: usize,
    pub blocks: Range<usize>,
    pub rows: PaddedRange,
    /// Distance between loaded rows, in rows.
    pub skip: usize,
    pub columns: PaddedRange,
}

impl Window {
    /// Returns the load of the window to the memory and entry of `to`, with `ratio` entries per pixel.
    pub fn load(&self, place: DeviceTensor, to: Load, ratio: usize) -> Load {
        let layout = place.layout;
        let (rows, columns) = (&self.rows, &self.columns);
        let offset = layout.offset(self.image, self.blocks.start * layout.block, rows.start, columns.start);
        let mut load = Load {
            base: place.region.0,
            offset: place.offset + offset as u64,
            row_bytes: (columns.inside * layout.block) as u32,
            rows: rows.inside as u32,
            planes: self.blocks.len() as u32,
            row_stride: (self.skip * layout.row_stride()) as u64,
            plane_stride: layout.block_stride() as u64,
            x_before: (columns.before * ratio) as u32,
            x_after: (columns.after * ratio) as u32,
            y_before: rows.before as u32,
            y_after: rows.after as u32,
            ..to
        };
        let whole = rows.inside * columns.inside * layout.block;
        let pads = rows.before + rows.after + columns.before + columns.after;
        if pads == 0 && self.skip == 1 && columns.inside == layout.w && whole <= ROW_BYTES {
            load.row_bytes = whole as u32;
            load.rows = 1;
        }
        // Unused strides are zero.
        if load.rows == 1 {
            load.row_stride = 0;
        }
        if load.planes == 1 {
            load.plane_stride = 0;
        }
        load
    }
}

/// Stores a tile from scratchpad out. Entry `out` is the first; entries are ordered by block, row and column.
#[allow(clippy::too_many_arguments)]
pub fn store_tile(
    e: &mut Emit,
    place: DeviceTensor,
    view: View,
    image: usize,
    blocks: &Range<usize>,
    rows: &Range<usize>,
    columns: &Range<usize>,
    out: u32,
) -> Result<(), DriverError> {
    let layout = place.layout;
    let offset = layout.offset(image, blocks.start * layout.block, rows.start, columns.start);
    let whole = rows.len() * columns.len() * layout.block;
    let joined = columns.len() == view.w && whole <= ROW_BYTES;
    let row_bytes = if joined { whole } else { columns.len() * layout.block };
    let count = if joined { 1 } else { rows.len() };
    e.b.store(Store {
        mem: Mem::Out,
        base: place.region.0,
        offset: place.offset + offset as u64,
        entry: out,
        row_bytes: row_bytes as u32,
        rows: count as u32,
        planes: blocks.len() as u32,
        row_stride: if count == 1 { 0 } else { layout.row_stride() as u64 },
        plane_stride: if blocks.len() == 1 { 0 } else { layout.block_stride() as u64 },
        ..Store::default()
    })
}
