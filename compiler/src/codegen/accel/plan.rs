//! Tiles that fit the scratchpads, chosen by estimated cycles.

use super::batch::{self, Fill};
use super::copy;
use super::depthwise::{self, DepthwiseTile};
use super::keep::OnChip;
use super::layer::{Conv, Kind, Layer, Phase, Pool, Span, reach};
use super::matmul::{self, MatMulTile};
use super::rest::{Rest, fits};
use super::then::{self, Need};
use super::view::View;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{self, PARAM_ROWS, VecOp};

/// How a layer is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// Tiles of a product.
    Conv(ConvTile),
    /// Steps of a depthwise product that the array and the vector unit share.
    Depthwise(DepthwiseTile),
    /// Tiles of a pooling.
    Pool(PoolTile),
    /// Tiles of a product of two activations.
    MatMul(MatMulTile),
    /// Rows of a tile of a copy.
    Copy {
        /// Rows.
        rows: usize,
    },
    /// Tiles of each phase of a transposed convolution.
    Transposed(Vec<ConvTile>),
    /// Pieces of a function of each byte.
    Lookup {
        /// Entries.
        entries: u32,
    },
    /// Pieces of an operator of two tensors.
    Pair {
        /// Entries.
        entries: u32,
    },
}

/// The tile of a product; channels are counted in blocks of the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvTile {
    /// Blocks of output channels.
    pub out_blocks: usize,
    /// Output rows.
    pub rows: usize,
    /// Output columns.
    pub columns: usize,
    /// Blocks of input channels that are summed before the next are loaded.
    pub in_blocks: usize,
    /// Whether all pixels are done before the next output channels.
    pub pixels_inside: bool,
    /// Estimated cycles.
    pub cycles: u64,
}

/// The tile of a pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolTile {
    /// Blocks of channels.
    pub blocks: usize,
    /// Output rows.
    pub rows: usize,
    /// Output columns.
    pub columns: usize,
}

/// Limits of a load's fields.
pub(super) const PAD_ROWS: usize = isa::MOST_PAD_ROWS as usize;
pub(super) const PAD_ENTRIES: usize = isa::MOST_PAD_ENTRIES as usize;
pub(super) const ROW_BYTES: usize = isa::MOST_ROW_BYTES as usize;
pub(super) const ROWS: usize = isa::MOST_ROWS as usize;
/// Rows between a load's walk and its writing side.
const ROWS_UNDER_WAY: u64 = 16;

/// Plans a layer, or says why the accelerator cannot compute it. `search` asks for the product's tile of the fewest estimated
/// cycles instead of the first that fits.
///
/// # Errors
/// The reason, with sizes.
pub fn plan(layer: &Layer, config: &HwConfig, search: bool) -> Result<Plan, String> {
    let largest = layer.inputs.iter().map(|(_, v)| *v).chain([layer.output.1]);
    for view in largest {
        let stride = view.layout(config).block_stride().max(view.layout(config).row_stride());
        if stride as u64 >= 1 << config.stride_bits {
            return Err(format!("a stride of {stride} bytes passes the configuration's stride_bits"));
        }
    }
    match &layer.kind {
        Kind::Conv(conv) => {
            let need = Need { on_chip: layer.on_chip, ..then::need(&layer.then, config)? };
            let views = [layer.inputs[0].1, layer.output.1];
            let alone = layer.then.is_empty() && conv.slope.is_none();
            let shared = alone.then(|| depthwise::tile(conv, views, layer.on_chip, config)).flatten();
            match (shared, conv_tile(conv, (false, need, search), views, config)) {
                (Some(shared), Ok(tile)) if tile.cycles <= shared.cycles => Ok(Plan::Conv(tile)),
                (Some(shared), _) => Ok(Plan::Depthwise(shared)),
                (None, tile) => tile.map(Plan::Conv),
            }
        }
        Kind::Pool(pool) => pool_tile(pool, layer.inputs[0].1, layer.output.1, &layer.on_chip, config).map(Plan::Pool),
        Kind::MatMul(m) => matmul::tile(m, layer.inputs[0].1, layer.inputs[1].1, config).map(Plan::MatMul),
        Kind::Copy(copy) => {
            let inputs: Vec<View> = layer.inputs.iter().map(|(_, v)| *v).collect();
            copy::rows(copy, &inputs, layer.output.1, config).map(|rows| Plan::Copy { rows })
        }
        Kind::Transposed(t) => {
            let tile =
                |p: &Phase| conv_tile(&p.conv, (true, Need::default(), search), [layer.inputs[0].1, p.view], config);
            t.phases.iter().map(tile).collect::<Result<_, _>>().map(Plan::Transposed)
        }
        Kind::Lookup(_) => lookup_entries(config).map(|entries| Plan::Lookup { entries }),
        Kind::Pair(p) => pair_entries(p.op.operation(), config).map(|entries| Plan::Pair { entries }),
    }
}

/// Distinct sizes of a dimension cut into equal parts, largest first.
pub(super) fn parts(size: usize) -> Vec<usize> {
    let mut found: Vec<usize> = (1..=size).map(|k| size.div_ceil(k)).collect();
    found.dedup();
    found
}

/// Whether every tile of a dimension can be loaded: with some data, and pads that fit their fields.
fn loadable(out: usize, tile: usize, span: impl Fn(usize, usize) -> Span, most_pads: usize, may_pad: bool) -> bool {
    (0..out).step_by(tile).all(|first| {
        let s = span(first, tile.min(out - first));
        let pads = s.before.max(s.after);
        s.inside > 0 && s.inside <= ROWS && pads <= if may_pad { most_pads } else { 0 }
    })
}

/// What a product needs in tiles of the array.
pub(super) struct Sizes {
    /// Entries of inp in a pixel of a block.
    pub in_ratio: usize,
    /// Entries of out in a pixel of a block.
    pub out_ratio: usize,
    /// Tiles over the input channels that an output tile needs.
    pub in_tiles: usize,
    /// Blocks of the input.
    pub in_blocks: usize,
    /// Blocks of the output.
    pub out_blocks: usize,
}

impl Sizes {
    pub fn new(conv: &Conv, input: View, output: View, config: &HwConfig) -> Sizes {
        let (block, block_in) = (config.block() as usize, config.block_in as usize);
        let (in_ratio, out_ratio) = (block / block_in, block / config.block_out as usize);
        let out_blocks = output.c.div_ceil(block);
        let all = input.c.div_ceil(block_in);
        let mut sizes = Sizes { in_ratio, out_ratio, in_tiles: all, in_blocks: input.c.div_ceil(block), out_blocks };
        if conv.groups > 1 {
            let tiles = output.c.div_ceil(config.block_out as usize);
            let widest = (0..tiles).map(|t| {
                let (first, last) = sizes.group_tiles(conv, t, config);
                last - first + 1
            });
            sizes.in_tiles = widest.max().unwrap_or(1);
        }
        sizes
    }

    /// First and last input tile that an output tile's channels need.
    fn group_tiles(&self, conv: &Conv, out_tile: usize, config: &HwConfig) -> (usize, usize) {
        let (bo, bi) = (config.block_out as usize, config.block_in as usize);
        let outputs = conv.finish.bias.len();
        let (per_group, depth) = ((outputs / conv.groups).max(1), conv.depth());
        let first = (out_tile * bo).min(outputs - 1) / per_group * depth;
        let last = (((out_tile + 1) * bo).min(outputs) - 1) / per_group * depth + depth - 1;
        (first / bi, last / bi)
    }

    /// The first input tile of an output tile's window of [`Sizes::in_tiles`].
    pub fn first_tile(&self, conv: &Conv, out_tile: usize, input: View, config: &HwConfig) -> usize {
        if conv.groups == 1 {
            return 0;
        }
        let tiles = conv.finish.bias.len().div_ceil(config.block_out as usize);
        let all = input.c.div_ceil(config.block_in as usize);
        self.group_tiles(conv, out_tile.min(tiles - 1), config).0.min(all - self.in_tiles)
    }

    /// First block, and number of blocks, of the input that some blocks of the output need.
    pub fn blocks_for(
        &self,
        conv: &Conv,
        blocks: std::ops::Range<usize>,
        input: View,
        config: &HwConfig,
    ) -> (usize, usize) {
        if conv.groups == 1 {
            return (0, self.in_blocks);
        }
        let tiles = blocks.start * self.out_ratio..blocks.end * self.out_ratio;
        let first = self.first_tile(conv, tiles.start, input, config) / self.in_ratio;
        let last = (self.first_tile(conv, tiles.end - 1, input, config) + self.in_tiles - 1) / self.in_ratio;
        (first, last - first + 1)
    }
}

/// The tile of a product; `apart` says that its results are stored apart from one another, `need` what operators on them
/// take, `search` asks for the fewest estimated cycles instead of the first that fits.
fn conv_tile(
    conv: &Conv,
    (apart, need, search): (bool, Need, bool),
    views: [View; 2],
    config: &HwConfig,
) -> Result<ConvTile, String> {
    fits(conv, config)?;
    let (fill, [input, output]) = batch::fill(!apart && conv.is_pointwise(), views, config);
    let sizes = Sizes::new(conv, input, output, config);
    let rest = Rest::new(conv, &sizes, input, config);
    let columns = parts(output.w);
    // Cutting columns shortens the rows of every transfer, so it is the last resort; but batch rows need tiles to carry.
    let first = match (fill, config.batch as usize) {
        (Fill::Tiles, 1) => 1,
        (Fill::Tiles, _) if output.h > 1 => columns.len().min(4),
        _ => columns.len(),
    };
    for chunk in [&columns[..first], &columns[first..]] {
        let mut best: Option<ConvTile> = None;
        for &columns in chunk {
            for rows in parts(output.h) {
                for out_blocks in parts(sizes.out_blocks) {
                    let in_parts = if conv.groups == 1 { parts(sizes.in_blocks) } else { vec![sizes.in_blocks] };
                    for in_blocks in in_parts {
                        let tile =
                            ConvTile { out_blocks, rows, columns, in_blocks, pixels_inside: true, cycles: u64::MAX };
                        for pixels_inside in [true, false] {
                            let tile = ConvTile { pixels_inside, ..tile };
                            let cycles = cost(conv, (&sizes, &rest, &need), ([input, output], fill), tile, config);
                            if let Some(cycles) = cycles
                                && best.is_none_or(|b| cycles < b.cycles)
                            {
                                best = Some(ConvTile { cycles, ..tile });
                            }
                            if let Some(tile) = best.filter(|_| !search) {
                                return Ok(tile);
                            }
                        }
                    }
                }
            }
        }
        if let Some(tile) = best {
            return Ok(tile);
        }
    }
    let taps = conv.kernel[0] * conv.kernel[1];
    Err(format!(
        "no tile of a {} x {} window over {} channels fits the scratchpads and the fields of a load: \
         one output pixel needs {taps} x {} weight tiles and as many input entries",
        conv.kernel[0], conv.kernel[1], input.c, sizes.in_tiles
    ))
}

/// Rows of input for outputs, with the stride between loaded rows: a window of one row skips what it does not read.
pub(super) fn row_span(conv: &Conv, first: usize, count: usize, input: View) -> (Span, usize) {
    let [stride, pad] = [conv.strides[0], conv.pads[0]];
    if skips_rows(conv) {
        return (Span { start: first * stride, inside: count, before: 0, after: 0 }, stride);
    }
    (Span::new(first, count, stride, pad, reach(conv.kernel[0], conv.dilations[0]), input.h), 1)
}

pub(super) fn skips_rows(conv: &Conv) -> bool {
    conv.kernel[0] == 1 && conv.strides[0] > 1 && conv.pads[0] == 0 && conv.pads[2] == 0
}

pub(super) fn column_span(conv: &Conv, first: usize, count: usize, input: View) -> Span {
    Span::new(first, count, conv.strides[1], conv.pads[1], reach(conv.kernel[1], conv.dilations[1]), input.w)
}

/// Estimated cycles of a product with this tile, or none where the tile does not fit.
fn cost(
    conv: &Conv,
    (sizes, rest, need): (&Sizes, &Rest, &Need),
    ([input, output], fill): ([View; 2], Fill),
    tile: ConvTile,
    config: &HwConfig,
) -> Option<u64> {
    let batch = config.batch as usize;
    // Tiles of several batch rows come and go pixel by pixel.
    let by_pixel = fill == Fill::Tiles && batch > 1;
    let taps = conv.kernel[0] * conv.kernel[1];
    let pixels = tile.rows * tile.columns;
    let grouped = conv.groups > 1;
    let in_blocks = if grouped {
        let starts = (0..sizes.out_blocks).step_by(tile.out_blocks);
        let needs =
            starts.map(|b| sizes.blocks_for(conv, b..(b + tile.out_blocks).min(sizes.out_blocks), input, config).1);
        needs.max()?
    } else {
        tile.in_blocks
    };
    let in_tiles = if grouped { sizes.in_tiles } else { (tile.in_blocks * sizes.in_ratio).min(sizes.in_tiles) };
    let rows_in = if skips_rows(conv) {
        tile.rows
    } else {
        (tile.rows - 1) * conv.strides[0] + reach(conv.kernel[0], conv.dilations[0])
    };
    let columns_in = (tile.columns - 1) * conv.strides[1] + reach(conv.kernel[1], conv.dilations[1]);
    let inp = in_blocks * rows_in * columns_in * sizes.in_ratio;
    let out = tile.out_blocks * sizes.out_ratio * pixels;
    let main = tile.out_blocks * sizes.out_ratio * in_tiles * taps;
    let further = most_rest(rest, sizes, tile, in_tiles);
    let wgt = main + further;
    let entries = if conv.slope.is_some() { 2 } else { 1 };
    let params = entries * tile.out_blocks * sizes.out_ratio + config.descriptor_entries() as usize + need.params;
    let half = |mem: Mem| config.entries(mem) as usize / 2;
    let whole_weights = main == sizes.out_blocks * sizes.out_ratio * sizes.in_tiles * taps;
    let acc_half = if config.banks(Mem::Acc) > 1 { half(Mem::Acc) } else { 2 * half(Mem::Acc) };
    let only = in_blocks == sizes.in_blocks && tile.rows == output.h && tile.columns == output.w && output.n == 1;
    let kept = need.on_chip.input.is_some();
    let fits = (kept || inp <= room(&need.on_chip, only, config))
        && out <= acc_half
        // Operands of operators on the results lie in the other half of out.
        && out <= half(Mem::Out) / if need.operands > 0 { 2 } else { 1 }
        && wgt <= if whole_weights { 2 * half(Mem::Wgt) } else { half(Mem::Wgt) }
        && PARAM_ROWS as usize * params <= half(Mem::Param)
        && in_tiles * taps <= config.gemm_uop_depth as usize
        && (tile.rows <= ROWS)
        && if kept {
            tile.columns * config.block() as usize <= ROW_BYTES
        } else if by_pixel {
            columns_in * sizes.in_ratio <= ROWS && rows_in <= ROWS && tile.columns * sizes.out_ratio <= ROWS
        } else if input.has_windows() {
            columns_in <= ROWS && rows_in <= ROWS && tile.columns * config.block() as usize <= ROW_BYTES
        } else {
            let wide = if fill == Fill::Neighbours { batch } else { 1 } * config.block() as usize;
            columns_in.min(input.w) * wide <= ROW_BYTES && tile.columns * wide <= ROW_BYTES
        };
    if !fits {
        return None;
    }
    let rows_ok = kept
        || skips_rows(conv)
        || loadable(output.h, tile.rows, |f, n| row_span(conv, f, n, input).0, PAD_ROWS, config.dma_pad);
    let most_pads = if by_pixel { PAD_ROWS } else { PAD_ENTRIES } / sizes.in_ratio;
    let columns_ok =
        kept || loadable(output.w, tile.columns, |f, n| column_span(conv, f, n, input), most_pads, config.dma_pad);
    if !rows_ok || !columns_ok {
        return None;
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
    // A row of one pixel waits for its turn among the few that are under way, or for the row before it.
    let pixels_of =
        |entries: usize, bytes: u32, wait: u64| (entries * batch) as u64 * (u64::from(bytes).div_ceil(bus) + wait);
    // Windows are rows of few bytes, of which memory answers as many at once as the load unit has under way.
    let window_beats = (u64::from(config.block()).min(input.c as u64) + bus - 1).div_ceil(bus);
    let window_wait = (u64::from(config.dram.latency) + 12).div_ceil(ROWS_UNDER_WAY).max(window_beats);
    let inp_load = if kept {
        0
    } else if by_pixel {
        pixels_of(inp, config.block_in, 2)
    } else if input.has_windows() {
        inp as u64 * window_wait
    } else {
        beats(inp, Mem::Inp) + (in_blocks * rows_in) as u64
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
    let requant = (out as u64) * u64::from(config.row_elements().div_ceil(config.requant_lanes));
    let results = if by_pixel { pixels_of(out, config.block_out, 3) } else { beats(out, Mem::Out) };
    let store = if need.on_chip.hides_output() { 0 } else { results };
    let stores = tiles * (store + results * need.operands as u64);
    let dma = if input.has_windows() {
        // Stores have the bus while windows are waited for.
        let loads = |cycles: u64| inp_loads * cycles + wgt_loads * wgt_load;
        loads(inp_load).max(loads(inp as u64 * window_beats) + stores)
    } else {
        inp_loads * inp_load + wgt_loads * wgt_load + stores
    };
    let all_rest = rest.count(0..sizes.out_blocks * sizes.out_ratio, &(0..sizes.in_tiles));
    let gemm = tiles * passes * ((main * pixels) as u64 + 12)
        + all_rest as u64 * pixel_tiles * pixels as u64
        + if all_rest > 0 { 20 * pixel_tiles * (sizes.out_blocks * sizes.out_ratio) as u64 } else { 0 };
    // A second requantization, and the choice between both results.
    let choice = (out as u64) * u64::from(config.row_elements().div_ceil(config.vector_lanes));
    let slope = if conv.slope.is_some() { requant + choice + 60 } else { 0 };
    let requant = requant + slope + out as u64 * need.entry_cycles + need.tile_cycles;
    let vector = tiles * (requant + 24);
    // The first tile's operands and the last tile's results are not hidden behind anything; each tile has instructions
    // to fetch and tokens to wait for.
    let beside = if need.on_chip.crowds(config) { dma + vector } else { dma.max(vector) };
    Some(gemm.max(beside) + inp_load + wgt_load + requant + store + 250 + 50 * tiles * passes)
}

/// Entries of inp for the data of a tile; `only` says that there is one of its kind.
fn room(on_chip: &OnChip, only: bool, config: &HwConfig) -> usize {
    match on_chip.room {
        None => config.entries(Mem::Inp) as usize / 2,
        Some((_, entries)) => entries as usize / if only { 1 } else { 2 },
    }
}

/// The most weight tiles beyond 8 bits that a tile of the product needs at once.
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

/// The memory in which vector finds a pooling's data.
pub(super) fn pool_source(config: &HwConfig) -> Mem {
    if config.vector_reaches_inp() { Mem::Inp } else { Mem::Out }
}

pub(super) fn pool_rows(pool: &Pool, first: usize, count: usize, input: View) -> Span {
    Span::new(first, count, pool.strides[0], pool.pads[0], reach(pool.kernel[0], pool.dilations[0]), input.h)
}

pub(super) fn pool_columns(pool: &Pool, first: usize, count: usize, input: View) -> Span {
    Span::new(first, count, pool.strides[1], pool.pads[1], reach(pool.kernel[1], pool.dilations[1]), input.w)
}

fn pool_tile(pool: &Pool, input: View, output: View, on_chip: &OnChip, config: &HwConfig) -> Result<PoolTile, String> {
    let batch = config.batch as usize;
    let (fill, [input, output]) = batch::fill(pool.is_pointwise(), [input, output], config);
    let by_pixel = fill == Fill::Tiles && batch > 1;
    let ratio = (config.block() / config.block_out) as usize;
    let blocks = input.layout(config).blocks();
    let source = pool_source(config);
    let kept = on_chip.input.is_some();
    let half = |mem: Mem| config.entries(mem) as usize / 2;
    let params = config.descriptor_entries() as usize + distinct_counts(pool, input, output).len().max(1);
    let mut best: Option<(u64, PoolTile)> = None;
    // One row a window is cut into rows alone; batch rows need tiles to carry.
    let widths = if batch == 1 { vec![output.w] } else { parts(output.w) };
    for (columns, rows) in widths.into_iter().flat_map(|c| parts(output.h).into_iter().map(move |r| (c, r))) {
        let rows_in = (rows - 1) * pool.strides[0] + reach(pool.kernel[0], pool.dilations[0]);
        let columns_in = (columns - 1) * pool.strides[1] + reach(pool.kernel[1], pool.dilations[1]);
        let fields = if by_pixel {
            columns_in * ratio <= ROWS && rows_in <= ROWS && columns * ratio <= ROWS && rows <= ROWS
        } else {
            let wide = if fill == Fill::Neighbours { batch } else { 1 } * config.block() as usize;
            let loaded = if kept { 0 } else { columns_in.min(input.w) };
            loaded.max(columns) * wide <= ROW_BYTES
        };
        let pads = if by_pixel { PAD_ROWS } else { PAD_ENTRIES } / ratio;
        let loads = kept
            || loadable(output.h, rows, |f, n| pool_rows(pool, f, n, input), PAD_ROWS, config.dma_pad)
                && loadable(output.w, columns, |f, n| pool_columns(pool, f, n, input), pads, config.dma_pad);
        if !fields || !loads {
            continue;
        }
        for blocks_in in parts(blocks) {
            let data = blocks_in * rows_in * columns_in * ratio;
            let out = blocks_in * rows * columns * ratio;
            let room = if source == Mem::Out { data + out } else { out };
            let entries = params.max(config.descriptor_entries() as usize + blocks_in * ratio);
            let only = blocks_in == blocks && rows == output.h && columns == output.w && output.n == 1;
            let free = if source == Mem::Inp { self::room(on_chip, only, config) } else { half(source) };
            let fits = (kept || data <= free)
                && room <= half(Mem::Out)
                && out <= half(Mem::Acc)
                && PARAM_ROWS as usize * entries <= half(Mem::Param);
            let at_once = if by_pixel { batch } else { 1 };
            let tiles = (output.n * output.h.div_ceil(rows) * output.w.div_ceil(columns)).div_ceil(at_once);
            let tiles = (tiles * blocks.div_ceil(blocks_in)) as u64;
            // Halo rows are loaded again with every tile; few, large tiles have few of them, many overlap better.
            let (loaded, ends) = if kept { (0, out) } else { (data as u64 * 2, data + out) };
            let cost = tiles * (loaded * at_once as u64 + 60) + 4 * (at_once * ends) as u64;
            if fits && best.is_none_or(|(c, _)| cost < c) {
                best = Some((cost, PoolTile { blocks: blocks_in, rows, columns }));
            }
        }
    }
    best.map(|(_, tile)| tile).ok_or_else(|| {
        format!(
            "a row of {} x {} windows over {} columns does not fit half of {} entries of {}, or its pads do not fit a load",
            pool.kernel[0], pool.kernel[1], input.w, config.entries(source), source.name()
        )
    })
}

/// The numbers of elements that a mean divides by, in ascending order.
pub(super) fn distinct_counts(pool: &Pool, input: View, output: View) -> Vec<usize> {
    let count_pads = match pool.finish {
        super::PoolFinish::Mean { count_pads, .. } => count_pads,
        super::PoolFinish::Count(_) => false,
        _ => return Vec::new(),
    };
    let [rows, columns] = counts(pool, input, output, count_pads);
    let mut all: Vec<usize> = rows.iter().flat_map(|r| columns.iter().map(move |c| r * c)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Taps inside the image for every output row and column, or the kernel's size everywhere.
pub(super) fn counts(pool: &Pool, input: View, output: View, count_pads: bool) -> [Vec<usize>; 2] {
    let along = |i: usize, out: usize, size: usize| -> Vec<usize> {
        let inside = |o: usize| {
            let place = |k: usize| (o * pool.strides[i] + k * pool.dilations[i]).checked_sub(pool.pads[i]);
            (0..pool.kernel[i]).filter(|&k| place(k).is_some_and(|p| p < size)).count()
        };
        (0..out).map(|o| if count_pads { pool.kernel[i] } else { inside(o) }).collect()
    };
    [along(0, output.h, input.h), along(1, output.w, input.w)]
}

/// Where the operands of an operator of two tensors lie: memories and first entries' banks.
pub(super) fn pair_operands(config: &HwConfig) -> Option<[(Mem, u32); 2]> {
    if config.vector_reaches_inp() && config.inp_banks > 1 {
        return Some([(Mem::Inp, 0), (Mem::Inp, 1)]);
    }
    if config.out_banks > 1 {
        return Some([(Mem::Out, 0), (Mem::Out, 1)]);
    }
    config.vector_reaches_inp().then_some([(Mem::Inp, 0), (Mem::Out, 0)])
}

fn lookup_entries(config: &HwConfig) -> Result<u32, String> {
    if 2 * config.table_entries() > config.param_depth {
        return Err(format!("its table does not fit half of {} entries of param", config.param_depth));
    }
    pair_entries(VecOp::Lut, config)
}

fn pair_entries(operation: VecOp, config: &HwConfig) -> Result<u32, String> {
    if !operation.is_built(config) {
        return Err(format!("the configuration is built without vector_{}", operation.name()));
    }
    let places =
        pair_operands(config).ok_or("both operands would read one bank: out_banks is 1 and inp out of reach")?;
    let bank = |mem: Mem| config.entries(mem) / config.banks(mem);
    let least = places.iter().map(|&(mem, _)| bank(mem)).min().unwrap_or(1);
    // Operands take halves of their banks in turn; where one lies in out, the result takes the other half's.
    let entries = if places.iter().any(|&(mem, _)| mem == Mem::Out) {
        (least / 4).min(bank(Mem::Out) / 4)
    } else {
        // Short pieces let the layers before and after work beside the operator.
        (least / 8).min(config.out_depth / 8)
    };
    Ok(entries.max(1))
}
