//! The commands of a run with their instructions' cycles, the input of traces and stall tables.

use tilewright_hw::device::Span;
use tilewright_hw::isa::Insn;
use tilewright_runtime::artifact::{InsnLayers, LayerEnd};

/// A command of a run: its name, its program and when its instructions ran.
pub struct Part<'a> {
    /// Its name in the trace.
    pub name: String,
    /// Identifies the program; commands that run the same program have the same number.
    pub number: usize,
    /// The program; empty if it is not available.
    pub program: &'a [Insn],
    /// Its layers; empty if they are not known.
    pub layers: &'a [LayerEnd],
    /// The layer of each instruction.
    pub insn_layers: InsnLayers,
    /// Spans of its instructions, by unit, then ordinal.
    pub spans: &'a [Span],
    /// Waits of instructions that never started, and so have no place in time.
    pub never_started: &'a [Span],
    /// Its cycles.
    pub cycles: u64,
}

impl Part<'_> {
    /// Name of the layer of an instruction.
    pub fn layer_of(&self, place: usize) -> Option<&str> {
        self.insn_layers.of(place).and_then(|layer| self.layers.get(layer)).map(|layer| layer.name.as_str())
    }
}
