//! Finds tiles for poolings.

use super::divisors::Divisors;
use super::op::Pool;
use crate::codegen::accel::batch::{self, Fill};
use crate::codegen::accel::kept::OnChip;
use crate::codegen::accel::limits::{
    Limit, PAD_ENTRIES, PAD_ROWS, ROW_BYTES, ROWS, check_entries, check_lanes, inp_room, loadable,
};
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

/// A pooling with what all its tiles share.
struct Tiles<'a> {
    pool: &'a Pool,
    input: View,
    output: View,
    on_chip: &'a OnChip,
    config: &'a HwConfig,
    /// How batch rows are filled.
    fill: Fill,
    /// Blocks of channels.
    blocks: usize,
    /// Entries of param, apart from those of channels.
    params: usize,
    /// Whether outputs are divided by different numbers.
    divides: bool,
}

impl<'a> Tiles<'a> {
    fn new(pool: &'a Pool, views: [View; 2], on_chip: &'a OnChip, config: &'a HwConfig) -> Result<Tiles<'a>, String> {
        let (fill, [input, output]) = batch::fill(pool.is_pointwise(), views, config);
        if fill == Fill::Tiles && config.batch > 1 {
            check_lanes(config)?;
        }
        let blocks = input.layout(config).blocks();
        let divisors = pool.distinct_counts(input, output).len();
        let params = config.descriptor_entries() as usize + divisors.max(1);
        Ok(Tiles { pool, input, output, on_chip, config, fill, blocks, params, divides: divisors > 1 })
    }

    fn by_pixel(&self) -> bool {
        self.fill == Fill::Tiles && self.config.batch > 1
    }

    /// Entries of inp per pixel of a block.
    fn ratio(&self) -> usize {
        (self.config.block() / self.config.block_out) as usize
    }

    /// Rows and columns of data that a tile reads.
    fn read(&self, rows: usize, columns: usize) -> [usize; 2] {
        [self.pool.span(0, rows), self.pool.span(1, columns)]
    }

    /// Checks that loads and stores can move the pixels of such tiles.
    ///
    /// # Errors
    /// The limit that prevents it.
    fn check_moves(&self, rows: usize, columns: usize) -> Result<(), Limit> {
        let Tiles { pool, input, output, config, .. } = *self;
        let (ratio, by_pixel, kept) = (self.ratio(), self.by_pixel(), self.on_chip.input.is_some());
        let [rows_in, columns_in] = self.read(rows, columns);
        let fields = if by_pixel {
            columns_in * ratio <= ROWS && rows_in <= ROWS && columns * ratio <= ROWS && rows <= ROWS
        } else {
            let wide = if self.fill == Fill::Neighbors { config.batch as usize } else { 1 } * config.block() as usize;
            let loaded = if kept { 0 } else { columns_in.min(input.w) };
            loaded.max(columns) * wide <= ROW_BYTES
        };
        let pads = if by_pixel { PAD_ROWS } else { PAD_ENTRIES } / ratio;
        let loads = kept
            || loadable(output.h, rows, |f, n| pool.rows(f, n, input), PAD_ROWS)
                && loadable(output.w, columns, |f, n| pool.columns(f, n, input), pads);
        match (fields, loads) {
            (false, _) => Err(Limit::Fields),
            (true, false) => Err(Limit::Pads),
            (true, true) => Ok(()),
        }
    }

    /// Returns the cost of a tile whose pixels can be moved.
    ///
    /// # Errors
    /// The scratchpad that it does not fit.
    fn cost(&self, t: PoolTile) -> Result<u64, Limit> {
        let Tiles { output, on_chip, config, blocks, .. } = *self;
        let (ratio, source, kept) = (self.ratio(), source(config), on_chip.input.is_some());
        let half = |mem: Mem| config.entries(mem) as usize / 2;
        let [rows_in, columns_in] = self.read(t.rows, t.columns);
        let data = t.blocks * rows_in * columns_in * ratio;
        let out = t.blocks * t.rows * t.columns * ratio;
        // Batch rows with other divisors have results of their own.
        let results = if self.by_pixel() && self.divides {
            out * Divisors::of(self.pool, self.input, output).patterns([t.rows, t.columns]).count()
        } else {
            out
        };
        let room = if source == Mem::Out { data + results } else { results };
        let entries = self.params.max(config.descriptor_entries() as usize + t.blocks * ratio);
        let only = t.blocks == blocks && t.rows == output.h && t.columns == output.w && output.n == 1;
        let free = if source == Mem::Inp { inp_room(on_chip, only, config) } else { half(source) };
        check_entries([
            (source, if kept { 0 } else { data }, free),
            (Mem::Out, room, half(Mem::Out)),
            (Mem::Acc, out, half(Mem::Acc)),
            (Mem::Param, PARAM_ROWS as usize * entries, half(Mem::Param)),
        ])?;
        let at_once = if self.by_pixel() { config.batch as usize } else { 1 };
        let tiles = (output.n * output.h.div_ceil(t.rows) * output.w.div_ceil(t.columns)).div_ceil(at_once);
        let tiles = (tiles * blocks.div_ceil(t.blocks)) as u64;
        // Each tile loads its halo rows again. A few large tiles have fewer halo rows; many small tiles overlap
        // better.
        let (loaded, ends) = if kept { (0, out) } else { (data as u64 * 2, data + out) };
        Ok(tiles * (loaded * at_once as u64 + 60) + 4 * (at_once * ends) as u64)
    }
}

/// Returns a tile if it fits. `tile` gets the largest number of blocks, rows and columns.
///
/// # Errors
/// The reason why it does not fit, or the error of `tile`.
pub fn check(
    pool: &Pool,
    views: [View; 2],
    on_chip: &OnChip,
    tile: &dyn Fn([usize; 3]) -> Result<PoolTile, String>,
    config: &HwConfig,
) -> Result<PoolTile, String> {
    let all = Tiles::new(pool, views, on_chip, config)?;
    let tile = tile([all.blocks, all.output.h, all.output.w])?;
    let cost = all.check_moves(tile.rows, tile.columns).and_then(|()| all.cost(tile));
    cost.map(|_| tile).map_err(|limit| format!("the tile needs {limit}"))
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
    let all = Tiles::new(pool, [input, output], on_chip, config)?;
    let Tiles { input, output, .. } = all;
    let mut found: Vec<(u64, PoolTile)> = Vec::new();
    // With one batch row, only rows are cut. Several batch rows need enough tiles to fill them, so columns are cut too.
    let widths = if config.batch == 1 { vec![output.w] } else { parts(output.w) };
    let mut limit = Limit::Fields;
    for (columns, rows) in widths.into_iter().flat_map(|c| parts(output.h).into_iter().map(move |r| (c, r))) {
        let moves = all.check_moves(rows, columns);
        for tile in parts(all.blocks).into_iter().map(|blocks| PoolTile { blocks, rows, columns }) {
            match moves.and_then(|()| all.cost(tile)) {
                Ok(cost) => found.push((cost, tile)),
                // The last tile is the smallest, so its limit is the one to report.
                Err(reason) => limit = reason,
            }
        }
    }
    if found.is_empty() {
        let [rows, columns] = pool.kernel;
        let width = input.w;
        return Err(format!(
            "no tile fits for {rows}x{columns} windows over {width} columns: the smallest needs {limit}"
        ));
    }
    found.sort_by_key(|(cost, _)| *cost);
    Ok(found.into_iter().map(|(_, tile)| tile).collect())
}
