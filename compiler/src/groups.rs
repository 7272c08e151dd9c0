//! Groups nodes of a region into functions, for the code generators of CPUs and GPUs.

use std::collections::HashMap;

use crate::graph::{Graph, NodeId, Op, ValueId};

/// Groups nodes, at most `most` per group. Constants are left out.
///
/// A node joins the latest group that computes one of its operands, if `joins` accepts its operator, the group's last
/// node computes an operand that only this node reads, and both have the same number of elements. A group computes its
/// last node's results, and the groups are in a valid order of execution.
pub fn groups(graph: &Graph, nodes: &[NodeId], most: usize, joins: impl Fn(&Op) -> bool) -> Vec<Vec<NodeId>> {
    let mut groups: Vec<Vec<NodeId>> = Vec::new();
    let mut group_of: HashMap<NodeId, usize> = HashMap::new();
    for &id in nodes {
        let node = graph.node(id);
        if matches!(node.op, Op::Constant(_)) {
            continue;
        }
        // The latest group that computes an operand. All other groups it depends on run before that one.
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

/// Returns the node that computes `v`, if `v` is its only result and `reader` the only reader, and reads it once.
fn producer(graph: &Graph, v: ValueId, reader: NodeId) -> Option<NodeId> {
    if graph.is_output(v) || graph.users().get(v.0)?.as_slice() != [reader] {
        return None;
    }
    graph.def_node(v).filter(|(_, n)| n.outputs.len() == 1 && !matches!(n.op, Op::Constant(_))).map(|d| d.0)
}

/// Returns whether both have the same number of elements, so that none is computed several times.
fn same_size(graph: &Graph, first: Option<&NodeId>, second: NodeId) -> bool {
    let count = |id: NodeId| graph.ty(graph.node(id).output()).element_count();
    first.is_some_and(|f| count(*f).is_some() && count(*f) == count(second))
}

/// Returns whether an operator computes each element only from the operands' elements at the same place.
pub fn is_elementwise(op: &Op) -> bool {
    let others = matches!(
        op,
        Op::Requantize(_)
            | Op::Rescale(_)
            | Op::Add(_)
            | Op::Binary(_)
            | Op::Select(_)
            | Op::QAdd(_)
            | Op::QMul(_)
            | Op::Lookup(_)
            | Op::Quantize(_)
            | Op::Dequantize(_)
            | Op::ShiftSign(_)
    );
    others || op.is_map()
}
