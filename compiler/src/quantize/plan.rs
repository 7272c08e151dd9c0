//! Decides which values of a float network become integers, and which of them share a scale.
//!
//! | operator | quantization |
//! |---|---|
//! | convolution, dense, transposed convolution with constant weights | operands, weights and result are quantized |
//! | sum, difference, product of two activations, matmul, concat, average pooling | operands and result are quantized |
//! | relu or clip after one of these | the result is quantized after it |
//! | function of one element, made of any operators | quantized before and after, floats between: a table |
//! | reshape, transpose, slice, gather, expand, maximum, pad with 0 | data and result share a scale |
//! | softmax inside the network | the result has the scale 1/256; a softmax that is an output stays float |
//! | everything else, and element-wise operators on its result | float |

use crate::graph::op::{Binary, BinaryKind, ReduceKind};
use crate::graph::{DType, Graph, Node, NodeId, Op, ValueId};
use std::collections::BTreeSet;

/// Maximum length of a chain of functions of one element that becomes one table.
const LONGEST_CHAIN: usize = 24;

/// A node's role in the quantization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sums of products with constant weights.
    Product,
    /// Combines or averages activations.
    Join,
    /// Only moves elements.
    Move,
    /// A function of one element.
    Element,
    /// A clip that is part of the operator before it.
    Clamp,
    /// Its results are probabilities.
    Softmax,
    /// Stays float.
    Float,
    /// A constant.
    Constant,
}

/// The quantization of each node and value of a network.
#[derive(Debug, Clone)]
pub struct Plan {
    /// For each node, its role.
    pub roles: Vec<Role>,
    /// For each value, whether it becomes an integer.
    pub quantized: Vec<bool>,
    /// For each value, the value whose scale it uses; itself if it has its own.
    pub like: Vec<ValueId>,
}

/// A value's kind while the plan is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    Constant,
    /// Can be quantized.
    Activation,
    /// A function of one element of the given value, the given number of operators after it.
    Chain(ValueId, usize),
    /// Computed by an operator that stays float.
    Float,
}

impl Plan {
    /// Makes the plan for a network.
    pub fn new(graph: &Graph) -> Plan {
        Plan::keeping(graph, &BTreeSet::new())
    }

    /// Makes the plan with the `kept` nodes in float. Where kept nodes are neighbors, only the result of the last one
    /// is quantized, as any activation.
    pub fn keeping(graph: &Graph, kept: &BTreeSet<NodeId>) -> Plan {
        let users = graph.users();
        let mut plan = Plan {
            roles: vec![Role::Float; graph.nodes().len()],
            quantized: vec![false; graph.value_count()],
            like: (0..graph.value_count()).map(ValueId).collect(),
        };
        let mut kinds = vec![ValueKind::Float; graph.value_count()];
        for (_, v) in graph.inputs() {
            if graph.ty(v).dtype == DType::F32 {
                kinds[v.0] = ValueKind::Activation;
            }
        }
        for (id, node) in graph.nodes() {
            let (role, kind) = match kept.contains(&id) && Plan::can_stay_float(graph, node) {
                true => {
                    let inside = users[node.output().0].iter().all(|user| kept.contains(user));
                    (Role::Float, if inside { ValueKind::Float } else { ValueKind::Activation })
                }
                false => plan.classify(graph, &kinds, users, node),
            };
            plan.roles[id.0] = role;
            for v in &node.outputs {
                kinds[v.0] = kind;
            }
            match role {
                // A product reads integers, whatever computes its operands.
                Role::Product => plan.quantized[node.inputs[0].0] = true,
                Role::Join if matches!(node.op, Op::MatMul(_)) => {
                    node.inputs.iter().for_each(|v| plan.quantized[v.0] = kinds[v.0] != ValueKind::Constant);
                }
                Role::Move => plan.like[node.output().0] = plan.like[node.inputs[0].0],
                _ => {}
            }
        }
        for v in (0..graph.value_count()).map(ValueId) {
            let inside = |r: ValueId| {
                let within = |u: &NodeId| {
                    plan.roles[u.0] == Role::Element
                        && matches!(kinds[graph.node(*u).output().0], ValueKind::Chain(s, _) if s == r)
                };
                !users[v.0].is_empty() && users[v.0].iter().all(within) && !graph.is_output(v)
            };
            let clamped =
                || matches!(users[v.0].as_slice(), &[u] if plan.roles[u.0] == Role::Clamp) && !graph.is_output(v);
            match kinds[v.0] {
                ValueKind::Activation => plan.quantized[v.0] = !clamped(),
                ValueKind::Chain(root, _) => plan.quantized[v.0] = !inside(root),
                ValueKind::Constant => plan.quantized[v.0] = false,
                ValueKind::Float => {}
            }
        }
        plan.drop_idle(graph, users);
        plan
    }

    /// Leaves values float that only float operators read and no integers compute, such as an input and moves of it.
    fn drop_idle(&mut self, graph: &Graph, users: &[Vec<NodeId>]) {
        for v in (0..graph.value_count()).rev().map(ValueId) {
            let made = graph.def_node(v).map(|(n, _)| self.roles[n.0]);
            let from_floats = matches!(made, None | Some(Role::Move | Role::Float | Role::Softmax));
            let used = users[v.0].iter().any(|u| match self.roles[u.0] {
                Role::Float | Role::Constant => false,
                Role::Move | Role::Softmax | Role::Element => self.quantized[graph.node(*u).output().0],
                _ => true,
            });
            if self.quantized[v.0] && from_floats && !used {
                self.quantized[v.0] = false;
            }
        }
    }

    /// True if a node computes floats, so that it can be kept.
    fn can_stay_float(graph: &Graph, node: &Node) -> bool {
        !matches!(node.op, Op::Constant(_)) && graph.ty(node.output()).dtype == DType::F32
    }

    /// The nodes that compute a value together, without an integer between them: the node itself, the operator that a
    /// clip is part of, the chain of functions that becomes one table, and a clip that is part of the node.
    pub fn makers(&self, graph: &Graph, id: NodeId) -> BTreeSet<NodeId> {
        let mut found = BTreeSet::new();
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            if !found.insert(id) {
                continue;
            }
            let node = graph.node(id);
            let made = |v: &ValueId| graph.def_node(*v).map(|(n, _)| n);
            match self.roles[id.0] {
                Role::Clamp | Role::Move => todo.extend(node.inputs.first().and_then(made)),
                Role::Element => {
                    let inner = node.inputs.iter().filter(|v| !self.quantized[v.0]).filter_map(made);
                    todo.extend(inner.filter(|n| self.roles[n.0] == Role::Element));
                }
                _ => todo.extend(graph.users()[node.output().0].iter().filter(|u| self.roles[u.0] == Role::Clamp)),
            }
        }
        found
    }

    fn classify(&self, graph: &Graph, kinds: &[ValueKind], users: &[Vec<NodeId>], node: &Node) -> (Role, ValueKind) {
        let float = (Role::Float, ValueKind::Float);
        if let Op::Constant(_) = node.op {
            return (Role::Constant, ValueKind::Constant);
        }
        let out = node.output();
        if graph.ty(out).dtype != DType::F32 {
            return float;
        }
        let kind = |i: usize| node.inputs.get(i).map_or(ValueKind::Float, |v| kinds[v.0]);
        let is_weight = |i: usize| node.inputs.get(i).is_none_or(|v| graph.constant(*v).is_some());
        let any_float = node.inputs.iter().any(|v| kinds[v.0] == ValueKind::Float);
        match &node.op {
            Op::Conv2d(_) | Op::Dense(_) | Op::ConvTranspose2d(_) if is_weight(1) && is_weight(2) && !is_weight(0) => {
                (Role::Product, ValueKind::Activation)
            }
            Op::MatMul(_) => (Role::Join, ValueKind::Activation),
            _ if any_float => float,
            Op::Clip(_) | Op::Relu(_) if self.clamps(graph, users, node) => (Role::Clamp, ValueKind::Activation),
            Op::Unary(_) | Op::Clip(_) | Op::Relu(_) => self.element(graph, kinds, node),
            Op::Add(_) => self.two(graph, kinds, node, true),
            Op::Binary(Binary { kind }) if !kind.compares() => {
                self.two(graph, kinds, node, matches!(kind, BinaryKind::Sub | BinaryKind::Mul))
            }
            Op::AvgPool2d(_) | Op::GlobalAvgPool(_) | Op::Concat(_) => (Role::Join, ValueKind::Activation),
            Op::Softmax(_) if graph.is_output(out) => float,
            Op::Softmax(_) => (Role::Softmax, ValueKind::Activation),
            Op::Reshape(_) | Op::Transpose(_) | Op::Slice(_) | Op::Expand(_) | Op::MaxPool2d(_) => {
                (Role::Move, ValueKind::Activation)
            }
            Op::Gather(_) | Op::GatherElements(_) if kind(1) == ValueKind::Constant => {
                (Role::Move, ValueKind::Activation)
            }
            Op::Reduce(r) if matches!(r.kind, ReduceKind::Max | ReduceKind::Min) => (Role::Move, ValueKind::Activation),
            Op::Pad(p) if p.value == 0.0 => (Role::Move, ValueKind::Activation),
            _ => float,
        }
    }

    /// True if the node is the only user of a value that integers compute.
    fn clamps(&self, graph: &Graph, users: &[Vec<NodeId>], node: &Node) -> bool {
        let v = node.inputs[0];
        let made = graph.def_node(v).map(|(n, _)| self.roles[n.0]);
        matches!(made, Some(Role::Product | Role::Join)) && users[v.0].len() == 1 && !graph.is_output(v)
    }

    /// Role of a function of one element of its operand, or of the value that its operand is a function of.
    fn element(&self, graph: &Graph, kinds: &[ValueKind], node: &Node) -> (Role, ValueKind) {
        let roots: Vec<(ValueId, usize)> = node.inputs.iter().filter_map(|&v| chain(kinds, v)).collect();
        let Some(&(root, _)) = roots.first() else { return (Role::Float, ValueKind::Float) };
        let length = 1 + roots.iter().map(|r| r.1).max().unwrap_or(0);
        let whole = graph.ty(root).dims == graph.ty(node.output()).dims;
        if whole && length <= LONGEST_CHAIN && roots.iter().all(|r| r.0 == root) {
            return (Role::Element, ValueKind::Chain(root, length));
        }
        // A chain that is too long starts again at its operand.
        match (node.inputs.as_slice(), whole) {
            (&[v], true) => (Role::Element, ValueKind::Chain(v, 1)),
            _ => (Role::Float, ValueKind::Float),
        }
    }

    fn two(&self, graph: &Graph, kinds: &[ValueKind], node: &Node, joins: bool) -> (Role, ValueKind) {
        let scalar = |v: &ValueId| graph.constant(*v).is_none_or(|c| c.len() == 1);
        let same = {
            let mut roots = node.inputs.iter().filter_map(|&v| chain(kinds, v)).map(|r| r.0);
            let first = roots.next();
            roots.all(|r| Some(r) == first)
        };
        if node.inputs.iter().all(scalar) && same {
            let (role, kind) = self.element(graph, kinds, node);
            if role == Role::Element {
                return (role, kind);
            }
        }
        if joins { (Role::Join, ValueKind::Activation) } else { (Role::Float, ValueKind::Float) }
    }
}

/// The value that `v` is an element-wise function of, at least itself, and the length of the chain; `None` for a
/// constant.
fn chain(kinds: &[ValueKind], v: ValueId) -> Option<(ValueId, usize)> {
    match kinds[v.0] {
        ValueKind::Chain(root, length) => Some((root, length)),
        ValueKind::Activation | ValueKind::Float => Some((v, 0)),
        ValueKind::Constant => None,
    }
}
