//! Passes: rewrites of the graph.
//!
//! A [`Pass`] looks at one node at a time and returns a [`Patch`] or nothing. The [`engine`] applies patches until a
//! pass has none left, verifies each, logs and counts them, and can stop after the N-th, so that you can find a bad
//! rewrite by bisection. [`pipelines`] defines which passes run in which order; a program can [`add`] passes of its own
//! between them. Passes do no I/O.

mod added;
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
mod fuse_layer_norm;
mod legalize_qdq;
mod patch;
pub mod pipelines;
mod sink_dequantize;

pub use added::{AddError, add, any as any_added, remove};
pub use canonicalize::Canonicalize;
pub use channels_last::ChannelsLast;
pub use dead_code::DeadCode;
pub use engine::{Applied, Change, Options, PassError, Report, run};
pub use fold_bias::FoldBias;
pub use fold_clip::FoldClip;
pub use fold_constants::FoldConstants;
pub use fold_pad::FoldPad;
pub use fold_scale::FoldScale;
pub use fuse_layer_norm::FuseLayerNorm;
pub use legalize_qdq::LegalizeQdq;
pub use patch::{Patch, Ref};
pub use pipelines::{OptLevel, optimize};
pub use sink_dequantize::SinkDequantize;

use crate::graph::{Graph, Node, NodeId, Op, ValueId};

/// A rewrite of the graph.
pub trait Pass {
    /// Its name in logs and dumps.
    fn name(&self) -> &'static str;

    /// True if its patches change no result, apart from the rounding of floats. Passes that replace floats with
    /// integers return false.
    fn exact(&self) -> bool {
        true
    }

    /// Remarks for the user about nodes that the pass leaves unchanged, by node name.
    fn notes(&self, _graph: &Graph) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Another graph in place of the whole one, before the pass looks at single nodes; it counts as one patch. `None`
    /// changes nothing. The graph must have the same inputs and outputs.
    ///
    /// # Errors
    /// Why the pass fails.
    fn rewrite_graph(&self, _graph: &Graph) -> Result<Option<Graph>, PassFailure> {
        Ok(None)
    }

    /// What to change at a node, if anything. A patch must make progress: the same pass must not undo or repeat it.
    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch>;
}

/// Why a pass fails; only a pass that is not the compiler's own does.
pub type PassFailure = Box<dyn std::error::Error + Send + Sync>;

/// What a pass sees of the graph.
#[derive(Debug)]
pub struct View<'g> {
    /// The graph. During a pass, use only ids to find nodes and values: the engine holds the order of the nodes, and
    /// removed nodes are still in the graph's lists.
    pub graph: &'g Graph,
}

impl<'g> View<'g> {
    /// Looks at a graph.
    pub fn new(graph: &'g Graph) -> View<'g> {
        View { graph }
    }

    /// The nodes that read a value, one entry per operand, in no particular order.
    pub fn users(&self, v: ValueId) -> &[NodeId] {
        &self.graph.users()[v.0]
    }

    /// True if exactly one operand reads the value and it is not a graph output.
    pub fn single_use(&self, v: ValueId) -> bool {
        self.users(v).len() == 1 && !self.graph.is_output(v)
    }

    /// The node that defines a value, or `None` for an input.
    pub fn def(&self, v: ValueId) -> Option<&'g Node> {
        self.graph.def_node(v).map(|(_, n)| n)
    }

    /// The operator that defines a value, or `None` for an input.
    pub fn op(&self, v: ValueId) -> Option<&'g Op> {
        self.def(v).map(|n| &n.op)
    }
}

#[cfg(test)]
mod tests;
