//! A change to the graph, as a rewrite returns it.

use crate::graph::op::Constant;
use crate::graph::{NodeId, Op, Tensor, ValueId};
use std::sync::Arc;

/// A value in a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ref {
    /// A value of the graph.
    Old(ValueId),
    /// The result of the patch's node at this index.
    New(usize),
}

impl From<ValueId> for Ref {
    fn from(v: ValueId) -> Ref {
        Ref::Old(v)
    }
}

#[derive(Debug, Clone)]
pub(super) struct NewNode {
    pub name: String,
    pub op: Op,
    pub inputs: Vec<Ref>,
}

/// New nodes, and values of the graph that they replace. Nodes that become unused are removed.
#[derive(Debug, Clone)]
pub struct Patch {
    what: &'static str,
    pub(super) nodes: Vec<NewNode>,
    pub(super) replace: Vec<(ValueId, Ref)>,
    pub(super) remove: Vec<NodeId>,
}

impl Patch {
    /// A patch that changes nothing yet; `what` names it in the log.
    pub fn new(what: &'static str) -> Patch {
        Patch { what, nodes: Vec::new(), replace: Vec::new(), remove: Vec::new() }
    }

    /// Its name in the log.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// Adds a node whose operator defines one value.
    pub fn node(&mut self, name: &str, op: impl Into<Op>, inputs: &[Ref]) -> Ref {
        self.nodes.push(NewNode { name: name.into(), op: op.into(), inputs: inputs.to_vec() });
        Ref::New(self.nodes.len() - 1)
    }

    /// Adds a constant.
    pub fn constant(&mut self, name: &str, value: impl Into<Arc<Tensor>>) -> Ref {
        self.node(name, Constant { value: value.into() }, &[])
    }

    /// Replaces a value of the graph with one of the same type.
    pub fn replace(mut self, old: ValueId, new: impl Into<Ref>) -> Patch {
        self.replace.push((old, new.into()));
        self
    }

    /// Removes an unused node.
    pub fn remove(mut self, node: NodeId) -> Patch {
        self.remove.push(node);
        self
    }
}
