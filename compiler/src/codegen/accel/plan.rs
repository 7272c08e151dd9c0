//! Tiles that fit the scratchpads, chosen by estimated cycles.

use super::batch::{self, Fill};
use super::copy;
use super::depthwise::{self, DepthwiseTile};
use super::keep::OnChip;
use super::layer::{Kind, Layer, Phase, Pool, Span, reach};
use super::matmul::{self, MatMulTile};
use super::then::{self, Need};
use super::tiles::{ConvTile, Wanted, tiles};
use super::view::View;
use super::walk;
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
    /// Blocks of a load of a walk.
    Walk {
        /// Blocks.
        blocks: usize,
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

/// Plans a layer, or says why the accelerator cannot compute it. `search` asks for the tile of the fewest estimated cycles
/// instead of the first that fits.
///
/// # Errors
/// The reason, with sizes.
pub fn plan(layer: &Layer, config: &HwConfig, search: bool) -> Result<Plan, String> {
    let wanted = if search { Wanted::All } else { Wanted::First };
    let best = |tiles: Vec<ConvTile>| tiles.into_iter().reduce(|a, b| if b.cycles < a.cycles { b } else { a });
    check_strides(layer, config)?;
    match &layer.kind {
        Kind::Conv(conv) => {
            let need = then::need(layer, config)?;
            let views = [layer.inputs[0].1, layer.results()];
            let alone = layer.then.is_empty() && conv.slope.is_none();
            let shared = alone.then(|| depthwise::tiles(conv, views, layer.on_chip, 1, config));
            let shared = shared.and_then(|tiles| tiles.into_iter().next());
            let tile = tiles(conv, (false, need, wanted), views, config).map(best);
            match (shared, tile) {
                (Some(shared), Ok(Some(tile))) if tile.cycles <= shared.cycles => Ok(Plan::Conv(tile)),
                (Some(shared), _) => Ok(Plan::Depthwise(shared)),
                (None, tile) => tile?.map(Plan::Conv).ok_or_else(|| "it has no tiles".into()),
            }
        }
        Kind::Pool(pool) => {
            let found = pool_tiles(pool, layer.inputs[0].1, layer.output.1, &layer.on_chip, config)?;
            found.into_iter().next().map(Plan::Pool).ok_or_else(|| "it has no tiles".into())
        }
        Kind::MatMul(m) => matmul::tile(m, layer.inputs[0].1, layer.inputs[1].1, config).map(Plan::MatMul),
        Kind::Copy(copy) => {
            let inputs: Vec<View> = layer.inputs.iter().map(|(_, v)| *v).collect();
            copy::rows(copy, &inputs, layer.output.1, config).map(|rows| Plan::Copy { rows })
        }
        Kind::Walk(w) => walk::blocks(w, config).map(|blocks| Plan::Walk { blocks }),
        Kind::Transposed(t) => {
            let tile = |p: &Phase| {
                let found = tiles(&p.conv, (true, Need::default(), wanted), [layer.inputs[0].1, p.view], config);
                found.and_then(|tiles| best(tiles).ok_or_else(|| "it has no tiles".into()))
            };
            t.phases.iter().map(tile).collect::<Result<_, _>>().map(Plan::Transposed)
        }
        Kind::Lookup(_) => lookup_entries(config).map(|entries| Plan::Lookup { entries }),
        Kind::Pair(p) => pair_entries(p.op.operation(), config).map(|entries| Plan::Pair { entries }),
    }
}

/// Some plans of a layer that are worth being weighed exactly, at most `most`: those of the fewest estimated cycles, none of
/// them much like another, and the first that fits. Empty where a layer has one way alone.
pub fn plans(layer: &Layer, config: &HwConfig, most: usize) -> Vec<Plan> {
    if check_strides(layer, config).is_err() {
        return Vec::new();
    }
    match &layer.kind {
        Kind::Conv(conv) => {
            let Ok(need) = then::need(layer, config) else { return Vec::new() };
            let views = [layer.inputs[0].1, layer.results()];
            let products = tiles(conv, (false, need, Wanted::All), views, config).unwrap_or_default();
            let first = products.first().copied();
            let alone = layer.then.is_empty() && conv.slope.is_none();
            let shared = if alone { depthwise::tiles(conv, views, layer.on_chip, most, config) } else { Vec::new() };
            let shared = shared.into_iter().map(|t| (t.cycles, Plan::Depthwise(t)));
            let mut all: Vec<(u64, Plan)> =
                products.into_iter().map(|t| (t.cycles, Plan::Conv(t))).chain(shared).collect();
            all.sort_by_key(|(cycles, _)| *cycles);
            let found: Vec<Plan> = all.into_iter().map(|(_, plan)| plan).take(most.saturating_sub(1)).collect();
            let first = first.map(Plan::Conv).filter(|first| !found.contains(first));
            found.into_iter().chain(first).collect()
        }
        Kind::Pool(pool) => {
            let found = pool_tiles(pool, layer.inputs[0].1, layer.output.1, &layer.on_chip, config).unwrap_or_default();
            found.into_iter().take(most).map(Plan::Pool).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a load's fields hold the strides of all tensors.
fn check_strides(layer: &Layer, config: &HwConfig) -> Result<(), String> {
    for view in layer.inputs.iter().map(|(_, v)| *v).chain([layer.output.1]) {
        let stride = view.layout(config).block_stride().max(view.layout(config).row_stride());
        if stride as u64 >= 1 << config.stride_bits {
            return Err(format!("a stride of {stride} bytes passes the configuration's stride_bits"));
        }
    }
    Ok(())
}

/// Whether loads find the batch rows of entries that are tiles' pixels each.
pub(super) fn check_lanes(config: &HwConfig) -> Result<(), String> {
    let (lane, align) = (config.block_in.min(config.block_out), config.dma_align);
    if config.batch > 1 && lane < align {
        return Err(format!("batch rows of {lane} bytes are loaded apart, which dma_align of {align} does not allow"));
    }
    Ok(())
}

/// Distinct sizes of a dimension cut into equal parts, largest first.
pub(super) fn parts(size: usize) -> Vec<usize> {
    let mut found: Vec<usize> = (1..=size).map(|k| size.div_ceil(k)).collect();
    found.dedup();
    found
}

/// Whether every tile of a dimension can be loaded: with some data, and pads that fit their fields.
pub(super) fn loadable(out: usize, tile: usize, span: impl Fn(usize, usize) -> Span, most_pads: usize) -> bool {
    (0..out).step_by(tile).all(|first| {
        let s = span(first, tile.min(out - first));
        s.inside > 0 && s.inside <= ROWS && s.before.max(s.after) <= most_pads
    })
}

/// Entries of inp for the data of a tile; `only` says that there is one of its kind.
pub(super) fn room(on_chip: &OnChip, only: bool, config: &HwConfig) -> usize {
    match on_chip.room {
        None => config.entries(Mem::Inp) as usize / 2,
        Some((_, entries)) => entries as usize / if only { 1 } else { 2 },
    }
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

/// Tiles of a pooling, at least one; those of least cost first.
fn pool_tiles(
    pool: &Pool,
    input: View,
    output: View,
    on_chip: &OnChip,
    config: &HwConfig,
) -> Result<Vec<PoolTile>, String> {
    let batch = config.batch as usize;
    let (fill, [input, output]) = batch::fill(pool.is_pointwise(), [input, output], config);
    let by_pixel = fill == Fill::Tiles && batch > 1;
    if by_pixel {
        check_lanes(config)?;
    }
    let ratio = (config.block() / config.block_out) as usize;
    let blocks = input.layout(config).blocks();
    let source = pool_source(config);
    let kept = on_chip.input.is_some();
    let half = |mem: Mem| config.entries(mem) as usize / 2;
    let params = config.descriptor_entries() as usize + distinct_counts(pool, input, output).len().max(1);
    let mut found: Vec<(u64, PoolTile)> = Vec::new();
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
            || loadable(output.h, rows, |f, n| pool_rows(pool, f, n, input), PAD_ROWS)
                && loadable(output.w, columns, |f, n| pool_columns(pool, f, n, input), pads);
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
            if fits {
                found.push((cost, PoolTile { blocks: blocks_in, rows, columns }));
            }
        }
    }
    if found.is_empty() {
        return Err(format!(
            "a row of {} x {} windows over {} columns does not fit half of {} entries of {}, or its pads do not fit a load",
            pool.kernel[0],
            pool.kernel[1],
            input.w,
            config.entries(source),
            source.name()
        ));
    }
    found.sort_by_key(|(cost, _)| *cost);
    Ok(found.into_iter().map(|(_, tile)| tile).collect())
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
