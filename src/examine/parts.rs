//! The commands of a run with their instructions' cycles, as traces and tables of stalls read them.

use tilewright_hw::device::Span;
use tilewright_hw::isa::Insn;
use tilewright_runtime::artifact::LayerEnd;

/// A command of a run: its name, its program and when its instructions ran.
pub struct Part<'a> {
    /// What the trace calls it.
    pub name: String,
    /// Tells programs apart; commands that run the same program have the same number.
    pub number: usize,
    /// The program; empty where it is not at hand.
    pub program: &'a [Insn],
    /// Its layers; empty where they are not known.
    pub layers: &'a [LayerEnd],
    /// Its instructions' cycles, by unit, then ordinal.
    pub spans: &'a [Span],
    /// Waits of instructions that never started, which have no place in time.
    pub never_started: &'a [Span],
    /// Its cycles.
    pub cycles: u64,
}

/// The name of the layer that an instruction of a program belongs to.
pub fn layer_of(layers: &[LayerEnd], place: usize) -> Option<&str> {
    layers.iter().find(|layer| place < layer.end).map(|layer| layer.name.as_str())
}
