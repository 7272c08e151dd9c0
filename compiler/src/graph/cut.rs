//! Cuts a part of a graph out into a graph of its own.

use std::collections::{HashMap, HashSet};

use super::{Graph, GraphBuilder, GraphError, NodeId, Op, ValueId};

/// A part of a graph, as a graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// The nodes, with the constants that they read.
    pub graph: Graph,
    /// For each of its inputs, the value in the whole graph.
    pub inputs: Vec<ValueId>,
    /// For each of its outputs, the value in the whole graph: one that other nodes read or that is a graph output.
    pub outputs: Vec<ValueId>,
}

impl Graph {
    /// Cuts out nodes, given in topological order; they keep their names.
    ///
    /// # Errors
    /// If the nodes do not form a valid graph, for example because they are out of order.
    pub fn cut(&self, nodes: &[NodeId]) -> Result<Cut, GraphError> {
        let inside: HashSet<NodeId> = nodes.iter().copied().collect();
        let constants = nodes.iter().flat_map(|id| &self.node(*id).inputs).filter_map(|v| self.def_node(*v));
        let mut list: Vec<NodeId> = Vec::new();
        let mut known = HashSet::new();
        for (id, node) in constants {
            if matches!(node.op, Op::Constant(_)) && !inside.contains(&id) && known.insert(id) {
                list.push(id);
            }
        }
        list.extend(nodes);
        let made: HashSet<ValueId> = list.iter().flat_map(|id| self.node(*id).outputs.iter().copied()).collect();

        let mut b = GraphBuilder::new(self.name());
        let mut place: HashMap<ValueId, ValueId> = HashMap::new();
        let mut inputs = Vec::new();
        for v in nodes.iter().flat_map(|id| &self.node(*id).inputs) {
            if !made.contains(v) && !place.contains_key(v) {
                place.insert(*v, b.free_input(self.value_name(*v), self.ty(*v).clone()));
                inputs.push(*v);
            }
        }
        for id in &list {
            let node = self.node(*id);
            let of = |v: &ValueId| {
                let unknown =
                    || GraphError::Invalid(format!("node `{}` comes before a node whose value it reads", node.name));
                place.get(v).copied().ok_or_else(unknown)
            };
            let operands = node.inputs.iter().map(of).collect::<Result<Vec<_>, _>>()?;
            let made = b.node_outputs(&node.name, node.op.clone(), &operands)?;
            place.extend(node.outputs.iter().copied().zip(made));
        }
        let mut outputs = Vec::new();
        for v in nodes.iter().flat_map(|id| &self.node(*id).outputs) {
            if self.is_output(*v) || self.users()[v.0].iter().any(|user| !inside.contains(user)) {
                b.output(self.value_name(*v), place[v]);
                outputs.push(*v);
            }
        }
        Ok(Cut { graph: b.finish()?, inputs, outputs })
    }
}
