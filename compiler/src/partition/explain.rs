//! What a person is told of each node.

use super::place::Placed;
use crate::graph::{Graph, NodeId};
use tilewright_runtime::artifact::Place;

/// Where a node runs, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The node.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// Its operator.
    pub op: &'static str,
    /// Where it runs.
    pub place: Place,
    /// Why there.
    pub why: String,
}

pub(super) fn explain(graph: &Graph, placed: &Placed) -> Vec<Explanation> {
    let explanation = |(&id, at): (&NodeId, &super::place::NodePlace)| {
        let node = graph.node(id);
        Explanation { node: id, name: node.name.clone(), op: node.op.name(), place: at.place, why: at.why.clone() }
    };
    placed.nodes.iter().map(explanation).collect()
}
