//! Chooses how to tile a product for a processor's registers.

use tilewright_compiler::graph::op::Layout;
use tilewright_compiler::graph::{Graph, NodeId, Op};
use tilewright_compiler::te::ops::{Blocks, in_fours, is_depthwise, takes_blocks};

use crate::{Architecture, Processor};

/// The part of a product whose sums stay in registers: some pixels or rows times some vectors of output channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tile {
    /// Extents in the last two dimensions in front of the channels.
    pub rows: [i64; 2],
    /// Vectors of channels.
    pub vectors: i64,
    /// Channels per vector.
    pub lanes: i64,
    /// What it sums up.
    pub kind: ProductKind,
    /// Which loop over tiles is the outer one.
    pub outer: Outer,
}

/// Which loop over tiles is the outer one, which also runs in parallel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outer {
    /// Chosen by the size of the data and the weights.
    BySize,
    /// The one over channels: a block of weights stays in the cache for all rows.
    Channels,
    /// The one over rows: the weights are read again for each row of tiles.
    Rows,
}

/// Sizes that limit the tiles of a product or a pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileSpace {
    /// Extents in the last two dimensions in front of the channels.
    pub rows: [i64; 2],
    /// Channels of the result.
    pub channels: i64,
    /// Channels per vector.
    pub lanes: i64,
    /// Vector registers of the processor.
    pub registers: i64,
}

/// What a product sums up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProductKind {
    /// One product at a time.
    Plain,
    /// Four byte products at a time, of signed or unsigned data.
    Fours {
        /// Whether data are i8 instead of u8.
        signed: bool,
    },
    /// A window of each channel.
    Window,
}

/// A processor's throughput and registers.
struct Machine {
    lanes: i64,
    registers: i64,
    /// Cycles to multiply and add vectors, to load a vector, and to broadcast a number.
    fma: f64,
    load: f64,
    spread: f64,
    /// Cycles until a sum can be added to again.
    latency: f64,
}

impl Machine {
    fn of(processor: &Processor) -> Machine {
        match processor.architecture() {
            Architecture::X86 => Machine::of_x86(processor),
            // Two 128-bit vectors per cycle. Products can take their factor from a lane.
            Architecture::Arm => Machine { lanes: 4, registers: 32, fma: 0.5, load: 0.5, spread: 0.5, latency: 4.0 },
            // Vectors of integers: two words of a vector per cycle.
            Architecture::Arm32 if processor.has("neon") => {
                Machine { lanes: 4, registers: 16, fma: 2.0, load: 1.0, spread: 0.5, latency: 5.0 }
            }
            // No vectors.
            Architecture::Arm32 => Machine { lanes: 1, registers: 12, fma: 1.0, load: 1.0, spread: 1.0, latency: 5.0 },
            // Vectors are as short as the processor allows. A factor needs a register of its own.
            Architecture::RiscV if processor.has("v") => {
                let longest = [("zvl512b", 16), ("zvl256b", 8)].into_iter().find(|(name, _)| processor.has(name));
                let lanes = longest.map_or(4, |(_, lanes)| lanes);
                Machine { lanes, registers: 32, fma: 1.0, load: 1.0, spread: 0.5, latency: 5.0 }
            }
            // No vectors: sums are single numbers, in the registers that addresses and loops leave free.
            Architecture::RiscV => Machine { lanes: 1, registers: 24, fma: 1.0, load: 1.0, spread: 1.0, latency: 5.0 },
            // Engines have 16 vector registers on x86-64. A product and a sum are two instructions.
            Architecture::Wasm if processor.has("simd128") => {
                Machine { lanes: 4, registers: 16, fma: 1.0, load: 0.5, spread: 0.5, latency: 6.0 }
            }
            Architecture::Wasm => Machine { lanes: 1, registers: 12, fma: 1.0, load: 0.5, spread: 0.5, latency: 6.0 },
        }
    }

    fn of_x86(processor: &Processor) -> Machine {
        if processor.has("avx512f") {
            Machine { lanes: 16, registers: 32, fma: 1.0, load: 1.0, spread: 0.5, latency: 4.0 }
        } else if processor.has("avx2") && processor.has("fma") {
            Machine { lanes: 8, registers: 16, fma: 0.5, load: 0.5, spread: 0.5, latency: 4.0 }
        } else {
            Machine { lanes: 4, registers: 16, fma: 1.0, load: 0.5, spread: 0.5, latency: 6.0 }
        }
    }
}

/// Most vectors next to each other if there are few rows.
pub const MOST_VECTORS: i64 = 8;

impl Tile {
    /// Returns the tile of a pooling, or of a product that can be packed in blocks, chosen by cycles, and the space of
    /// other tiles. Returns `None` for other nodes and for unknown weights.
    pub fn of(graph: &Graph, node: NodeId, processor: &Processor) -> Option<(Tile, TileSpace)> {
        let n = graph.node(node);
        let pools = pools(&n.op);
        if !pools && (!takes_blocks(graph, node) || graph.constant(*n.inputs.get(1)?).is_none()) {
            return None;
        }
        let shape: Vec<i64> = graph.ty(n.output()).shape()?.into_iter().map(|n| n as i64).collect();
        let (channels, outer) = shape.split_last()?;
        let row = |back: usize| outer.len().checked_sub(back).map_or(1, |i| outer[i]);
        let machine = Machine::of(processor);
        let rows = [row(2), row(1)];
        let space = TileSpace { rows, channels: *channels, lanes: machine.lanes, registers: machine.registers };
        if pools || is_depthwise(graph, node) {
            return Some((of_window(&machine, rows[1], *channels), space));
        }
        let tile = best(&machine, rows, *channels)?;
        // Instructions of x86-64 take unsigned data, those of others signed data.
        let signed = processor.architecture() != Architecture::X86;
        let fours = in_fours(graph, node);
        Some((if fours { Tile { kind: ProductKind::Fours { signed }, ..tile } } else { tile }, space))
    }

    /// Returns how the product's weights are packed.
    pub fn blocks(&self) -> Blocks {
        Blocks { channels: self.vectors * self.lanes, signed: matches!(self.kind, ProductKind::Fours { signed: true }) }
    }
}

/// Returns whether an operator computes each element from a window of its channel.
fn pools(op: &Op) -> bool {
    let layout = match op {
        Op::MaxPool2d(op) => op.layout,
        Op::AvgPool2d(op) => op.layout,
        Op::SumPool2d(op) => op.layout,
        Op::QAvgPool2d(op) => op.layout,
        Op::GlobalAvgPool(op) => op.layout,
        _ => return false,
    };
    layout == Layout::Nhwc
}

/// Returns the tile of a depthwise convolution or a pooling: pixels of a row whose windows overlap.
fn of_window(machine: &Machine, width: i64, channels: i64) -> Tile {
    let vectors = if channels % (2 * machine.lanes) == 0 && machine.registers > 16 { 2 } else { 1 };
    // Use half of the registers for sums, the others for weights and data.
    let most = machine.registers / 2 / vectors;
    let pixels = (1..=most.min(8)).rev().find(|d| width % d == 0).unwrap_or(1);
    Tile { rows: [1, pixels], vectors, lanes: machine.lanes, kind: ProductKind::Window, outer: Outer::BySize }
}

/// Returns the tile with the fewest cycles per result.
fn best(machine: &Machine, rows: [i64; 2], channels: i64) -> Option<Tile> {
    let divisors = |n: i64| (1..=n.min(machine.registers)).filter(move |d| n % d == 0);
    let mut found: Option<(f64, Tile)> = None;
    for vectors in 1..=MOST_VECTORS {
        for inner in divisors(rows[1]) {
            for outer in divisors(rows[0]) {
                let sums = inner * outer * vectors;
                // The sums, the weights of a step, and one number of the data.
                if sums + vectors + 1 > machine.registers {
                    continue;
                }
                let width = vectors * machine.lanes;
                let blocks = (channels + width - 1) / width;
                let used = channels as f64 / (blocks * width) as f64;
                let work = sums as f64 * machine.fma;
                let moved = vectors as f64 * machine.load + (inner * outer) as f64 * machine.spread;
                // Hidden accesses still use cache space, and distant rows use more of it.
                let rest = 0.5 + 0.05 * (vectors + inner * outer) as f64 + 0.25 * (outer - 1) as f64;
                let cycles = work.max(moved).max(machine.latency) + rest;
                let each = cycles / (sums as f64 * used);
                if found.is_none_or(|(least, _)| each < least) {
                    found = Some((
                        each,
                        Tile {
                            rows: [outer, inner],
                            vectors,
                            lanes: machine.lanes,
                            kind: ProductKind::Plain,
                            outer: Outer::BySize,
                        },
                    ));
                }
            }
        }
    }
    found.map(|(_, tile)| tile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fill_registers_and_fit_their_layer() {
        let wide = Machine { lanes: 16, registers: 32, fma: 1.0, load: 1.0, spread: 0.5, latency: 4.0 };
        let narrow = Machine { lanes: 8, registers: 16, fma: 0.5, load: 0.5, spread: 0.5, latency: 4.0 };
        for (machine, rows, channels, least) in
            [(&wide, [56, 56], 64, 20), (&wide, [7, 7], 512, 14), (&wide, [1, 1], 1000, 4), (&narrow, [56, 56], 64, 8)]
        {
            let tile = best(machine, rows, channels).expect("there is a tile");
            let sums = tile.rows[0] * tile.rows[1] * tile.vectors;
            assert!(sums >= least && sums + tile.vectors < machine.registers, "{rows:?} x {channels}: {tile:?}");
            assert!(rows[0] % tile.rows[0] == 0 && rows[1] % tile.rows[1] == 0, "{tile:?}");
        }
    }
}
