//! The graph: typed SSA over tensors. Every front end produces it and every back end consumes it.
//!
//! A [`Graph`] has inputs, nodes in topological order and named outputs. A node applies one [`Op`] to values and
//! defines one or more values; constants are nodes. Each operator has a file in [`op`] with its attributes, type rule
//! and reference evaluation. [`text`] prints a graph and reads it back, [`verify()`] reports everything that is wrong
//! with one, [`eval()`] computes it in plain Rust. This module knows no file format and no back end.

mod builder;
mod cut;
mod dtype;
mod error;
pub mod eval;
pub mod network;
pub mod op;
mod tensor;
pub mod text;
mod verify;

pub use builder::GraphBuilder;
pub(crate) use builder::Places;
pub use cut::Cut;
pub use dtype::{DType, Dim, MAX_RANK, TensorType};
pub use error::{GraphError, OpError};
pub use eval::{eval, eval_all};
pub use op::Op;
pub use tensor::{Element, Tensor, TensorData};
pub use verify::verify;

use std::sync::Arc;

/// Row-major strides of a shape, in elements.
pub(crate) fn strides_of(shape: &[usize]) -> Vec<usize> {
    tensor::strides(shape)
}

/// Index of a node in its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub usize);

/// Index of a value in its graph: inputs first, then the values that the nodes define, in the nodes' order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub usize);

/// What defines a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Def {
    /// The graph input at this index.
    Input(usize),
    /// A node, and the index of the value among the node's outputs.
    Node(NodeId, usize),
}

/// A value's type and origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// Element type and shape.
    pub ty: TensorType,
    /// What defines it.
    pub def: Def,
}

/// One application of an operator.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Name, unique in the graph; front ends take it from the model file.
    pub name: String,
    /// The operator with its attributes.
    pub op: Op,
    /// Operands, in the operator's order.
    pub inputs: Vec<ValueId>,
    /// The values that it defines.
    pub outputs: Vec<ValueId>,
}

impl Node {
    /// The node's first output, which is the only one for most operators.
    pub fn output(&self) -> ValueId {
        self.outputs[0]
    }
}

/// A network: inputs, nodes in topological order, outputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    pub(crate) name: String,
    pub(crate) input_names: Vec<String>,
    pub(crate) values: Vec<Value>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) outputs: Vec<(String, ValueId)>,
    /// For each value, the nodes that read it.
    pub(crate) users: Vec<Vec<NodeId>>,
    /// For each value, whether it is a graph output.
    pub(crate) leaves: Vec<bool>,
}

impl Graph {
    /// Builds a graph from its parts, unverified.
    pub(crate) fn of_parts(
        name: String,
        input_names: Vec<String>,
        values: Vec<Value>,
        nodes: Vec<Node>,
        outputs: Vec<(String, ValueId)>,
    ) -> Graph {
        // Skips operands and outputs that are not values; the verifier reports them.
        let mut users = vec![Vec::new(); values.len()];
        for (id, node) in nodes.iter().enumerate() {
            for v in &node.inputs {
                if let Some(users) = users.get_mut(v.0) {
                    users.push(NodeId(id));
                }
            }
        }
        let mut leaves = vec![false; values.len()];
        for (_, v) in &outputs {
            if let Some(leaves) = leaves.get_mut(v.0) {
                *leaves = true;
            }
        }
        Graph { name, input_names, values, nodes, outputs, users, leaves }
    }

    /// The network's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The graph's inputs, in order, with their names.
    pub fn inputs(&self) -> impl ExactSizeIterator<Item = (&str, ValueId)> {
        self.input_names.iter().enumerate().map(|(i, n)| (n.as_str(), ValueId(i)))
    }

    /// The graph's outputs, in order, with their names.
    pub fn outputs(&self) -> &[(String, ValueId)] {
        &self.outputs
    }

    /// All nodes in topological order.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node)> + ExactSizeIterator {
        self.nodes.iter().enumerate().map(|(i, n)| (NodeId(i), n))
    }

    /// The node with this id.
    ///
    /// # Panics
    /// If the id is out of range, like the other accessors that take an id.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// Number of values; ids are `0..value_count()`.
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// Type and origin of a value.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0]
    }

    /// Type of a value.
    pub fn ty(&self, id: ValueId) -> &TensorType {
        &self.values[id.0].ty
    }

    /// The node that defines a value, or `None` for an input.
    pub fn def_node(&self, id: ValueId) -> Option<(NodeId, &Node)> {
        match self.values[id.0].def {
            Def::Input(_) => None,
            Def::Node(n, _) => Some((n, &self.nodes[n.0])),
        }
    }

    /// The constant that defines a value, or `None`.
    pub fn constant(&self, id: ValueId) -> Option<&Arc<Tensor>> {
        match &self.def_node(id)?.1.op {
            Op::Constant(c) => Some(&c.value),
            _ => None,
        }
    }

    /// For each value, the nodes that read it, one entry per operand.
    pub fn users(&self) -> &[Vec<NodeId>] {
        &self.users
    }

    /// True if the value is a graph output.
    pub fn is_output(&self, id: ValueId) -> bool {
        self.leaves.get(id.0).is_some_and(|leaves| *leaves)
    }

    /// A value's name in messages: the name of the input or of the defining node.
    pub fn value_name(&self, id: ValueId) -> &str {
        match self.values[id.0].def {
            Def::Input(i) => &self.input_names[i],
            Def::Node(n, _) => &self.nodes[n.0].name,
        }
    }

    /// The same graph with other regions: `change` gets each region, and returns what takes its place.
    ///
    /// # Errors
    /// The first of `change`.
    pub(crate) fn with_regions<E>(
        mut self,
        mut change: impl FnMut(&Arc<Graph>) -> Result<Graph, E>,
    ) -> Result<Graph, E> {
        for node in &mut self.nodes {
            let regions = node.op.regions();
            if regions.is_empty() {
                continue;
            }
            let changed = regions.into_iter().map(|region| Ok(Arc::new(change(region)?)));
            let changed = changed.collect::<Result<Vec<_>, E>>()?;
            node.op = node.op.with_regions(changed).unwrap_or_else(|| node.op.clone());
        }
        Ok(self)
    }

    /// The same graph with symbolic dimensions replaced by sizes.
    ///
    /// # Errors
    /// If a node's type cannot be inferred with the new sizes.
    pub fn bind(&self, sizes: &std::collections::BTreeMap<String, usize>) -> Result<Graph, GraphError> {
        let mut b = GraphBuilder::new(&self.name);
        let mut map = Vec::with_capacity(self.values.len());
        for (name, v) in self.inputs() {
            map.push(b.input(name, self.ty(v).bind(sizes)));
        }
        for node in &self.nodes {
            let inputs: Vec<_> = node.inputs.iter().map(|v| map[v.0]).collect();
            map.extend(b.node_outputs(&node.name, node.op.bind(sizes), &inputs)?);
        }
        for (name, v) in &self.outputs {
            b.output(name, map[v.0]);
        }
        b.finish()
    }
}

#[cfg(test)]
mod tests;
