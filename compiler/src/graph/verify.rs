//! The verifier.
//!
//! Rules:
//! - every operand and output is a value that is defined before its use;
//! - every value is defined once, by the node that it names;
//! - each node's output types are those that its operator infers, and its regions are valid;
//! - no value has more than [`super::MAX_RANK`] dimensions;
//! - names of inputs are unique, and so are names of nodes; outputs with the same name are the same value (a file can
//!   list an output more than once);
//! - the graph has at least one output.

use super::{Def, Graph, GraphError, OpError};
use std::collections::{HashMap, HashSet};

/// Returns everything that is wrong with a graph; empty if it is valid.
pub fn verify(g: &Graph) -> Vec<GraphError> {
    let mut errors = Vec::new();
    let mut invalid = |m: String| errors.push(GraphError::Invalid(m));
    let mut seen = HashSet::new();
    for (name, v) in g.inputs() {
        if !seen.insert(name) {
            invalid(format!("two inputs have the name `{name}`"));
        }
        if let Err(e) = super::op::rank_in_bounds(g.ty(v).rank()) {
            invalid(format!("input `{name}`: {e}"));
        }
    }
    seen.clear();
    for (_, node) in g.nodes() {
        if !seen.insert(&node.name) {
            invalid(format!("two nodes have the name `{}`", node.name));
        }
    }
    let mut named = HashMap::new();
    for (name, v) in g.outputs() {
        if named.insert(name, v).is_some_and(|known| known != v) {
            invalid(format!("two different values are outputs named `{name}`"));
        }
        if v.0 >= g.value_count() {
            invalid(format!("output `{name}` names a value that is not defined"));
        }
    }
    if g.outputs().is_empty() {
        invalid("the graph has no output".into());
    }
    let mut defined = g.inputs().len();
    for (id, node) in g.nodes() {
        let mut sound = true;
        for (i, v) in node.inputs.iter().enumerate() {
            if v.0 >= defined {
                errors.push(GraphError::Invalid(format!(
                    "node `{}`: operand {i} is not defined before its use",
                    node.name
                )));
                sound = false;
            }
        }
        for (i, v) in node.outputs.iter().enumerate() {
            if v.0 != defined + i || v.0 >= g.value_count() || g.value(*v).def != Def::Node(id, i) {
                errors.push(GraphError::Invalid(format!(
                    "node `{}`: output {i} is not a value that the node defines",
                    node.name
                )));
                sound = false;
            }
        }
        defined += node.outputs.len();
        if !sound {
            continue;
        }
        for region in node.op.regions() {
            let inside = |e| OpError::Region { region: region.name().to_string(), source: Box::new(e) };
            errors.extend(verify(region).into_iter().map(|e| GraphError::Op {
                node: node.name.clone(),
                op: node.op.name(),
                source: inside(e),
            }));
        }
        let inputs: Vec<_> = node.inputs.iter().map(|&v| g.ty(v)).collect();
        match node.op.infer(&inputs) {
            Err(source) => errors.push(GraphError::Op { node: node.name.clone(), op: node.op.name(), source }),
            Ok(types) => {
                let found: Vec<_> = node.outputs.iter().map(|&v| g.ty(v).clone()).collect();
                if types != found {
                    let list = |t: &[super::TensorType]| t.iter().map(|t| t.to_string()).collect::<Vec<_>>().join(", ");
                    errors.push(GraphError::Invalid(format!(
                        "node `{}` ({}): its type is {}, but it is declared as {}",
                        node.name,
                        node.op.name(),
                        list(&types),
                        list(&found)
                    )));
                }
            }
        }
    }
    errors
}
