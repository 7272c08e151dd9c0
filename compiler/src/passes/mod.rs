//! Passes: rewrites of the graph.
//!
//! A [`Pass`] looks at one node at a time and returns a [`Patch`] or nothing. The [`engine`] applies patches until a pass
//! has none left, verifies each, names them in a log, counts them, and can stop after the N-th, so that a bad rewrite
//! is found by bisection. [`pipelines`] says which passes run, in which order. Passes do no input or output.

mod canonicalize;
mod channels_last;
mod dead_code;
mod draft;
pub mod engine;
mod fold_bias;
mod fold_clip;
mod fold_constants;
mod fold_pad;
mod fold_scale;
mod legalize_qdq;
mod patch;
pub mod pipelines;
mod sink_dequantize;

pub use canonicalize::Canonicalize;
pub use channels_last::ChannelsLast;
pub use dead_code::DeadCode;
pub use engine::{Applied, Change, Options, PassError, Report, run};
pub use fold_bias::FoldBias;
pub use fold_clip::FoldClip;
pub use fold_constants::FoldConstants;
pub use fold_pad::FoldPad;
pub use fold_scale::FoldScale;
pub use legalize_qdq::LegalizeQdq;
pub use patch::{Patch, Ref};
pub use pipelines::{OptLevel, optimize};
pub use sink_dequantize::SinkDequantize;

use crate::graph::{Graph, Node, NodeId, Op, ValueId};

/// A rewrite.
pub trait Pass {
    /// Its name in logs and dumps.
    fn name(&self) -> &'static str;

    /// Whether its patches promise to change no answer, but for the rounding of floats. What puts integers in the place of
    /// floats does not.
    fn exact(&self) -> bool {
        true
    }

    /// What a person is to be told of nodes that the pass leaves as they are, by their names.
    fn notes(&self, _graph: &Graph) -> Vec<(String, String)> {
        Vec::new()
    }

    /// What to change at a node, if anything. A patch must make progress: the same pass must not undo or repeat it.
    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch>;
}

/// What a pass looks at.
#[derive(Debug)]
pub struct View<'g> {
    /// The graph. In the middle of a pass its nodes and values are found by their ids alone: the order of the nodes is the
    /// engine's, and what was dropped is still in their lists.
    pub graph: &'g Graph,
}

impl<'g> View<'g> {
    /// Looks at a graph.
    pub fn new(graph: &'g Graph) -> View<'g> {
        View { graph }
    }

    /// The nodes that take a value, with one entry for each operand, in no order.
    pub fn users(&self, v: ValueId) -> &[NodeId] {
        &self.graph.users()[v.0]
    }

    /// True where one operand takes the value, and nothing else does.
    pub fn single_use(&self, v: ValueId) -> bool {
        self.users(v).len() == 1 && !self.graph.is_output(v)
    }

    /// The node that defines a value, none for an input.
    pub fn def(&self, v: ValueId) -> Option<&'g Node> {
        self.graph.def_node(v).map(|(_, n)| n)
    }

    /// The operator that defines a value, none for an input.
    pub fn op(&self, v: ValueId) -> Option<&'g Op> {
        self.def(v).map(|n| &n.op)
    }
}

#[cfg(test)]
mod tests;
