//! Finds tiles for poolings.

use super::op::Pool;
use crate::codegen::accel::batch::{self, Fill};
use crate::codegen::accel::kept::OnChip;
use crate::codegen::accel::limits::{PAD_ENTRIES, PAD_ROWS, ROW_BYTES, ROWS, check_lanes, inp_room, loadable};
use crate::codegen::accel::padded_range::reach;
use crate::codegen::accel::parts::parts;
use crate::codegen::accel::view::View;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::PARAM_ROWS;

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

/// Returns the memory from which the vector unit reads a pooling's data.
pub fn source(config: &HwConfig) -> Mem {
    if config.vector_reaches_inp() { Mem::Inp } else { Mem::Out }
}

/// Returns the tiles of a pooling that fit, the cheapest first. There is at least one.
///
/// # Errors
/// The reason why no tile fits, with sizes.
pub fn tiles(
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
    let source = self::source(config);
    let kept = on_chip.input.is_some();
    let half = |mem: Mem| config.entries(mem) as usize / 2;
    let params = config.descriptor_entries() as usize + pool.distinct_counts(input, output).len().max(1);
    let mut found: Vec<(u64, PoolTile)> = Vec::new();
    // With one batch row, only rows are cut. Several batch rows need enough tiles to fill them, so columns are cut too.
    let widths = if batch == 1 { vec![output.w] } else { parts(output.w) };
    for (columns, rows) in widths.into_iter().flat_map(|c| parts(output.h).into_iter().map(move |r| (c, r))) {
        let rows_in = (rows - 1) * pool.strides[0] + reach(pool.kernel[0], pool.dilations[0]);
        let columns_in = (columns - 1) * pool.strides[1] + reach(pool.kernel[1], pool.dilations[1]);
        let fields = if by_pixel {
            columns_in * ratio <= ROWS && rows_in <= ROWS && columns * ratio <= ROWS && rows <= ROWS
        } else {
            let wide = if fill == Fill::Neighbors { batch } else { 1 } * config.block() as usize;
            let loaded = if kept { 0 } else { columns_in.min(input.w) };
            loaded.max(columns) * wide <= ROW_BYTES
        };
        let pads = if by_pixel { PAD_ROWS } else { PAD_ENTRIES } / ratio;
        let loads = kept
            || loadable(output.h, rows, |f, n| pool.rows(f, n, input), PAD_ROWS)
                && loadable(output.w, columns, |f, n| pool.columns(f, n, input), pads);
        if !fields || !loads {
            continue;
        }
        for blocks_in in parts(blocks) {
            let data = blocks_in * rows_in * columns_in * ratio;
            let out = blocks_in * rows * columns * ratio;
            let room = if source == Mem::Out { data + out } else { out };
            let entries = params.max(config.descriptor_entries() as usize + blocks_in * ratio);
            let only = blocks_in == blocks && rows == output.h && columns == output.w && output.n == 1;
            let free = if source == Mem::Inp { inp_room(on_chip, only, config) } else { half(source) };
            let fits = (kept || data <= free)
                && room <= half(Mem::Out)
                && out <= half(Mem::Acc)
                && PARAM_ROWS as usize * entries <= half(Mem::Param);
            let at_once = if by_pixel { batch } else { 1 };
            let tiles = (output.n * output.h.div_ceil(rows) * output.w.div_ceil(columns)).div_ceil(at_once);
            let tiles = (tiles * blocks.div_ceil(blocks_in)) as u64;
            // Each tile loads its halo rows again. A few large tiles have fewer halo rows; many small tiles overlap
            // better.
            let (loaded, ends) = if kept { (0, out) } else { (data as u64 * 2, data + out) };
            let cost = tiles * (loaded * at_once as u64 + 60) + 4 * (at_once * ends) as u64;
            if fits {
                found.push((cost, PoolTile { blocks: blocks_in, rows, columns }));
            }
        }
    }
    if found.is_empty() {
        return Err(format!(
            "a row of {}x{} windows over {} columns does not fit half of {} ({} entries), or its padding a load",
            pool.kernel[0],
            pool.kernel[1],
            input.w,
            source.name(),
            config.entries(source)
        ));
    }
    found.sort_by_key(|(cost, _)| *cost);
    Ok(found.into_iter().map(|(_, tile)| tile).collect())
}
