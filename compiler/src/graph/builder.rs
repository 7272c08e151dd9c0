//! Builds a graph node by node and infers types on the way.

use super::op::Constant;
use super::{Def, Graph, GraphError, Node, NodeId, Op, Tensor, TensorType, Value, ValueId, verify};
use std::collections::HashMap;
use std::sync::Arc;

/// Builds a [`Graph`]. Its ids are valid only inside the builder: [`GraphBuilder::finish`] moves the inputs to the
/// front.
#[derive(Debug, Clone)]
pub struct GraphBuilder {
    name: String,
    inputs: Vec<(String, ValueId)>,
    types: Vec<TensorType>,
    defs: Vec<Option<usize>>,
    nodes: Vec<Node>,
    outputs: Vec<(String, ValueId)>,
    /// Used names, each with the first number to try as its suffix.
    names: HashMap<String, usize>,
}

/// What the values of a builder are in its graph.
pub(crate) struct Places(Vec<usize>);

impl Places {
    /// The value in the graph.
    pub fn of(&self, v: ValueId) -> ValueId {
        ValueId(self.0.get(v.0).copied().unwrap_or(usize::MAX))
    }
}

impl GraphBuilder {
    /// A graph without nodes.
    pub fn new(name: &str) -> GraphBuilder {
        let (inputs, types, defs, nodes, outputs) = Default::default();
        GraphBuilder { name: name.into(), inputs, types, defs, nodes, outputs, names: HashMap::new() }
    }

    /// Adds an input of the graph.
    pub fn input(&mut self, name: &str, ty: TensorType) -> ValueId {
        let v = ValueId(self.types.len());
        self.types.push(ty);
        self.defs.push(None);
        self.inputs.push((name.into(), v));
        v
    }

    /// Adds an input under this name, or under this name with a number if it is taken.
    pub(crate) fn free_input(&mut self, name: &str, ty: TensorType) -> ValueId {
        let mut names = std::iter::once(name.to_string()).chain((1..).map(|k| format!("{name}.{k}")));
        let free = names.find(|name| self.inputs.iter().all(|(other, _)| other != name));
        self.input(&free.unwrap_or_default(), ty)
    }

    /// The inputs, in order.
    pub(crate) fn input_values(&self) -> Vec<ValueId> {
        self.inputs.iter().map(|(_, v)| *v).collect()
    }

    /// Adds a constant.
    pub fn constant(&mut self, name: &str, value: impl Into<Arc<Tensor>>) -> ValueId {
        let value = value.into();
        let ty = value.ty();
        self.push(name, Op::Constant(Constant { value }), &[], vec![ty])[0]
    }

    /// Adds a node whose operator defines one value.
    ///
    /// If the name is taken, the node gets a numbered one, such as `conv.1`.
    ///
    /// # Errors
    /// If the operands do not fit the operator.
    pub fn node(&mut self, name: &str, op: impl Into<Op>, inputs: &[ValueId]) -> Result<ValueId, GraphError> {
        Ok(self.node_outputs(name, op.into(), inputs)?[0])
    }

    /// Adds a node and returns all the values that it defines.
    ///
    /// # Errors
    /// If the operands do not fit the operator.
    pub fn node_outputs(&mut self, name: &str, op: Op, inputs: &[ValueId]) -> Result<Vec<ValueId>, GraphError> {
        let mut types = Vec::with_capacity(inputs.len());
        for v in inputs {
            let ty = self.types.get(v.0);
            types.push(ty.ok_or_else(|| GraphError::Invalid(format!("node `{name}` reads a value of another graph")))?);
        }
        let err = |source| GraphError::Op { node: name.into(), op: op.name(), source };
        let out = op.infer(&types).map_err(err)?;
        Ok(self.push(name, op, inputs, out))
    }

    /// Type of a value.
    pub fn ty(&self, v: ValueId) -> &TensorType {
        &self.types[v.0]
    }

    /// The name of an input, or `None` for a value of a node.
    pub(crate) fn input_name(&self, v: ValueId) -> Option<&str> {
        self.inputs.iter().find(|(_, input)| *input == v).map(|(name, _)| name.as_str())
    }

    /// The number of dimensions of the input with this name.
    pub(crate) fn input_rank(&self, name: &str) -> Option<usize> {
        self.inputs.iter().find(|(own, _)| own == name).map(|(_, v)| self.ty(*v).rank())
    }

    /// The node that defines a value, or `None` for an input.
    pub fn def(&self, v: ValueId) -> Option<&Node> {
        self.defs.get(v.0).copied().flatten().map(|n| &self.nodes[n])
    }

    /// The constant that defines a value, or `None`.
    pub fn constant_of(&self, v: ValueId) -> Option<&Arc<Tensor>> {
        match &self.def(v)?.op {
            Op::Constant(c) => Some(&c.value),
            _ => None,
        }
    }

    /// The operator of the last node.
    pub(crate) fn last_op(&mut self) -> Option<&mut Op> {
        self.nodes.last_mut().map(|node| &mut node.op)
    }

    /// Puts the inputs into this order; those that are not in it come last.
    pub(crate) fn order_inputs(&mut self, order: &[ValueId]) {
        self.inputs.sort_by_key(|(_, v)| order.iter().position(|other| other == v).unwrap_or(order.len()));
    }

    /// Makes a value an output of the graph, under this name.
    pub fn output(&mut self, name: &str, v: ValueId) {
        self.outputs.push((name.into(), v));
    }

    /// Returns the graph after verifying it.
    ///
    /// # Errors
    /// Everything that [`verify()`] finds.
    pub fn finish(self) -> Result<Graph, GraphError> {
        let g = self.finish_unverified();
        GraphError::join(verify(&g)).map_or(Ok(g), Err)
    }

    /// Like [`GraphBuilder::finish`], with what became of the builder's values.
    ///
    /// # Errors
    /// As [`GraphBuilder::finish`].
    pub(crate) fn finish_numbered(self) -> Result<(Graph, Places), GraphError> {
        let (g, places) = self.numbered();
        GraphError::join(verify(&g)).map_or(Ok((g, places)), Err)
    }

    /// Returns the graph unverified: inputs first, values numbered in the order of their nodes.
    pub(crate) fn finish_unverified(self) -> Graph {
        self.numbered().0
    }

    fn numbered(self) -> (Graph, Places) {
        let mut map = vec![usize::MAX; self.types.len()];
        let mut values = Vec::with_capacity(self.types.len());
        for (i, (_, v)) in self.inputs.iter().enumerate() {
            map[v.0] = values.len();
            values.push(Value { ty: self.types[v.0].clone(), def: Def::Input(i) });
        }
        for (n, node) in self.nodes.iter().enumerate() {
            for (i, v) in node.outputs.iter().enumerate() {
                map[v.0] = values.len();
                values.push(Value { ty: self.types[v.0].clone(), def: Def::Node(NodeId(n), i) });
            }
        }
        let place = |v: &ValueId| ValueId(map.get(v.0).copied().unwrap_or(usize::MAX));
        let mut nodes = self.nodes;
        for node in &mut nodes {
            node.inputs = node.inputs.iter().map(place).collect();
            node.outputs = node.outputs.iter().map(place).collect();
        }
        let outputs = self.outputs.iter().map(|(n, v)| (n.clone(), place(v))).collect();
        let inputs = self.inputs.into_iter().map(|(n, _)| n).collect();
        (Graph::of_parts(self.name, inputs, values, nodes, outputs), Places(map))
    }

    /// Adds a node with the given output types, unchecked.
    pub(crate) fn push(&mut self, name: &str, op: Op, inputs: &[ValueId], types: Vec<TensorType>) -> Vec<ValueId> {
        let outputs: Vec<_> = (0..types.len()).map(|i| ValueId(self.types.len() + i)).collect();
        self.types.extend(types);
        self.defs.resize(self.types.len(), Some(self.nodes.len()));
        let mut unique = if name.is_empty() { op.name().to_owned() } else { name.to_owned() };
        if let Some(&first) = self.names.get(&unique) {
            let name = |k: &usize| format!("{unique}.{k}");
            let k = (first..).find(|k| !self.names.contains_key(&name(k))).unwrap_or(first);
            let next = name(&k);
            self.names.insert(unique, k + 1);
            unique = next;
        }
        self.names.insert(unique.clone(), 1);
        self.nodes.push(Node { name: unique, op, inputs: inputs.to_vec(), outputs: outputs.clone() });
        outputs
    }
}
