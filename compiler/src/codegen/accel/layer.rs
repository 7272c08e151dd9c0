//! The part of a layer that does not depend on its operator: nodes, inputs and output.

use super::kept::OnChip;
use super::view::View;
use crate::graph::{NodeId, ValueId};
use crate::schedule::file::File;
use std::sync::Arc;

/// Graph nodes that the accelerator computes in one pass over tiles.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// The nodes, in the order of the graph.
    pub nodes: Vec<NodeId>,
    /// Name of the last node.
    pub name: String,
    /// Values that the layer reads, each with its view.
    pub inputs: Vec<(ValueId, View)>,
    /// The value that the layer writes, with its view.
    pub output: (ValueId, View),
    /// Which of these tensors are kept in scratchpad inp.
    pub on_chip: OnChip,
    /// A schedule that a person gave, in place of the operator's.
    pub given: Option<Arc<File>>,
}

impl Layer {
    /// View of the first input.
    pub fn input_view(&self) -> View {
        self.inputs[0].1
    }

    /// View of the output.
    pub fn output_view(&self) -> View {
        self.output.1
    }

    /// Says for `--explain` which of the layer's tensors do not go through device memory.
    pub fn on_chip_note(&self) -> &'static str {
        match (self.on_chip.input, self.on_chip.output) {
            (None, None) => "",
            (Some(_), None) => "; its data stay on the chip",
            (None, Some(_)) => "; its results stay on the chip",
            (Some(_), Some(_)) => "; its data and its results stay on the chip",
        }
    }
}
