//! Estimated cycles of a planned layer by itself: from device memory to device memory, but for what stays in inp, which is
//! neither loaded nor stored.
//!
//! Products have theirs from the search for their tiles ([`super::plan`], [`super::depthwise`]); the others are added up
//! here from the same rules of `hw/TIMING.md`: a micro-op a cycle, a row of the vector unit in as many cycles as its lanes
//! need, rows of loads and stores as [`super::dma`] has them.

use super::dma::{self, load_row};
use super::keep::OnChip;
use super::layer::{Copy, Kind, Layer, MatMul, Pair, Pool, PoolFinish, Walk};
use super::plan::{Plan, PoolTile};
use super::view::View;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{INSN_BYTES, VecOp};

/// Cycles to fetch the first instructions of a layer, to wait for its first data, and to see its last store end.
const LAYER: u64 = 250;
/// Cycles that a tile waits for tokens.
const TILE: u64 = 8;

/// What each unit has to do.
#[derive(Default)]
pub(super) struct Work {
    /// Steps of about the same size.
    pub tiles: u64,
    /// Instructions, all of which come over the bus that loads and stores share.
    pub insns: u64,
    /// Cycles of loads.
    pub load: u64,
    /// Those of them that pass before the first tile can begin; a tile's share where there are less.
    pub first: u64,
    /// Cycles of gemm.
    pub gemm: u64,
    /// Cycles of vector.
    pub vector: u64,
    /// Cycles of stores.
    pub store: u64,
    /// Cycles of loads in which the bus is free.
    pub idle: u64,
    /// Whether loads wait for vector, which writes to their bank.
    pub crowded: bool,
}

impl Work {
    /// Units work beside each other: whatever has most to do waits for the first tile to reach it, and the last tile goes on
    /// from there.
    pub fn cycles(&self, config: &HwConfig) -> u64 {
        let tiles = self.tiles.max(1);
        let [gemm, vector, store] = [self.gemm, self.vector, self.store].map(|all| all.div_ceil(tiles));
        let first = self.first.max(self.load / tiles);
        let fetch = self.insns * u64::from((8 * INSN_BYTES as u32).div_ceil(config.bus_bits));
        let bus = self.load.max(self.load - self.idle.min(self.load) + self.store) + fetch;
        let beside = if self.crowded { bus + self.vector + gemm } else { bus + gemm + vector };
        let by_gemm = first + self.gemm + vector + store;
        let by_vector = first + gemm + self.vector + store;
        beside.max(by_gemm).max(by_vector) + LAYER + TILE * tiles
    }
}

/// Estimated cycles of a layer.
pub fn cycles(layer: &Layer, plan: &Plan, config: &HwConfig) -> u64 {
    let (input, output) = (layer.inputs[0].1, layer.output.1);
    let work = match (&layer.kind, plan) {
        (_, Plan::Conv(tile)) => return tile.cycles,
        (_, Plan::Depthwise(tile)) => return tile.cycles,
        (_, Plan::Transposed(tiles)) => return tiles.iter().map(|t| t.cycles).sum(),
        (Kind::Pool(p), Plan::Pool(tile)) => pool(p, *tile, &layer.on_chip, [input, output], config),
        (Kind::MatMul(m), Plan::MatMul(tile)) => {
            matmul(m, (tile.rows, tile.blocks), [input, layer.inputs[1].1], output, config)
        }
        (Kind::Pair(p), Plan::Pair { entries }) => pair(p, u64::from(*entries), layer.inputs.len(), output, config),
        (Kind::Copy(c), Plan::Copy { rows }) => copy(c, *rows, output, config),
        (Kind::Walk(w), Plan::Walk { blocks }) => walk(w, *blocks, output, config),
        (_, Plan::Lookup { entries }) => lookup(u64::from(*entries), output, config),
        // A plan that is not its layer's kind has no program either.
        _ => Work::default(),
    };
    work.cycles(config)
}

/// Beats of bytes that begin with one.
fn beats(bytes: u64, config: &HwConfig) -> u64 {
    dma::beats(bytes, 0, config)
}

/// Cycles of a row on so many lanes.
fn row(lanes: u32, config: &HwConfig) -> u64 {
    u64::from(config.row_elements().div_ceil(lanes))
}

/// Entries of a tensor in out.
fn entries(view: View, config: &HwConfig) -> u64 {
    (view.layout(config).bytes() as u64).div_ceil(u64::from(config.entry_bytes(Mem::Out)))
}

/// Vector's cycles for an entry of a pooling's results.
pub(super) fn pool_entry(pool: &Pool, config: &HwConfig) -> u64 {
    let simple = row(config.vector_lanes, config);
    let finish = match pool.finish {
        PoolFinish::Clip { .. } => simple,
        PoolFinish::Requant(_) | PoolFinish::Mean { .. } | PoolFinish::Count(_) => config.deep_row_cycles(1).into(),
    };
    (pool.kernel[0] * pool.kernel[1]) as u64 * simple + finish
}

fn pool(pool: &Pool, tile: PoolTile, on_chip: &OnChip, [input, output]: [View; 2], config: &HwConfig) -> Work {
    let (data, blocks) = (input.layout(config), output.layout(config).blocks());
    let cuts = output.h.div_ceil(tile.rows) * output.w.div_ceil(tile.columns);
    let tiles = (output.n * blocks.div_ceil(tile.blocks) * cuts) as u64;
    // Rows that two tiles read are loaded for both.
    let halo = super::layer::reach(pool.kernel[0], pool.dilations[0]).saturating_sub(pool.strides[0]);
    let rows = (input.h + (output.h.div_ceil(tile.rows) - 1) * halo) as u64;
    let all_rows = (output.n * blocks) as u64 * rows * output.w.div_ceil(tile.columns) as u64;
    let width = data.row_stride().div_ceil(output.w.div_ceil(tile.columns)) as u64;
    let out = entries(output, config);
    Work {
        tiles,
        insns: 4 * tiles,
        load: if on_chip.input.is_some() { 0 } else { all_rows * load_row(width, 0, Mem::Out, config) },
        vector: out * pool_entry(pool, config) + 24 * tiles,
        store: if on_chip.hides_output() { 0 } else { beats(output.layout(config).bytes() as u64, config) },
        crowded: on_chip.crowds(config),
        ..Work::default()
    }
}

fn matmul(m: &MatMul, (rows, blocks): (usize, usize), [a, b]: [View; 2], output: View, config: &HwConfig) -> Work {
    let block = config.block() as usize;
    let ratio = block / config.block_out as usize;
    let depth = a.c.div_ceil(block);
    let entries_of = a.w.div_ceil(config.batch as usize);
    let (row_tiles, column_tiles) = (entries_of.div_ceil(rows), b.w.div_ceil(block).div_ceil(blocks));
    let tiles = (a.n * row_tiles * column_tiles) as u64;
    let columns = b.w.div_ceil(block) * ratio;
    let values = usize::from(m.a_zero_point != 0) + usize::from(m.b_zero_point != 0);
    let weights = (a.n * row_tiles * columns * depth) as u64 * u64::from(config.entry_bytes(Mem::Wgt));
    let data = (a.n * column_tiles * entries_of * depth) as u64 * u64::from(config.entry_bytes(Mem::Inp));
    let results = (a.n * entries_of * columns) as u64;
    Work {
        tiles,
        insns: 7 * tiles,
        load: beats(weights + data, config),
        gemm: results * (depth + values) as u64,
        vector: results * u64::from(config.deep_row_cycles(1)) + 24 * tiles,
        store: beats(output.layout(config).bytes() as u64, config),
        ..Work::default()
    }
}

fn pair(pair: &Pair, piece: u64, operands: usize, output: View, config: &HwConfig) -> Work {
    let out = entries(output, config);
    let bytes = output.layout(config).bytes() as u64;
    let tiles = out.div_ceil(piece.max(1));
    let cycles = match pair.op.operation() {
        VecOp::Qadd => config.deep_row_cycles(3).into(),
        VecOp::Mul => config.deep_row_cycles(1).into(),
        _ => row(config.vector_lanes, config),
    };
    Work {
        tiles,
        insns: 4 * tiles,
        load: operands.max(1) as u64 * beats(bytes, config),
        vector: out * cycles + 24 * tiles,
        store: beats(bytes, config),
        ..Work::default()
    }
}

fn lookup(piece: u64, output: View, config: &HwConfig) -> Work {
    let (out, bytes) = (entries(output, config), output.layout(config).bytes() as u64);
    let tiles = out.div_ceil(piece.max(1));
    Work {
        tiles,
        insns: 3 * tiles,
        load: beats(bytes, config),
        vector: out * row(config.vector_lanes, config) + 50 * tiles,
        store: beats(bytes, config),
        ..Work::default()
    }
}

fn walk(walk: &Walk, room: usize, output: View, config: &HwConfig) -> Work {
    let block = config.block() as usize;
    let pieces = walk.pieces(room, block);
    let load = |[planes, rows, run]: [(usize, usize); 3]| {
        (planes.0 * rows.0) as u64 * load_row((run.0 * block) as u64, 0, Mem::Out, config)
    };
    Work {
        tiles: pieces.len() as u64,
        insns: 2 * pieces.len() as u64,
        load: pieces.iter().map(|p| load(p.loops)).sum(),
        store: beats(output.layout(config).bytes() as u64, config),
        ..Work::default()
    }
}

fn copy(copy: &Copy, rows: usize, output: View, config: &HwConfig) -> Work {
    let block = config.block() as usize;
    let mut load = 0;
    for s in &copy.segments {
        let (h, w) = (s.rows.1.len(), s.columns.1.len());
        let whole = s.c_from % block == 0 && s.c_to % block == 0;
        let neighbours = s.columns.1.windows(2).all(|c| c[1] == c[0] + 1);
        let blocks = s.c.div_ceil(block);
        // Parts of blocks come pixel by pixel, cut where blocks of either side end.
        let (lines, bytes) = match whole && neighbours {
            true => (blocks * h, w * block),
            false if whole => (blocks * h * w, block),
            false => ((blocks + 1) * h * w, s.c.div_ceil(blocks + 1)),
        };
        // What begins within a block begins anywhere in a beat.
        let at = if whole { 0 } else { u64::from(config.bus_bytes()) - 1 };
        load += (output.n * lines) as u64 * load_row(bytes as u64, at, Mem::Out, config);
    }
    let tiles = (output.n * output.layout(config).blocks() * output.h.div_ceil(rows)) as u64;
    let lines = copy.segments.len() as u64;
    Work {
        tiles,
        insns: tiles * (1 + lines),
        load,
        store: beats(output.layout(config).bytes() as u64, config),
        ..Work::default()
    }
}
