//! Emits copies with only loads and stores.
//!
//! A tile of the result is some rows of one block of channels. Loads assemble it in out from its parts, and one store
//! writes it. Parts that are not whole rows of whole blocks are loaded pixel by pixel, in pack mode.

use super::op::{Copy, Places, Segment};
use crate::codegen::accel::emit::{DeviceTensor, Emit};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::limits::{ROW_BYTES, ROWS};
use crate::codegen::accel::parts::cut;
use crate::codegen::accel::view::View;
use crate::codegen::accel::window::store_tile;
use std::ops::Range;
use tilewright_driver::DriverError;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::Load;
use tilewright_hw::layout::Activation;

/// Rows or columns `first + k * step` of the result, read from `source + k * stride`, for `k` in `0..count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StridedRun {
    first: usize,
    step: usize,
    count: usize,
    source: usize,
    stride: usize,
}

/// Maximum number of interleaved runs into which a map is split. Enlarging by a factor needs that many.
const MOST_PHASES: usize = 8;

/// Splits a map of rows or columns into runs: a few interleaved runs if possible, otherwise consecutive ones.
fn runs(first: usize, map: &[usize]) -> Vec<StridedRun> {
    let run = |at: usize, step: usize| -> Option<StridedRun> {
        let values: Vec<usize> = map[at..].iter().copied().step_by(step).collect();
        let stride = if values.len() > 1 { values[1].checked_sub(values[0])? } else { 0 };
        let affine = values.iter().enumerate().all(|(k, &v)| v == values[0] + k * stride);
        affine.then_some(StridedRun { first: first + at, step, count: values.len(), source: values[0], stride })
    };
    for step in 1..=MOST_PHASES.min(map.len()) {
        if let Some(found) = (0..step).map(|at| run(at, step)).collect() {
            return found;
        }
    }
    let mut found: Vec<StridedRun> = Vec::new();
    for (i, &v) in map.iter().enumerate() {
        match found.last_mut() {
            Some(r) if r.count == 1 && v >= r.source => (r.count, r.stride) = (2, v - r.source),
            Some(r) if r.count > 1 && v == r.source + r.count * r.stride => r.count += 1,
            _ => found.push(StridedRun { first: first + i, step: 1, count: 1, source: v, stride: 0 }),
        }
    }
    found
}

/// Returns the part of a run that is within `places`.
fn within(r: StridedRun, places: &Range<usize>) -> Option<StridedRun> {
    let from = places.start.saturating_sub(r.first).div_ceil(r.step);
    let to = places.end.saturating_sub(r.first).div_ceil(r.step).min(r.count);
    (from < to).then(|| StridedRun {
        first: r.first + from * r.step,
        count: to - from,
        source: r.source + from * r.stride,
        ..r
    })
}

/// Contiguous channels that a segment provides for a block of the result.
struct BlockPart {
    /// First channel in the input.
    channel: usize,
    /// Number of channels, which are bytes.
    count: usize,
    /// First byte in the result's block.
    byte: usize,
}

/// Returns the parts of a block of the result that a segment provides.
fn block_parts(s: &Segment, out_block: usize, block: usize) -> Vec<BlockPart> {
    let from = s.c_to.max(out_block * block);
    let to = (s.c_to + s.c).min((out_block + 1) * block);
    let mut list = Vec::new();
    let mut at = from;
    while at < to {
        let channel = s.c_from + at - s.c_to;
        // Up to the end of the input's block.
        let count = (to - at).min(block - channel % block);
        list.push(BlockPart { channel, count, byte: at % block });
        at += count;
    }
    list
}

/// Returns the loads that assemble one tile of the result: some rows of a block of an image.
///
/// Each load comes with the index of its input. Its offset is relative to the input, its entry to the tile.
fn loads(
    config: &HwConfig,
    copy: &Copy,
    data: &[Activation],
    output: View,
    image: usize,
    out_block: usize,
    rows: &Range<usize>,
) -> Vec<(usize, Load)> {
    let block = config.block() as usize;
    let (batch, entry_bytes) = (config.batch, config.entry_bytes(Mem::Out) as usize);
    let mut list = Vec::new();
    for s in &copy.segments {
        let layout = &data[s.input];
        let parts = block_parts(s, out_block, block);
        let Places { first, sources } = &s.rows;
        if parts.is_empty() || *first >= rows.end || first + sources.len() <= rows.start {
            continue;
        }
        let row_runs: Vec<StridedRun> = runs(*first, sources).into_iter().filter_map(|r| within(r, rows)).collect();
        let column_runs = runs(s.columns.first, &s.columns.sources);
        for BlockPart { channel, count, byte } in parts {
            // Channels past the tensors' last can have any value, so they are copied with the last block.
            let last = channel + count == layout.c && s.c_to + s.c == output.c;
            let whole = byte == 0 && channel % block == 0 && (count == block || last);
            for (y, x) in row_runs.iter().flat_map(|y| column_runs.iter().map(move |x| (y, x))) {
                let at = ((y.first - rows.start) * output.w + x.first) * block + byte;
                let offset = layout.offset(image, channel, y.source, x.source) as u64;
                let load = Load { mem: Mem::Out, offset, entry: (at / entry_bytes) as u32, ..Load::default() };
                let (down, across) = (y.stride * layout.row_stride(), x.stride * block);
                let load = if whole && x.step == 1 && (x.stride == 1 || x.count == 1) {
                    let row = x.count * block;
                    let joined = x.count == output.w && y.step == 1;
                    let all = joined && y.stride == 1 && x.count == layout.w && row * y.count <= ROW_BYTES;
                    Load {
                        row_bytes: (if all { row * y.count } else { row }) as u32,
                        rows: if all { 1 } else { y.count as u32 },
                        row_stride: if all || y.count == 1 { 0 } else { down as u64 },
                        pack: batch > 1 || (!joined && y.count > 1),
                        pack_byte: (at % entry_bytes) as u32,
                        pack_row_stride: if y.count == 1 || all || (joined && batch == 1) {
                            0
                        } else {
                            (y.step * output.w * block) as u32
                        },
                        ..load
                    }
                } else {
                    Load {
                        row_bytes: (if whole { block } else { count }) as u32,
                        rows: x.count as u32,
                        planes: y.count as u32,
                        row_stride: if x.count == 1 { 0 } else { across as u64 },
                        plane_stride: if y.count == 1 { 0 } else { down as u64 },
                        pack: true,
                        pack_byte: (at % entry_bytes) as u32,
                        pack_row_stride: if x.count == 1 { 0 } else { (x.step * block) as u32 },
                        pack_plane_stride: if y.count == 1 { 0 } else { (y.step * output.w * block) as u32 },
                        ..load
                    }
                };
                list.push((s.input, load));
            }
        }
    }
    list
}

/// Returns the rows per tile: as many as possible.
///
/// # Errors
/// The reason why the configuration cannot do the copy.
pub fn rows(copy: &Copy, inputs: &[View], output: View, config: &HwConfig) -> Result<usize, String> {
    let most = most_rows(output, config)?;
    check(copy, inputs, output, most, config)?;
    Ok(most)
}

/// Returns the maximum number of rows per tile.
///
/// # Errors
/// A single row does not fit.
pub fn most_rows(output: View, config: &HwConfig) -> Result<usize, String> {
    let ratio = (config.block() / config.block_out) as usize;
    let room = config.entries(Mem::Out) as usize / 4;
    // With several batch rows, entries are filled with consecutive bytes, so that the store of a tile has one row.
    let row_bytes = output.w * config.block() as usize;
    let whole = if config.batch == 1 { ROWS } else { ROW_BYTES / row_bytes };
    let most = (room * config.batch as usize / (output.w * ratio)).min(ROWS).min(output.h).min(whole);
    if most == 0 || row_bytes > ROW_BYTES || output.w > ROWS {
        return Err(format!("a row of {} pixels does not fit a quarter of out ({} entries)", output.w, room * 4));
    }
    Ok(most)
}

/// Checks the loads of tiles of `rows` rows.
///
/// # Errors
/// The reason why the configuration cannot do them.
pub fn check(copy: &Copy, inputs: &[View], output: View, rows: usize, config: &HwConfig) -> Result<(), String> {
    let data: Vec<Activation> = inputs.iter().map(|v| v.layout(config)).collect();
    for (b, tile) in (0..output.c.div_ceil(config.block() as usize)).flat_map(|b| {
        let tiles = cut(output.h, rows);
        tiles.into_iter().map(move |t| (b, t))
    }) {
        for (_, load) in loads(config, copy, &data, output, 0, b, &tile) {
            if load.pack && !config.dma_pack {
                return Err(
                    "copying parts of rows or blocks needs dma_pack, which the configuration is built without".into()
                );
            }
            let strides = load.row_stride.max(load.plane_stride);
            if strides >= 1 << config.stride_bits || load.rows as usize > ROWS || load.planes as usize > ROWS {
                return Err("a part of it exceeds the fields of a load".into());
            }
            if !load.offset.is_multiple_of(config.dma_align.into()) {
                return Err(format!(
                    "the offset of a part is not a multiple of dma_align ({} bytes)",
                    config.dma_align
                ));
            }
        }
    }
    Ok(())
}

/// Emits a copy.
///
/// # Errors
/// The driver refuses an instruction.
pub fn emit(e: &mut Emit, layer: &Layer, copy: &Copy, rows: usize) -> Result<(), DriverError> {
    let places = layer.inputs.iter().map(|i| e.place(*i)).collect::<Result<Vec<DeviceTensor>, _>>()?;
    let data: Vec<Activation> = places.iter().map(|p| p.layout).collect();
    let (place, view) = (e.place(layer.output)?, layer.output.1);
    let pixel_bytes = e.config.block();
    for image in 0..view.n {
        for block in 0..place.layout.blocks() {
            for tile in cut(view.h, rows) {
                let bytes = (tile.len() * view.w) as u32 * pixel_bytes;
                let entry = e.out.take(bytes.div_ceil(e.config.entry_bytes(Mem::Out)));
                for (input, load) in loads(e.config, copy, &data, view, image, block, &tile) {
                    let from = &places[input];
                    let offset = from.offset + load.offset;
                    e.b.load(Load { base: from.region.0, offset, entry: entry + load.entry, ..load })?;
                }
                store_tile(e, place, view, image, &(block..block + 1), &tile, &(0..view.w), entry)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_say_the_map() {
        let maps: [&[usize]; 6] =
            [&[3, 4, 5, 6], &[0, 0, 1, 1, 2, 2], &[0, 2, 4], &[5], &[0, 0, 0, 1, 1, 2, 2, 2, 3], &[4, 3, 9, 1, 1]];
        for map in maps {
            let mut found = vec![usize::MAX; map.len()];
            for r in runs(7, map) {
                (0..r.count).for_each(|k| found[r.first - 7 + k * r.step] = r.source + k * r.stride);
                let inside = 8..7 + map.len();
                if let Some(w) = within(r, &inside) {
                    assert!(inside.contains(&w.first) && inside.contains(&(w.first + (w.count - 1) * w.step)));
                    assert_eq!(w.source, map[w.first - 7]);
                }
            }
            assert_eq!(found, map);
        }
        assert_eq!(runs(0, maps[1]).len(), 2);
    }
}
