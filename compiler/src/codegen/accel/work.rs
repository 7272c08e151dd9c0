//! The work of each unit for a layer, and the estimated cycles that follow from it by the rules of `hw/TIMING.md`.
//!
//! A gemm micro-op takes one cycle. A row of the vector unit takes as many cycles as its lanes need. [`super::dma`]
//! gives the cycles of rows of loads and stores.

use super::dma;
use super::view::View;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::INSN_BYTES;

/// Cycles in addition to those of entries, rows and micro-ops: the latencies of `hw/TIMING.md` ("Fetch", "Tokens and
/// starts", "Gemm", "Vector", "End and traps"), summed over the instructions of a tile.
pub mod overhead {
    /// Cycles per layer: fetching the first instructions, waiting for the first data, finishing the last store.
    pub const LAYER: u64 = 250;
    /// Cycles per tile in which units wait for dependency tokens.
    pub const TILE: u64 = 8;
    /// Cycles per pass of gemm over a tile: starting the instructions and writing the last sums.
    pub const GEMM_PASS: u64 = 12;
    /// Cycles per output tile and tile of pixels for products with weights beyond 8 bits.
    pub const GEMM_REST: u64 = 20;
    /// Cycles of the vector unit's instructions per tile.
    pub const VECTOR_TILE: u64 = 24;
    /// Cycles of a lookup's instructions per piece; the table is read first.
    pub const LOOKUP_PIECE: u64 = 50;
    /// Cycles per tile of a lookup that is fused into a product.
    pub const FUSED_LOOKUP: u64 = 60;
    /// Cycles per tile of an operator on two tensors that is fused into a product.
    pub const FUSED_PAIR: u64 = 40;
    /// Cycles per tile of a pooling that is fused into a product.
    pub const FUSED_POOLING: u64 = 60;
    /// Cycles per tile of a second requantization of the sums.
    pub const SLOPE: u64 = 60;
    /// Cycles of gemm per tile of a depthwise layer that the array and the vector unit share.
    pub const DEPTHWISE_GEMM: u64 = 15;
    /// Cycles of the vector unit per tile of such a layer.
    pub const DEPTHWISE_VECTOR: u64 = 50;
    /// Instructions per tile of such a layer.
    pub const DEPTHWISE_INSNS: u64 = 7;
    /// Cycles at the beginning and end of such a layer.
    pub const DEPTHWISE_LAYER: u64 = 300;
}

/// The work of each unit for a layer.
#[derive(Default)]
pub struct UnitWork {
    /// Steps of about the same size.
    pub tiles: u64,
    /// Instructions. They are fetched over the same bus as loads and stores.
    pub insns: u64,
    /// Cycles of loads.
    pub load: u64,
    /// Cycles of loads before the first tile can begin; if less than a tile's share of `load`, that share is used.
    pub first: u64,
    /// Cycles of gemm.
    pub gemm: u64,
    /// Cycles of vector.
    pub vector: u64,
    /// Cycles of stores.
    pub store: u64,
    /// Cycles of loads in which the bus is free.
    pub idle: u64,
    /// Whether loads wait for vector because it writes to the same bank.
    pub crowded: bool,
}

impl UnitWork {
    /// Returns the estimated cycles.
    ///
    /// The units work in parallel. The busiest unit first waits until the first tile reaches it; after its last tile,
    /// the following units finish that tile.
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

/// Beats of the bus for bytes that begin at a beat boundary.
pub fn beats(bytes: u64, config: &HwConfig) -> u64 {
    dma::beats(bytes, 0, config)
}

/// Entries of scratchpad out that a whole tensor would take.
pub fn entries(view: View, config: &HwConfig) -> u64 {
    (view.layout(config).bytes() as u64).div_ceil(u64::from(config.entry_bytes(Mem::Out)))
}

/// Cycles of the vector unit for one row of a simple operation.
pub fn simple_row(config: &HwConfig) -> u64 {
    u64::from(config.row_elements().div_ceil(config.vector_lanes))
}
