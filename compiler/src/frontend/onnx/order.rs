//! Sorts the nodes of a graph topologically.

use super::proto::{GraphProto, NodeProto};
use std::collections::{HashMap, HashSet};

/// Indices of the nodes in topological order; the file's order if it is topological.
///
/// # Errors
/// If two nodes define the same name, or a node is on a cycle.
pub(super) fn order(nodes: &[NodeProto]) -> Result<Vec<usize>, String> {
    let mut maker: HashMap<&str, usize> = HashMap::new();
    for (i, n) in nodes.iter().enumerate() {
        for name in n.output.iter().filter(|s| !s.is_empty()) {
            if maker.insert(name, i).is_some() {
                return Err(format!("two nodes define `{name}`"));
            }
        }
    }
    const ENTERED: u8 = 1;
    const DONE: u8 = 2;
    let operands: Vec<Vec<&str>> = nodes.iter().map(operands).collect();
    let (mut state, mut order) = (vec![0u8; nodes.len()], Vec::with_capacity(nodes.len()));
    for start in 0..nodes.len() {
        // Nodes on the path from the start, each with the index of the operand to look at next.
        let mut way = vec![(start, 0)];
        while let Some((node, operand)) = way.last_mut() {
            if *operand == 0 && state[*node] == DONE {
                way.pop();
                continue;
            }
            state[*node] = ENTERED;
            let Some(name) = operands[*node].get(*operand) else {
                state[*node] = DONE;
                order.push(*node);
                way.pop();
                continue;
            };
            *operand += 1;
            match maker.get(name) {
                Some(&m) if state[m] == ENTERED => {
                    return Err(format!("its nodes form a cycle: `{name}` depends on itself"));
                }
                Some(&m) if state[m] != DONE => way.push((m, 0)),
                _ => {}
            }
        }
    }
    Ok(order)
}

/// Names that a node reads: its operands, and what its branches read from the enclosing scope.
fn operands(node: &NodeProto) -> Vec<&str> {
    let branches = node.attribute.iter().filter_map(|a| a.g.as_deref());
    node.input.iter().map(String::as_str).chain(branches.flat_map(captured)).collect()
}

fn captured(graph: &GraphProto) -> Vec<&str> {
    let made = graph.node.iter().flat_map(|n| &n.output).map(String::as_str);
    let own: HashSet<&str> = made.chain(graph.constants()).collect();
    let outputs = graph.output.iter().map(|info| info.name.as_str());
    let taken = graph.node.iter().flat_map(operands).chain(outputs);
    taken.filter(|name| !own.contains(name)).collect()
}
