//! The work of each unit for a layer, and the cycles that follow from it by the rules of `hw/TIMING.md`: a micro-op takes a
//! cycle, a row of the vector unit as many cycles as its lanes need, and rows of loads and stores what [`super::dma`] says.

use super::dma;
use super::view::View;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::INSN_BYTES;

/// Cycles beyond those of entries, rows and micro-ops: the latencies of `hw/TIMING.md` ("Fetch", "Tokens and starts", "Gemm",
/// "Vector", "End and traps"), added up over the instructions of a tile.
pub mod overhead {
    /// Of a layer: the first instructions are fetched, the first data arrive, the last store ends.
    pub const LAYER: u64 = 250;
    /// Of a tile: its units wait for dependency tokens.
    pub const TILE: u64 = 8;
    /// Of a pass of gemm over a tile: the instructions start and the last sums are written.
    pub const GEMM_PASS: u64 = 12;
    /// Of an output tile's products with weights beyond 8 bits, for each tile of pixels.
    pub const GEMM_REST: u64 = 20;
    /// Of the vector unit's instructions for a tile.
    pub const VECTOR_TILE: u64 = 24;
    /// Of a lookup's instructions for a piece: the table is read first.
    pub const LOOKUP_PIECE: u64 = 50;
    /// Of a lookup that is fused into a product's tile.
    pub const FUSED_LOOKUP: u64 = 60;
    /// Of an operator of two tensors that is fused into a product's tile.
    pub const FUSED_PAIR: u64 = 40;
    /// Of a pooling that is fused into a product's tile.
    pub const FUSED_POOLING: u64 = 60;
    /// Of a second requantization of a tile's sums.
    pub const SLOPE: u64 = 60;
    /// Of gemm for a step of a depthwise layer that the array and the vector unit share.
    pub const DEPTHWISE_GEMM: u64 = 8;
    /// Of the vector unit for such a step.
    pub const DEPTHWISE_VECTOR: u64 = 44;
    /// Instructions of such a step.
    pub const DEPTHWISE_INSNS: u64 = 7;
    /// Steps that such a layer has beyond those of its strips: the first and last of each pair are halved.
    pub const DEPTHWISE_STEPS: u64 = 4;
    /// Of such a layer's beginning and end.
    pub const DEPTHWISE_LAYER: u64 = 300;
}

/// What each unit has to do.
#[derive(Default)]
pub struct UnitWork {
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

impl UnitWork {
    /// Estimated cycles. The units work in parallel: the busiest one waits until the first tile reaches it, and the last tile
    /// goes on from there.
    pub fn cycles(&self, config: &HwConfig) -> u64 {
        let tiles = self.tiles.max(1);
        let [gemm, vector, store] = [self.gemm, self.vector, self.store].map(|all| all.div_ceil(tiles));
        let first = self.first.max(self.load / tiles);
        let fetch = self.insns * u64::from((8 * INSN_BYTES as u32).div_ceil(config.bus_bits));
        let bus = self.load.max(self.load - self.idle.min(self.load) + self.store) + fetch;
        let beside = if self.crowded { bus + self.vector + gemm } else { bus + gemm + vector };
        let by_gemm = first + self.gemm + vector + store;
        let by_vector = first + gemm + self.vector + store;
        beside.max(by_gemm).max(by_vector) + overhead::LAYER + overhead::TILE * tiles
    }
}

/// Beats of the bus for bytes that begin with a beat.
pub fn beats(bytes: u64, config: &HwConfig) -> u64 {
    dma::beats(bytes, 0, config)
}

/// Entries of a tensor in out.
pub fn entries(view: View, config: &HwConfig) -> u64 {
    (view.layout(config).bytes() as u64).div_ceil(u64::from(config.entry_bytes(Mem::Out)))
}

/// Cycles of the vector unit for one row of a simple operation.
pub fn simple_row(config: &HwConfig) -> u64 {
    u64::from(config.row_elements().div_ceil(config.vector_lanes))
}
