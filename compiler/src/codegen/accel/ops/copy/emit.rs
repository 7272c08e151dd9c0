//! Copies: concatenation, slices, splits and nearest resizing, by loads and stores alone.
//!
//! A tile of the result, some rows of one block of channels, is put together in out by loads from wherever its parts lie, and
//! stored whole. Parts that are no whole rows of whole blocks are loaded packed, pixel by pixel.

use super::op::{Copy, Segment};
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

/// Places `first + k * step` that read `source + k * stride`, for k below `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    first: usize,
    step: usize,
    count: usize,
    source: usize,
    stride: usize,
}

/// Most interleaved runs that a map is taken apart into, as enlarging by that factor needs.
const MOST_PHASES: usize = 8;

/// A map of places in runs: interleaved where a few of them say it all, else one behind the other.
fn runs(first: usize, map: &[usize]) -> Vec<Run> {
    let run = |at: usize, step: usize| -> Option<Run> {
        let values: Vec<usize> = map[at..].iter().copied().step_by(step).collect();
        let stride = if values.len() > 1 { values[1].checked_sub(values[0])? } else { 0 };
        let affine = values.iter().enumerate().all(|(k, &v)| v == values[0] + k * stride);
        affine.then_some(Run { first: first + at, step, count: values.len(), source: values[0], stride })
    };
    for step in 1..=MOST_PHASES.min(map.len()) {
        if let Some(found) = (0..step).map(|at| run(at, step)).collect() {
            return found;
        }
    }
    let mut found: Vec<Run> = Vec::new();
    for (i, &v) in map.iter().enumerate() {
        match found.last_mut() {
            Some(r) if r.count == 1 && v >= r.source => (r.count, r.stride) = (2, v - r.source),
            Some(r) if r.count > 1 && v == r.source + r.count * r.stride => r.count += 1,
            _ => found.push(Run { first: first + i, step: 1, count: 1, source: v, stride: 0 }),
        }
    }
    found
}

/// A run without the part of it that lies outside of some places.
fn within(r: Run, places: &Range<usize>) -> Option<Run> {
    let from = places.start.saturating_sub(r.first).div_ceil(r.step);
    let to = places.end.saturating_sub(r.first).div_ceil(r.step).min(r.count);
    (from < to).then(|| Run {
        first: r.first + from * r.step,
        count: to - from,
        source: r.source + from * r.stride,
        ..r
    })
}

/// The bytes of a block that a segment gives: channel of its data, bytes, and byte in the result's block.
fn bytes(s: &Segment, out_block: usize, block: usize) -> Vec<(usize, usize, usize)> {
    let from = s.c_to.max(out_block * block);
    let to = (s.c_to + s.c).min((out_block + 1) * block);
    let mut list = Vec::new();
    let mut at = from;
    while at < to {
        let source = s.c_from + at - s.c_to;
        // Up to the end of the data's block.
        let count = (to - at).min(block - source % block);
        list.push((source, count, at % block));
        at += count;
    }
    list
}

/// The loads of one tile of the result into out from `entry` on: the number of the data, and the load from where they begin.
fn loads(
    config: &HwConfig,
    copy: &Copy,
    data: &[Activation],
    output: View,
    (image, out_block, rows): (usize, usize, &Range<usize>),
) -> Vec<(usize, Load)> {
    let block = config.block() as usize;
    let (batch, entry_bytes) = (config.batch, config.entry_bytes(Mem::Out) as usize);
    let mut list = Vec::new();
    for s in &copy.segments {
        let layout = &data[s.input];
        let parts = bytes(s, out_block, block);
        if parts.is_empty() || s.rows.0 >= rows.end || s.rows.0 + s.rows.1.len() <= rows.start {
            continue;
        }
        let row_runs: Vec<Run> = runs(s.rows.0, &s.rows.1).into_iter().filter_map(|r| within(r, rows)).collect();
        let column_runs = runs(s.columns.0, &s.columns.1);
        for (channel, count, byte) in parts {
            // Channels that the tensors do not have may be anything, so a block's last ones go along.
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

/// Rows of a tile.
///
/// # Errors
/// The reason, where the configuration cannot copy it.
pub fn rows(copy: &Copy, inputs: &[View], output: View, config: &HwConfig) -> Result<usize, String> {
    let ratio = (config.block() / config.block_out) as usize;
    let room = config.entries(Mem::Out) as usize / 4;
    // Entries of several rows are filled byte behind byte, so that a tile is one row for its store.
    let row_bytes = output.w * config.block() as usize;
    let whole = if config.batch == 1 { ROWS } else { ROW_BYTES / row_bytes };
    let most = (room * config.batch as usize / (output.w * ratio)).min(ROWS).min(output.h).min(whole);
    if most == 0 || row_bytes > ROW_BYTES || output.w > ROWS {
        return Err(format!("a row of {} pixels does not fit a quarter of out's {} entries", output.w, room * 4));
    }
    let data: Vec<Activation> = inputs.iter().map(|v| v.layout(config)).collect();
    for (b, tile) in (0..output.c.div_ceil(config.block() as usize)).flat_map(|b| {
        let tiles = cut(output.h, most);
        tiles.into_iter().map(move |t| (b, t))
    }) {
        for (_, load) in loads(config, copy, &data, output, (0, b, &tile)) {
            if load.pack && !config.dma_pack {
                return Err("parts of rows or blocks are copied by dma_pack, which the configuration lacks".into());
            }
            let strides = load.row_stride.max(load.plane_stride);
            if strides >= 1 << config.stride_bits || load.rows as usize > ROWS || load.planes as usize > ROWS {
                return Err("a part of it passes the fields of a load".into());
            }
            if !load.offset.is_multiple_of(config.dma_align.into()) {
                return Err(format!("a part of it lies at no multiple of dma_align, {} bytes", config.dma_align));
            }
        }
    }
    Ok(most)
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
                for (input, load) in loads(e.config, copy, &data, view, (image, block, &tile)) {
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
