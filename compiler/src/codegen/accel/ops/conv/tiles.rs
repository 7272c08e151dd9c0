//! Tiles of products, with their estimated cycles.

use super::need::Need;
use super::op::Conv;
use super::rest::{Rest, fits};
use super::sizes::{Sizes, column_span, row_span, skips_rows};
use super::windows::Needed;
use crate::codegen::accel::batch::{self, Fill};
use crate::codegen::accel::dma::{self, load_row, store_row};
use crate::codegen::accel::limits::{
    Limit, PAD_ENTRIES, PAD_ROWS, ROW_BYTES, ROWS, check_entries, check_lanes, inp_room, loadable,
};
use crate::codegen::accel::parts::parts;
use crate::codegen::accel::view::View;
use crate::codegen::accel::work::{UnitWork, overhead};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::PARAM_ROWS;

/// The tile of a product; channels are counted in blocks of the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvTile {
    /// Blocks of output channels.
    pub out_blocks: usize,
    /// Output rows; those of the pooling if one is fused into the product.
    pub rows: usize,
    /// Output columns; those of the pooling if one is fused into the product.
    pub columns: usize,
    /// Blocks of input channels that are summed before the next ones are loaded.
    pub in_blocks: usize,
    /// Whether all pixels are computed before the next output channels.
    pub pixels_inside: bool,
    /// The memory of second operands of fused operators.
    pub operands: Mem,
    /// Estimated cycles.
    pub cycles: u64,
}

/// Which tiles of a product to return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The first tile that fits.
    First,
    /// Every tile that fits.
    All,
}

/// How much of inp and of wgt a tile uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    /// Half, so that the next tile is loaded at the same time.
    Half,
    /// All, if nothing smaller is possible.
    Whole,
}

/// Requirements for a search for tiles.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// Whether the results are stored one by one, like those of the phases of a transposed convolution.
    pub apart: bool,
    /// What the epilogue needs.
    pub need: Need<'a>,
    /// Cycles of loads per pixel of the input, if its pixels are not blocks of channels in device memory.
    pub pixel_load: Option<u64>,
    /// Which tiles to return.
    pub wanted: Wanted,
}

/// A product whose tiles are costed.
#[derive(Clone, Copy)]
struct Costed<'a> {
    conv: &'a Conv,
    sizes: &'a Sizes,
    /// Weights beyond 8 bits.
    rest: &'a Rest,
    /// What the epilogue needs.
    need: &'a Need<'a>,
    /// See [`Search`].
    pixel_load: Option<u64>,
    input: View,
    /// View of what is stored: the results of the product or of the pooling fused into it.
    output: View,
    /// How batch rows are filled.
    fill: Fill,
}

/// Returns the tile with the fewest estimated cycles among those that [`tiles`] finds.
///
/// # Errors
/// The same as [`tiles`].
pub fn best(conv: &Conv, search: Search, views: [View; 2], config: &HwConfig) -> Result<ConvTile, String> {
    let found = tiles(conv, search, views, config)?;
    found.into_iter().reduce(|a, b| if b.cycles < a.cycles { b } else { a }).ok_or_else(|| "it has no tiles".into())
}

/// The sizes of a product that all its tiles share.
pub struct TileSpace {
    pub sizes: Sizes,
    /// View of what is stored: the results of the product or of the pooling fused into it.
    pub output: View,
    input: View,
    rest: Rest,
    /// See [`Search`].
    pixel_load: Option<u64>,
    fill: Fill,
}

impl TileSpace {
    /// Reads a product.
    ///
    /// # Errors
    /// The reason why the configuration cannot compute it, whatever the tile.
    pub fn new(conv: &Conv, search: &Search, views: [View; 2], config: &HwConfig) -> Result<TileSpace, String> {
        let &Search { apart, need, pixel_load, .. } = search;
        fits(conv, config)?;
        let pointwise = !apart && need.pooling.is_none() && conv.is_pointwise();
        let (fill, [input, results]) = batch::fill(pointwise, views, config);
        let output = need.pooling.map_or(results, |pooling| pooling.results);
        let (tile_bytes, align) = (config.entry_bytes(Mem::Wgt), config.dma_align);
        if tile_bytes < align {
            return Err(format!("loads must address weight tiles of {tile_bytes} bytes, but dma_align is {align}"));
        }
        if fill == Fill::Tiles {
            check_lanes(config)?;
        }
        let sizes = Sizes::new(conv, input, output, config);
        let rest = Rest::new(conv, &sizes, input, config);
        Ok(TileSpace { sizes, output, input, rest, pixel_load, fill })
    }

    /// Whether a tile can sum some input channels before it loads the next ones.
    pub fn cuts_input(&self, conv: &Conv) -> bool {
        conv.groups == 1 && self.pixel_load.is_none()
    }

    fn costed<'a>(&'a self, conv: &'a Conv, need: &'a Need<'a>) -> Costed<'a> {
        let TileSpace { sizes, output, input, rest, pixel_load, fill } = self;
        Costed { conv, sizes, rest, need, pixel_load: *pixel_load, input: *input, output: *output, fill: *fill }
    }

    /// Returns a tile with its estimated cycles. It may use all of inp and wgt, so that loads wait for the tile before.
    ///
    /// # Errors
    /// The limit that the tile exceeds.
    pub fn tile(&self, conv: &Conv, need: &Need, tile: ConvTile, config: &HwConfig) -> Result<ConvTile, String> {
        let costed = self.costed(conv, need);
        let cycles = cost(costed, Share::Half, tile, config).or_else(|_| cost(costed, Share::Whole, tile, config));
        cycles.map(|cycles| ConvTile { cycles, ..tile }).map_err(|limit| format!("the tile needs {limit}"))
    }
}

/// Returns tiles of a product with their estimated cycles, at least one.
///
/// # Errors
/// The reason why no tile fits.
pub fn tiles(conv: &Conv, search: Search, views: [View; 2], config: &HwConfig) -> Result<Vec<ConvTile>, String> {
    let Search { need, wanted, .. } = search;
    let space = TileSpace::new(conv, &search, views, config)?;
    let costed = space.costed(conv, &need);
    let Costed { sizes, input, output, fill, .. } = costed;
    let columns = parts(output.w);
    // Cutting columns shortens the rows of every transfer, so it is the last resort. But several tiles are needed to
    // fill batch rows.
    let first = match (fill, config.batch as usize) {
        (Fill::Tiles, 1) => 1,
        (Fill::Tiles, _) if output.h > 1 => columns.len().min(4),
        _ => columns.len(),
    };
    let in_parts = if space.cuts_input(conv) { parts(sizes.in_blocks) } else { vec![sizes.in_blocks] };
    let mut limit = None;
    let chunks = [(0..first, Share::Half), (first..columns.len(), Share::Half), (0..columns.len(), Share::Whole)];
    for (chunk, share) in chunks {
        let chunk = &columns[chunk];
        let pixels = chunk.iter().flat_map(|&columns| parts(output.h).into_iter().map(move |rows| (columns, rows)));
        let channels = |tile: ConvTile| {
            let out = parts(sizes.out_blocks).into_iter();
            let in_parts = &in_parts;
            out.flat_map(move |out_blocks| {
                in_parts.iter().map(move |&in_blocks| ConvTile { out_blocks, in_blocks, ..tile })
            })
        };
        let any = ConvTile {
            out_blocks: 0,
            rows: 0,
            columns: 0,
            in_blocks: 0,
            pixels_inside: true,
            operands: Mem::Out,
            cycles: 0,
        };
        let fitting = pixels
            .flat_map(|(columns, rows)| channels(ConvTile { columns, rows, ..any }))
            .flat_map(|tile| [true, false].map(|pixels_inside| ConvTile { pixels_inside, ..tile }))
            .flat_map(|tile| need.operand_memories.iter().map(move |&operands| ConvTile { operands, ..tile }))
            .filter_map(|tile| {
                match cost(costed, share, tile, config) {
                    Ok(cycles) => Some(ConvTile { cycles, ..tile }),
                    // The last tile is the smallest, so its limit is the one to report.
                    Err(reason) => {
                        limit = Some(reason);
                        None
                    }
                }
            });
        let found: Vec<ConvTile> = match wanted {
            Wanted::First => fitting.take(1).collect(),
            Wanted::All => fitting.collect(),
        };
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let [rows, columns] = conv.kernel;
    let least = limit.map_or_else(String::new, |limit| format!(": the smallest needs {limit}"));
    Err(format!("no tile fits for a {rows}x{columns} kernel over {} channels{least}", input.c))
}

/// Returns the estimated cycles of a product with this tile, or the limit that the tile exceeds.
fn cost(costed: Costed, share: Share, tile: ConvTile, config: &HwConfig) -> Result<u64, Limit> {
    let Costed { conv, sizes, rest, need, pixel_load, input, output, fill } = costed;
    let batch = config.batch as usize;
    // If batch rows hold different tiles, these are loaded and stored pixel by pixel.
    let by_pixel = fill == Fill::Tiles && batch > 1;
    let taps = conv.kernel[0] * conv.kernel[1];
    let pooling = need.pooling.map(|windows| (windows, windows.needed([tile.rows, tile.columns], config)));
    let pooling = match pooling {
        Some((windows, needed)) => Some((windows, needed.ok_or(Limit::Pads)?)),
        None => None,
    };
    // `rows` x `columns` results of the product are computed; `tile.rows` x `tile.columns` results are stored.
    let [rows, columns] = pooling.map_or([tile.rows, tile.columns], |(_, needed)| needed.pixels);
    let pixels = rows * columns;
    let channels = tile.out_blocks * sizes.out_ratio;
    let stored = channels * tile.rows * tile.columns;
    let grouped = conv.groups > 1;
    let in_blocks = if grouped {
        let starts = (0..sizes.out_blocks).step_by(tile.out_blocks);
        let needs =
            starts.map(|b| sizes.blocks_for(conv, b..(b + tile.out_blocks).min(sizes.out_blocks), input, config).1);
        needs.max().unwrap_or(sizes.in_blocks)
    } else {
        tile.in_blocks
    };
    let in_tiles = if grouped { sizes.in_tiles } else { (tile.in_blocks * sizes.in_ratio).min(sizes.in_tiles) };
    let rows_in = if skips_rows(conv) { rows } else { conv.span(0, rows) };
    let columns_in = conv.span(1, columns);
    let inp = in_blocks * rows_in * columns_in * sizes.in_ratio;
    let out = channels * pixels;
    let main = channels * in_tiles * taps;
    let further = most_rest(rest, sizes, tile, in_tiles);
    let wgt = main + further;
    let entries = if conv.slope.is_some() { 2 } else { 1 };
    let further = pooling.map_or(0, |(windows, needed)| windows.params(channels, needed.pads, config));
    let params = entries * channels + config.descriptor_entries() as usize + need.params + further;
    let half = |mem: Mem| config.entries(mem) as usize / 2;
    let whole_weights = main == sizes.out_blocks * sizes.out_ratio * sizes.in_tiles * taps;
    let acc_half = if config.banks(Mem::Acc) > 1 { half(Mem::Acc) } else { 2 * half(Mem::Acc) };
    let only = in_blocks == sizes.in_blocks && tile.rows == output.h && tile.columns == output.w && output.n == 1;
    let kept = need.on_chip.input.is_some();
    let inp_room = match share {
        Share::Whole if need.on_chip.room.is_none() => 2 * half(Mem::Inp),
        _ => inp_room(&need.on_chip, only, config),
    };
    let wgt_room = if whole_weights || share == Share::Whole { 2 * half(Mem::Wgt) } else { half(Mem::Wgt) };
    // A fused pooling reads its data, padding included, in one half of out and writes its results to the other half.
    // Padding around the results of a second requantization is written to entries of their own.
    let apart = |n: &Needed| if n.pads && conv.slope.is_some() { out } else { 0 };
    let padded = pooling.as_ref().map_or(0, |(_, n)| channels * n.padded[0] * n.padded[1] + apart(n));
    // Operands of fused operators have the other half of their memory.
    let share = |mem: Mem| if need.operands > 0 && tile.operands == mem { 2 } else { 1 };
    check_entries([
        (Mem::Inp, if kept { 0 } else { inp }, inp_room / share(Mem::Inp)),
        (Mem::Acc, out.max(stored), acc_half),
        (Mem::Out, out, half(Mem::Out) / share(Mem::Out)),
        (tile.operands, if need.operands > 0 { out } else { 0 }, half(tile.operands) / 2),
        (Mem::Out, stored.max(padded), half(Mem::Out)),
        (Mem::Wgt, wgt, wgt_room),
        (Mem::Param, PARAM_ROWS as usize * params, half(Mem::Param)),
        (Mem::GemmUop, in_tiles * taps, config.gemm_uop_depth as usize),
    ])?;
    let fields = rows.max(tile.rows) <= ROWS
        && if kept {
            tile.columns * config.block() as usize <= ROW_BYTES
        } else if by_pixel {
            columns_in * sizes.in_ratio <= ROWS && rows_in <= ROWS && tile.columns * sizes.out_ratio <= ROWS
        } else if input.has_windows() {
            columns_in <= ROWS && rows_in <= ROWS && tile.columns * config.block() as usize <= ROW_BYTES
        } else {
            let wide = if fill == Fill::Neighbors { batch } else { 1 } * config.block() as usize;
            columns_in.min(input.w) * wide <= ROW_BYTES && tile.columns * wide <= ROW_BYTES
        };
    if !fields {
        return Err(Limit::Fields);
    }
    let row_spans = |first: usize, count: usize| {
        let read = pooling.map(|(windows, _)| windows.rows(first, count));
        let (first, count) = read.map_or((first, count), |s| (s.start, s.inside));
        row_span(conv, first, count, input).0
    };
    let column_spans = |first: usize, count: usize| {
        let read = pooling.map(|(windows, _)| windows.columns(first, count));
        let (first, count) = read.map_or((first, count), |s| (s.start, s.inside));
        column_span(conv, first, count, input)
    };
    let rows_ok = kept || skips_rows(conv) || loadable(output.h, tile.rows, row_spans, PAD_ROWS);
    let most_pads = if by_pixel { PAD_ROWS } else { PAD_ENTRIES } / sizes.in_ratio;
    let columns_ok = kept || loadable(output.w, tile.columns, column_spans, most_pads);
    if !rows_ok || !columns_ok {
        return Err(Limit::Pads);
    }
    let tiles = output.n * output.h.div_ceil(tile.rows) * output.w.div_ceil(tile.columns);
    let [pixel_tiles, out_tiles, passes] = [
        if by_pixel { tiles.div_ceil(batch) } else { tiles },
        sizes.out_blocks.div_ceil(tile.out_blocks),
        if grouped { 1 } else { sizes.in_blocks.div_ceil(tile.in_blocks) },
    ]
    .map(|n| n as u64);
    let bus = u64::from(config.bus_bytes());
    let beats = |entries: usize, mem: Mem| {
        let chunk = u64::from(config.chunk_bytes(mem));
        (entries as u64 * u64::from(config.entry_bytes(mem))).div_ceil(chunk.min(bus))
    };
    let load_pixel = load_row(config.block_in.into(), 0, Mem::Inp, config);
    let store_pixel = store_row(config.block_out.into(), 0, Mem::Out, config);
    // Windows are loaded as short rows that begin anywhere in a beat.
    let window_bytes = u64::from(config.block()).min(input.c as u64);
    let window = load_row(window_bytes, bus - 1, Mem::Inp, config);
    let window_beats = dma::beats(window_bytes, bus - 1, config);
    let inp_load = if kept {
        0
    } else if by_pixel {
        (inp * batch) as u64 * load_pixel
    } else if let Some(cycles) = pixel_load {
        pixels as u64 * cycles
    } else if input.has_windows() {
        inp as u64 * window
    } else {
        beats(inp, Mem::Inp)
    };
    let wgt_load = beats(wgt, Mem::Wgt);
    let one_inp = passes * pixel_tiles == 1;
    let one_wgt = passes * out_tiles == 1;
    let (inp_loads, wgt_loads) = if tile.pixels_inside {
        let inp = if one_inp || grouped { passes * pixel_tiles } else { passes * pixel_tiles * out_tiles };
        (inp, if passes == 1 { out_tiles } else { passes * pixel_tiles * out_tiles })
    } else {
        let inp = if passes == 1 && !grouped { pixel_tiles } else { passes * pixel_tiles * out_tiles };
        (inp, if one_wgt { 1 } else { passes * pixel_tiles * out_tiles })
    };
    let tiles = pixel_tiles * out_tiles;
    let requant = (out as u64) * u64::from(config.deep_row_cycles(1));
    let results = if by_pixel { (stored * batch) as u64 * store_pixel } else { beats(stored, Mem::Out) };
    let store = if need.on_chip.hides_output() { 0 } else { results };
    let all_rest = rest.count(0..sizes.out_blocks * sizes.out_ratio, &(0..sizes.in_tiles));
    let gemm = tiles * passes * ((main * pixels) as u64 + overhead::GEMM_PASS)
        + all_rest as u64 * pixel_tiles * pixels as u64
        + if all_rest > 0 {
            overhead::GEMM_REST * pixel_tiles * (sizes.out_blocks * sizes.out_ratio) as u64
        } else {
            0
        };
    // A second requantization, and the maximum or minimum of both results.
    let choice = (out as u64) * u64::from(config.row_elements().div_ceil(config.vector_lanes));
    let slope = if conv.slope.is_some() { requant + choice + overhead::SLOPE } else { 0 };
    let windows =
        pooling.map_or(0, |(windows, _)| stored as u64 * windows.pool.entry_cycles(config) + overhead::FUSED_POOLING);
    let requant = requant + slope + windows + out as u64 * need.entry_cycles + need.tile_cycles;
    // A tile loads the parameters of its output channels, unless those of all channels fit in param.
    let all_params = entries * sizes.out_blocks * sizes.out_ratio + config.descriptor_entries() as usize;
    let param_loads = match 2 * PARAM_ROWS as usize * all_params <= config.entries(Mem::Param) as usize {
        true => 0,
        false if tile.pixels_inside => out_tiles - 1,
        false => tiles - 1,
    };
    let params = beats(PARAM_ROWS as usize * params, Mem::Param);
    let window_beats = inp_loads * inp as u64 * window_beats;
    // If loads cannot pad, each row with padding to its left or right is one load and its padding another.
    let apart = !config.dma_pad && !by_pixel && conv.pads[1] + conv.pads[3] > 0;
    let data_loads = inp_loads * if apart { (2 * in_blocks * rows_in) as u64 } else { 1 };
    // With operands in out, both banks are read, so stores and the vector unit wait for each other.
    let waiting = if need.operand_memories.len() > 1 && tile.operands == Mem::Out { store } else { 0 };
    let work = UnitWork {
        tiles: tiles * passes,
        insns: data_loads + wgt_loads + param_loads + tiles * (2 + passes + need.operands as u64),
        load: inp_loads * inp_load
            + wgt_loads * wgt_load
            + params * (1 + param_loads)
            + tiles * results * need.operands as u64,
        first: inp_load + wgt_load + params,
        gemm,
        vector: tiles * (requant + overhead::VECTOR_TILE + waiting),
        store: tiles * store,
        // Stores can use the bus while loads wait for windows.
        idle: if input.has_windows() { (inp_loads * inp_load).saturating_sub(window_beats) } else { 0 },
        crowded: need.on_chip.crowds(config),
    };
    Ok(work.cycles(config))
}

/// Returns the maximum number of additional weight tiles (beyond 8 bits) that a tile of the product needs at once.
fn most_rest(rest: &Rest, sizes: &Sizes, tile: ConvTile, in_tiles: usize) -> usize {
    if rest.bytes.is_empty() {
        return 0;
    }
    let all = sizes.out_blocks * sizes.out_ratio;
    let step = tile.out_blocks * sizes.out_ratio;
    let outs = (0..all).step_by(step).map(|t| t..(t + step).min(all));
    let ins: Vec<_> =
        (0..sizes.in_tiles).step_by(in_tiles.max(1)).map(|i| i..(i + in_tiles).min(sizes.in_tiles)).collect();
    outs.flat_map(|o| ins.iter().map(move |i| rest.count(o.clone(), i))).max().unwrap_or(0)
}
