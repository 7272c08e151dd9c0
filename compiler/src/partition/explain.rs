//! Explains for each node where it runs and why.

use super::place::{NodePlace, Placed};
use super::{Offload, auto};
use crate::graph::{Graph, NodeId};
use std::collections::BTreeMap;
use tilewright_runtime::artifact::{NodeCost, Place};

/// Where a node runs, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The node.
    pub node: NodeId,
    /// Name of the node.
    pub name: String,
    /// Name of its operator.
    pub op: &'static str,
    /// Where it runs.
    pub place: Place,
    /// Why it runs there.
    pub why: String,
    /// Cost in both places of the node, together with the nodes that move with it.
    pub cost: Option<NodeCost>,
}

pub(super) fn explain(
    graph: &Graph,
    placed: &Placed,
    offload: Offload,
    mut costs: BTreeMap<NodeId, NodeCost>,
) -> Vec<Explanation> {
    let explanation = |(&id, at): (&NodeId, &NodePlace)| {
        let (node, cost) = (graph.node(id), costs.remove(&id));
        let weighed = cost.as_ref().filter(|_| offload == Offload::Auto).and_then(|cost| auto::reason(cost, at.place));
        let why = match (weighed, at.why.as_str()) {
            (Some(weighed), "") => format!("by cost: {weighed}"),
            (Some(weighed), why) => format!("{why}; {weighed}"),
            (None, "") => "by cost".into(),
            (None, why) => why.into(),
        };
        let why = placed.notes.get(&id).map_or(why.clone(), |note| format!("{why}; {note}"));
        Explanation { node: id, name: node.name.clone(), op: node.op.name(), place: at.place, why, cost }
    };
    placed.nodes.iter().map(explanation).collect()
}
