//! An order of the nodes in which each follows those that make its operands.

use super::proto::GraphProto;
use std::collections::HashMap;

/// Places of the nodes, in the file's order where that is one.
///
/// # Errors
/// Names that two nodes define, and a node on a cycle.
pub(super) fn order(graph: &GraphProto) -> Result<Vec<usize>, String> {
    let mut maker: HashMap<&str, usize> = HashMap::new();
    for (i, n) in graph.node.iter().enumerate() {
        for name in n.output.iter().filter(|s| !s.is_empty()) {
            if maker.insert(name, i).is_some() {
                return Err(format!("two nodes define `{name}`"));
            }
        }
    }
    const ENTERED: u8 = 1;
    const DONE: u8 = 2;
    let (mut state, mut order) = (vec![0u8; graph.node.len()], Vec::with_capacity(graph.node.len()));
    for start in 0..graph.node.len() {
        // Nodes on the way from the start, with the operand that each looks at next.
        let mut way = vec![(start, 0)];
        while let Some((node, operand)) = way.last_mut() {
            if *operand == 0 && state[*node] == DONE {
                way.pop();
                continue;
            }
            state[*node] = ENTERED;
            let inputs = &graph.node[*node].input;
            let Some(name) = inputs.get(*operand) else {
                state[*node] = DONE;
                order.push(*node);
                way.pop();
                continue;
            };
            *operand += 1;
            match maker.get(name.as_str()) {
                Some(&m) if state[m] == ENTERED => {
                    return Err(format!("its nodes form a cycle: `{name}` is made, by way of others, from itself"));
                }
                Some(&m) if state[m] != DONE => way.push((m, 0)),
                _ => {}
            }
        }
    }
    Ok(order)
}
