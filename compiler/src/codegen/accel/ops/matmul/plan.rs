//! Tiles of products of two activations.

use super::op::MatMul;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::limits::{Limit, ROW_BYTES, ROWS, check_entries};
use crate::codegen::accel::space::{Decisions, Knob, Space};
use crate::codegen::accel::work::{UnitWork, beats, overhead, simple_row};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{PARAM_ROWS, VecOp};

/// The tile of a product of two activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatMulTile {
    /// Entries for rows of the first operand. Each holds as many rows as there are batch rows.
    pub rows: usize,
    /// Blocks of columns of the second operand.
    pub blocks: usize,
    /// Whether all rows of a matrix stay in inp while its columns change.
    pub keeps_rows: bool,
    /// How the products of zero points come to the sums.
    pub zero_points: ZeroPoints,
}

/// How the products of zero points with the other operand come to the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZeroPoints {
    /// The vector unit subtracts them: they are the same for all rows, or for all columns.
    Subtracted,
    /// The array adds them to each sum, as further products.
    Added,
}

/// The sizes of a product, in the units of its tiles.
pub struct MatMulSizes {
    /// Matrices of the first operand, and of the second: as many or one.
    pub matrices: [usize; 2],
    /// Rows of the first operand.
    pub rows: usize,
    /// Entries for the rows.
    pub row_entries: usize,
    /// Columns of the second operand.
    pub columns: usize,
    /// Blocks of columns.
    pub column_blocks: usize,
    /// Weight tiles of a block of columns.
    pub ratio: usize,
    /// Channels of the depth, and their blocks.
    pub channels: usize,
    pub depth: usize,
}

impl MatMulSizes {
    pub fn new(layer: &Layer, config: &HwConfig) -> MatMulSizes {
        let (a, b) = (layer.inputs[0].1, layer.inputs[1].1);
        let block = config.block() as usize;
        MatMulSizes {
            matrices: [a.n, b.n],
            rows: a.w,
            row_entries: a.w.div_ceil(config.batch as usize),
            columns: b.w,
            column_blocks: b.w.div_ceil(block),
            ratio: block / config.block_out as usize,
            channels: a.c,
            depth: a.c.div_ceil(block),
        }
    }
}

impl MatMul {
    /// Whether the sums of the columns, and of the rows, are needed for zero points.
    pub fn sums(&self, config: &HwConfig) -> [bool; 2] {
        [self.a_zero_point != 0, self.b_zero_point != 0 && !config.wgt_zp]
    }
}

/// Checks that tiles can compute a product.
///
/// # Errors
/// The reason why none can.
fn check(m: &MatMul, layer: &Layer, config: &HwConfig) -> Result<(), String> {
    let (block, block_in) = (config.block() as usize, config.block_in as usize);
    if block_in != block {
        return Err(format!(
            "its second operand would need tiles of {block_in} channels from blocks of {block}; for products of two \
             activations, block_in must be at least block_out and dma_align"
        ));
    }
    let depth = layer.input_view().c;
    if m.on_device && !depth.is_multiple_of(block) {
        return Err(format!(
            "its depth of {depth} is not a multiple of a block's {block} channels, and the other channels are undefined \
             on the device"
        ));
    }
    Ok(())
}

/// Returns the tiles that fit, those with the fewest estimated cycles first.
///
/// # Errors
/// The reason why no tile fits.
pub fn tiles(m: &MatMul, layer: &Layer, config: &HwConfig) -> Result<Vec<MatMulTile>, String> {
    check(m, layer, config)?;
    let depth = layer.input_view().c;
    let s = MatMulSizes::new(layer, config);
    let parts = |all: usize| {
        let mut sizes: Vec<usize> = (1..=all.min(16)).map(|n| all.div_ceil(n)).collect();
        sizes.extend([8, 4, 2, 1].into_iter().filter(|n| *n < all));
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    };
    let (mut found, mut limit) = (Vec::new(), None);
    let (all_blocks, all_rows) = (parts(s.column_blocks), parts(s.row_entries));
    for &blocks in &all_blocks {
        for &rows in &all_rows {
            for keeps_rows in [true, false] {
                for zero_points in [ZeroPoints::Subtracted, ZeroPoints::Added] {
                    let tile = MatMulTile { rows, blocks, keeps_rows, zero_points };
                    if is_useless(m, &tile, &s, config) {
                        continue;
                    }
                    match check_tile(m, &tile, &s, config) {
                        Ok(()) => found.push(tile),
                        // Of the tiles with the fewest blocks and rows, the last one needs the least.
                        Err(reason) if [blocks, rows] == [all_blocks[0], all_rows[0]] => limit = Some(reason),
                        Err(_) => {}
                    }
                }
            }
        }
    }
    if let (true, Some(limit)) = (found.is_empty(), limit) {
        return Err(format!("no tile fits for products of {depth} channels: the smallest needs {limit}"));
    }
    found.sort_by_cached_key(|tile| cycles(m, tile, layer, config));
    Ok(found)
}

/// Whether another tile gives the same program.
fn is_useless(m: &MatMul, t: &MatMulTile, s: &MatMulSizes, config: &HwConfig) -> bool {
    t.keeps_rows && t.blocks == s.column_blocks || t.zero_points == ZeroPoints::Added && m.sums(config) == [false; 2]
}

/// Words for `MatMulTile::keeps_rows`.
const ROWS_STAY: [&str; 2] = ["reloaded", "kept"];

/// Words for [`ZeroPoints`].
const ZERO_POINTS: [&str; 2] = ["subtracted", "added"];

/// Returns the decisions of a product's tiles with their possible values.
pub fn space(layer: &Layer, config: &HwConfig) -> Space {
    let s = MatMulSizes::new(layer, config);
    Space::of(vec![
        Knob::size("rows", s.row_entries),
        Knob::size("blocks", s.column_blocks),
        Knob::words("data", &ROWS_STAY),
        Knob::words("zero_points", &ZERO_POINTS),
    ])
}

/// Returns the decisions of a tile.
pub fn decisions(t: &MatMulTile) -> Decisions {
    Decisions::new([
        ("rows", t.rows.into()),
        ("blocks", t.blocks.into()),
        ("data", ROWS_STAY[usize::from(t.keeps_rows)].into()),
        ("zero_points", ZERO_POINTS[usize::from(t.zero_points == ZeroPoints::Added)].into()),
    ])
}

/// Returns the tile of some decisions.
///
/// # Errors
/// The reason why it does not fit, or which decision is missing or wrong.
pub fn tile_of(m: &MatMul, decisions: &Decisions, layer: &Layer, config: &HwConfig) -> Result<MatMulTile, String> {
    check(m, layer, config)?;
    let s = MatMulSizes::new(layer, config);
    let tile = MatMulTile {
        rows: decisions.size("rows", s.row_entries)?,
        blocks: decisions.size("blocks", s.column_blocks)?,
        keeps_rows: decisions.word("data", &ROWS_STAY)? == 1,
        zero_points: match decisions.word("zero_points", &ZERO_POINTS)? {
            0 => ZeroPoints::Subtracted,
            _ => ZeroPoints::Added,
        },
    };
    if is_useless(m, &tile, &s, config) {
        return Err(
            "there is nothing to keep or to add; other words for data or zero_points give the same program".into()
        );
    }
    check_tile(m, &tile, &s, config).map_err(|limit| format!("two tiles need {limit}"))?;
    Ok(tile)
}

/// Checks that the buffers of two tiles fit, so that one is loaded or stored while the other is computed.
///
/// # Errors
/// The limit that they exceed.
fn check_tile(m: &MatMul, t: &MatMulTile, s: &MatMulSizes, config: &HwConfig) -> Result<(), Limit> {
    let entries = |mem: Mem| config.entries(mem) as usize;
    let (tiles, [columns, rows]) = (t.blocks * s.ratio, m.sums(config));
    let results = tiles * t.rows;
    let subtracts = t.zero_points == ZeroPoints::Subtracted && (columns || rows);
    let row_entries = if t.keeps_rows { s.row_entries } else { t.rows };
    let bank = entries(Mem::Acc) / config.acc_banks as usize;
    let sums = [columns.then_some(tiles), rows.then_some(t.rows)].into_iter().flatten();
    // Operands of one instruction are in different banks.
    let in_banks = || {
        let own: usize = sums.map(|n| (2 * n).div_ceil(bank)).sum();
        (2 * results).div_ceil(bank) + own <= config.acc_banks as usize
    };
    let params = config.descriptor_entries() as usize + 2 * tiles;
    check_entries([
        (Mem::Inp, 2 * row_entries * s.depth, entries(Mem::Inp) - 1),
        (Mem::Wgt, 2 * tiles * s.depth, entries(Mem::Wgt) - 1),
        (Mem::Acc, 2 * results, entries(Mem::Acc)),
        (Mem::Out, 2 * results, entries(Mem::Out)),
        (Mem::Param, PARAM_ROWS as usize * params, entries(Mem::Param)),
        (Mem::GemmUop, 2 * s.depth, config.gemm_uop_depth as usize),
    ])?;
    match t.rows * (config.batch * config.block()) as usize <= ROW_BYTES && s.depth <= ROWS {
        false => Err(Limit::Fields),
        true if subtracts && !VecOp::Sub.is_built(config) => Err(Limit::Operation(VecOp::Sub.name())),
        true if subtracts && !in_banks() => Err(Limit::Banks(config.acc_banks)),
        true => Ok(()),
    }
}

/// Returns the estimated cycles of a product.
pub fn cycles(m: &MatMul, t: &MatMulTile, layer: &Layer, config: &HwConfig) -> u64 {
    let s = MatMulSizes::new(layer, config);
    let (row_tiles, column_tiles) = (s.row_entries.div_ceil(t.rows), s.column_blocks.div_ceil(t.blocks));
    let tiles = (s.matrices[0] * row_tiles * column_tiles) as u64;
    let columns = s.column_blocks * s.ratio;
    let weights = (s.matrices[0] * columns * s.depth) as u64 * u64::from(config.entry_bytes(Mem::Wgt));
    let loads = if t.keeps_rows { 1 } else { column_tiles };
    let data = (s.matrices[0] * loads * s.row_entries * s.depth) as u64 * u64::from(config.entry_bytes(Mem::Inp));
    let results = (s.matrices[0] * s.row_entries * columns) as u64;
    let sums = m.sums(config);
    let count = sums.iter().filter(|needed| **needed).count() as u64;
    let (added, subtracted) = match t.zero_points {
        ZeroPoints::Added => (results * count * s.depth as u64, 0),
        ZeroPoints::Subtracted => {
            let once = |needed: bool, entries: usize| if needed { (entries * s.depth) as u64 } else { 0 };
            let per_matrix = once(sums[0], columns) + once(sums[1], s.row_entries);
            (s.matrices[0] as u64 * per_matrix, results * count * simple_row(config))
        }
    };
    let work = UnitWork {
        tiles,
        insns: 7 * tiles,
        load: beats(weights + data, config),
        gemm: results * s.depth as u64 + added + overhead::GEMM_PASS * tiles,
        vector: results * u64::from(config.deep_row_cycles(1)) + subtracted + overhead::VECTOR_TILE * tiles,
        store: beats(layer.output_view().layout(config).bytes() as u64, config),
        ..UnitWork::default()
    };
    work.cycles(config)
}
