//! How the batch rows of an entry are filled with pixels.
//!
//! If an operator reads windows, an entry holds the same pixel of `batch` different tiles. A tap is then a step between
//! entries, as with one batch row, and each pixel is loaded once for all taps. If an operator reads single pixels, an
//! entry holds `batch` neighboring pixels, in the order of device memory.

use super::emit::{DeviceTensor, Emit};
use super::limits::ROWS;
use super::parts::cut;
use super::view::View;
use super::window::{Window, store_tile};
use std::ops::Range;
use tilewright_driver::DriverError;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{Load, Store};

/// A tile of an operator's pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pixels {
    pub image: usize,
    pub rows: Range<usize>,
    pub columns: Range<usize>,
}

/// How pixels fill the batch rows of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// The same pixel of several tiles.
    Tiles,
    /// Neighboring pixels; a column of the views is an entry.
    Neighbors,
}

/// Returns how an operator fills batch rows, and the views of its input and output as its tiles see them.
///
/// `pointwise`: each output pixel depends only on the input pixel at the same position.
pub fn fill(pointwise: bool, views: [View; 2], config: &HwConfig) -> (Fill, [View; 2]) {
    let [input, output] = views;
    // A single pixel has no neighbors.
    let single = output.h * output.w == 1;
    if config.batch == 1 || single || !pointwise || (input.h, input.w) != (output.h, output.w) {
        return (Fill::Tiles, views);
    }
    // If a pixel's channels need several entries, neighboring pixels in memory do not match the order of entries.
    let (fill, step) = if config.block_is_row() { (Fill::Neighbors, config.batch as usize) } else { (Fill::Tiles, 1) };
    (fill, views.map(|v| v.resized(v.c, 1, (v.h * v.w).div_ceil(step))))
}

/// Tiles that are computed at the same time.
#[derive(Debug, Clone)]
pub struct Group {
    fill: Fill,
    /// At most one tile per batch row. With [`Fill::Neighbors`] there is exactly one.
    pub tiles: Vec<Pixels>,
    /// Rows and columns of the largest tile.
    pub size: [usize; 2],
}

impl Group {
    /// Cuts an output into tiles of `[rows, columns]` and groups them.
    pub fn all(fill: Fill, output: View, [rows, columns]: [usize; 2], config: &HwConfig) -> Vec<Group> {
        let tiles: Vec<Pixels> = (0..output.n)
            .flat_map(|n| cut(output.h, rows).into_iter().map(move |rows| (n, rows)))
            .flat_map(|(image, rows)| {
                let columns = cut(output.w, columns).into_iter();
                columns.map(move |columns| Pixels { image, rows: rows.clone(), columns })
            })
            .collect();
        let at_once = if fill == Fill::Tiles { config.batch as usize } else { 1 };
        tiles.chunks(at_once).map(|tiles| Group::of(fill, tiles.to_vec())).collect()
    }

    fn of(fill: Fill, tiles: Vec<Pixels>) -> Group {
        let most = |size: fn(&Pixels) -> usize| tiles.iter().map(size).max().unwrap_or(0);
        let size = [most(|t| t.rows.len()), most(|t| t.columns.len())];
        Group { fill, tiles, size }
    }

    /// Identifies the group among the groups of its layer.
    pub fn key(&self) -> [usize; 3] {
        self.tiles.first().map_or([0; 3], |t| [t.image, t.rows.start, t.columns.start])
    }

    /// Loads each tile's window to the memory and entry of `to`.
    ///
    /// A pixel takes `ratio` entries. `size` is rows and columns of the largest window, padding included.
    pub fn load(
        &self,
        e: &mut Emit,
        place: DeviceTensor,
        windows: &[Window],
        size: [usize; 2],
        to: Load,
        ratio: usize,
    ) -> Result<(), DriverError> {
        if e.config.batch == 1 {
            return windows.iter().try_for_each(|w| e.load(w.load(place, to, ratio)));
        }
        let layout = place.layout;
        let entry_bytes = e.config.entry_bytes(to.mem) as usize;
        let lane_bytes = entry_bytes / e.config.batch as usize;
        for (lane, w) in windows.iter().enumerate() {
            if self.fill == Fill::Neighbors {
                let (from, bytes) = neighbors(place, w.columns.start, w.columns.inside, e.config);
                let offset = layout.offset(w.image, w.blocks.start * layout.block, 0, 0) + from;
                e.load(Load {
                    base: place.region.0,
                    offset: place.offset + offset as u64,
                    row_bytes: bytes as u32,
                    planes: w.blocks.len() as u32,
                    plane_stride: stride(w.blocks.len(), layout.block_stride()),
                    ..to
                })?;
                continue;
            }
            let pads = w.rows.before + w.rows.after + w.columns.before + w.columns.after;
            let whole = w.rows.inside * w.columns.inside * ratio;
            let joined = |columns| columns == layout.w && columns == size[1];
            let offset = |block| layout.offset(w.image, block * layout.block, w.rows.start, w.columns.start);
            let packed = Load {
                base: place.region.0,
                row_bytes: lane_bytes as u32,
                pack: true,
                pack_byte: (lane * lane_bytes) as u32,
                pack_row_stride: entry_bytes as u32,
                ..to
            };
            if pads == 0 && whole <= ROWS && (w.rows.inside == 1 || (w.skip == 1 && joined(w.columns.inside))) {
                e.load(Load {
                    offset: place.offset + offset(w.blocks.start) as u64,
                    rows: whole as u32,
                    planes: w.blocks.len() as u32,
                    row_stride: stride(whole, lane_bytes),
                    plane_stride: stride(w.blocks.len(), layout.block_stride()),
                    pack_plane_stride: (size[0] * size[1] * ratio * entry_bytes) as u32,
                    ..packed
                })?;
                continue;
            }
            for (i, block) in w.blocks.clone().enumerate() {
                e.load(Load {
                    offset: place.offset + offset(block) as u64,
                    entry: to.entry + (i * size[0] * size[1] * ratio) as u32,
                    rows: (w.columns.inside * ratio) as u32,
                    planes: w.rows.inside as u32,
                    row_stride: stride(w.columns.inside * ratio, lane_bytes),
                    plane_stride: stride(w.rows.inside, w.skip * layout.row_stride()),
                    y_before: (w.columns.before * ratio) as u32,
                    y_after: (w.columns.after * ratio) as u32,
                    z_before: w.rows.before as u32,
                    z_after: w.rows.after as u32,
                    pack_plane_stride: (size[1] * ratio * entry_bytes) as u32,
                    ..packed
                })?;
            }
        }
        Ok(())
    }

    /// Stores the tiles from scratchpad out.
    ///
    /// Entry `out` is the first; entries are ordered by block, row and column. Only tiles in batch rows for which
    /// `lanes` returns true are stored.
    #[allow(clippy::too_many_arguments)]
    pub fn store(
        &self,
        e: &mut Emit,
        place: DeviceTensor,
        view: View,
        blocks: &Range<usize>,
        out: u32,
        lanes: impl Fn(usize) -> bool,
    ) -> Result<(), DriverError> {
        let layout = place.layout;
        let ratio = layout.block / e.config.block_out as usize;
        let entry_bytes = e.config.entry_bytes(Mem::Out) as usize;
        let lane_bytes = e.config.block_out as usize;
        for (lane, t) in self.tiles.iter().enumerate().filter(|(lane, _)| lanes(*lane)) {
            if e.config.batch == 1 {
                store_tile(e, place, view, t.image, blocks, &t.rows, &t.columns, out)?;
                continue;
            }
            if self.fill == Fill::Neighbors {
                for store in neighbor_stores(place, t, blocks, out, e.config) {
                    e.b.store(store)?;
                }
                continue;
            }
            let whole = t.rows.len() * t.columns.len() * ratio;
            let offset = |block| layout.offset(t.image, block * layout.block, t.rows.start, t.columns.start);
            let packed = Store {
                base: place.region.0,
                row_bytes: lane_bytes as u32,
                pack: true,
                pack_byte: (lane * lane_bytes) as u32,
                pack_row_stride: entry_bytes as u32,
                ..Store::default()
            };
            if whole <= ROWS && (t.rows.len() == 1 || (t.columns.len() == layout.w && layout.w == self.size[1])) {
                e.b.store(Store {
                    offset: place.offset + offset(blocks.start) as u64,
                    entry: out,
                    rows: whole as u32,
                    planes: blocks.len() as u32,
                    row_stride: stride(whole, lane_bytes),
                    plane_stride: stride(blocks.len(), layout.block_stride()),
                    pack_plane_stride: (self.size[0] * self.size[1] * ratio * entry_bytes) as u32,
                    ..packed
                })?;
                continue;
            }
            for (i, block) in blocks.clone().enumerate() {
                e.b.store(Store {
                    offset: place.offset + offset(block) as u64,
                    entry: out + (i * self.size[0] * self.size[1] * ratio) as u32,
                    rows: (t.columns.len() * ratio) as u32,
                    planes: t.rows.len() as u32,
                    row_stride: stride(t.columns.len() * ratio, lane_bytes),
                    plane_stride: stride(t.rows.len(), layout.row_stride()),
                    pack_plane_stride: (self.size[1] * ratio * entry_bytes) as u32,
                    ..packed
                })?;
            }
        }
        Ok(())
    }
}

/// Returns the stores for entries that hold neighboring pixels.
fn neighbor_stores(place: DeviceTensor, t: &Pixels, blocks: &Range<usize>, out: u32, config: &HwConfig) -> Vec<Store> {
    let layout = place.layout;
    let (from, bytes) = neighbors(place, t.columns.start, t.columns.len(), config);
    let offset = |channel| place.offset + (layout.offset(t.image, channel, 0, 0) + from) as u64;
    let (lane_bytes, batch) = (config.block_out as usize, config.batch as usize);
    let ratio = layout.block / lane_bytes;
    let store = Store { base: place.region.0, ..Store::default() };
    if ratio == 1 {
        return vec![Store {
            offset: offset(blocks.start * layout.block),
            entry: out,
            row_bytes: bytes as u32,
            planes: blocks.len() as u32,
            plane_stride: stride(blocks.len(), layout.block_stride()),
            ..store
        }];
    }
    // Each part of the channels has its own entries: the full ones first, then the partly filled last one.
    let (pixels, mut list) = (bytes / layout.block, Vec::new());
    let entry_bytes = lane_bytes * batch;
    for (i, block) in blocks.clone().enumerate() {
        for part in 0..ratio {
            for (first, planes, rows) in [(0, pixels / batch, batch), (pixels / batch, 1, pixels % batch)] {
                if planes * rows == 0 {
                    continue;
                }
                let at = offset(block * layout.block + part * lane_bytes) + (first * batch * layout.block) as u64;
                list.push(Store {
                    offset: at,
                    entry: out + ((i * t.columns.len() + first) * ratio + part) as u32,
                    row_bytes: lane_bytes as u32,
                    rows: rows as u32,
                    planes: planes as u32,
                    row_stride: stride(rows, layout.block),
                    plane_stride: stride(planes, batch * layout.block),
                    pack: true,
                    pack_row_stride: lane_bytes as u32,
                    pack_plane_stride: (ratio * entry_bytes) as u32,
                    ..store
                });
            }
        }
    }
    list
}

/// Returns the stride for `count` steps, or 0 if `count` is 1, because narrow fields might not hold an unused stride.
pub fn stride(count: usize, bytes: usize) -> u64 {
    if count == 1 { 0 } else { bytes as u64 }
}

/// Returns the first byte, counted from the start of the image's block, and the number of bytes of some entries of
/// neighboring pixels. The last entry can be partly filled.
fn neighbors(place: DeviceTensor, first: usize, entries: usize, config: &HwConfig) -> (usize, usize) {
    let layout = place.layout;
    let batch = config.batch as usize;
    let pixels = (layout.h * layout.w - first * batch).min(entries * batch);
    (first * batch * layout.block, pixels * layout.block)
}
