//! Which nodes of a region become one function: what code generators for host processors and GPUs share.

use std::collections::HashMap;

use crate::graph::{Graph, NodeId, Op, ValueId};

/// Joins nodes for which `joins` holds to a node one of whose results only they read, up to `most` of them; constants are left
/// out.
///
/// A group computes its last node's results, and groups are in an order in which they can be computed.
pub fn groups(graph: &Graph, nodes: &[NodeId], most: usize, joins: impl Fn(&Op) -> bool) -> Vec<Vec<NodeId>> {
    let mut groups: Vec<Vec<NodeId>> = Vec::new();
    let mut group_of: HashMap<NodeId, usize> = HashMap::new();
    for &id in nodes {
        let node = graph.node(id);
        if matches!(node.op, Op::Constant(_)) {
            continue;
        }
        // The latest of the groups that it may follow: what the others compute is there by then.
        let latest = node.inputs.iter().filter_map(|v| group_of.get(&graph.def_node(*v)?.0).copied()).max();
        let joined = latest.filter(|&g| {
            let last = groups[g].last();
            let only = node.inputs.iter().any(|v| producer(graph, *v, id).as_ref() == last);
            only && joins(&node.op) && groups[g].len() < most && same_size(graph, last, id)
        });
        let at = joined.unwrap_or(groups.len());
        if at == groups.len() {
            groups.push(Vec::new());
        }
        groups[at].push(id);
        group_of.insert(id, at);
    }
    groups
}

/// The node whose only result nobody but `reader` reads, once.
fn producer(graph: &Graph, v: ValueId, reader: NodeId) -> Option<NodeId> {
    if graph.is_output(v) || graph.users().get(v.0)?.as_slice() != [reader] {
        return None;
    }
    graph.def_node(v).filter(|(_, n)| n.outputs.len() == 1 && !matches!(n.op, Op::Constant(_))).map(|d| d.0)
}

/// True where both compute as many elements, so that none would be computed several times.
fn same_size(graph: &Graph, first: Option<&NodeId>, second: NodeId) -> bool {
    let count = |id: NodeId| graph.ty(graph.node(id).output()).element_count();
    first.is_some_and(|f| count(*f).is_some() && count(*f) == count(second))
}

/// True for operators that compute each element from the element of each operand at its place.
pub fn is_elementwise(op: &Op) -> bool {
    matches!(
        op,
        Op::Requantize(_)
            | Op::Rescale(_)
            | Op::Relu(_)
            | Op::Clip(_)
            | Op::Add(_)
            | Op::Unary(_)
            | Op::Binary(_)
            | Op::Select(_)
            | Op::Cast(_)
            | Op::QAdd(_)
            | Op::QMul(_)
            | Op::Lookup(_)
            | Op::Quantize(_)
            | Op::Dequantize(_)
            | Op::ShiftSign(_)
    )
}
