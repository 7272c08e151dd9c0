//! What a rewrite changes.

use super::engine::PassError;
use crate::graph::op::Constant;
use crate::graph::{Graph, GraphBuilder, GraphError, NodeId, Op, Tensor, ValueId};
use std::collections::HashMap;
use std::sync::Arc;

/// A value that a patch speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ref {
    /// One of the graph.
    Old(ValueId),
    /// The result of the patch's node of this index.
    New(usize),
}

impl From<ValueId> for Ref {
    fn from(v: ValueId) -> Ref {
        Ref::Old(v)
    }
}

#[derive(Debug, Clone)]
struct NewNode {
    name: String,
    op: Op,
    inputs: Vec<Ref>,
}

/// New nodes, and values of the graph that others take the place of. Nodes that this leaves without use are dropped.
#[derive(Debug, Clone)]
pub struct Patch {
    what: &'static str,
    nodes: Vec<NewNode>,
    replace: Vec<(ValueId, Ref)>,
    remove: Vec<NodeId>,
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

    /// Values of the graph that others take the place of.
    pub(super) fn replaced(&self) -> Vec<ValueId> {
        self.replace.iter().map(|(old, _)| *old).collect()
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

    /// Puts a value in the place of one of the graph, which must be of the same type.
    pub fn replace(mut self, old: ValueId, new: impl Into<Ref>) -> Patch {
        self.replace.push((old, new.into()));
        self
    }

    /// Drops a node that nothing uses.
    pub fn remove(mut self, node: NodeId) -> Patch {
        self.remove.push(node);
        self
    }

    /// The graph after the patch, and where it has each value of the one before, or what takes its place. New nodes stand
    /// where the node `at` did, so they may take what that one could take.
    pub(super) fn apply(&self, g: &Graph, at: NodeId) -> Result<(Graph, Vec<Option<ValueId>>), PassError> {
        let replaced: HashMap<ValueId, Ref> = self.replace.iter().copied().collect();
        let dead = self.dead(g, &replaced);
        let mut b = GraphBuilder::new(g.name());
        let mut old = vec![None; g.value_count()];
        for (name, v) in g.inputs() {
            old[v.0] = Some(b.input(name, g.ty(v).clone()));
        }
        let mut new: Vec<ValueId> = Vec::with_capacity(self.nodes.len());
        let lost = |n: &str| GraphError::Invalid(format!("node `{n}` takes a value that is not there yet"));
        for (id, node) in g.nodes() {
            if id == at {
                for n in &self.nodes {
                    let place = |r: &Ref| match r {
                        Ref::Old(v) => old[v.0],
                        Ref::New(i) => new.get(*i).copied(),
                    };
                    let inputs = n.inputs.iter().map(|r| place(r).ok_or_else(|| lost(&n.name)));
                    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
                    new.push(b.node(&n.name, n.op.clone(), &inputs)?);
                }
                self.check_types(g, &b, &new)?;
            }
            if dead[id.0] {
                continue;
            }
            let place = |v: &ValueId| match replaced.get(v) {
                Some(Ref::Old(v)) => old[v.0],
                Some(Ref::New(i)) => new.get(*i).copied(),
                None => old[v.0],
            };
            let inputs = node.inputs.iter().map(|v| place(v).ok_or_else(|| lost(&node.name)));
            let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
            let outputs = b.node_outputs(&node.name, node.op.clone(), &inputs)?;
            for (v, o) in node.outputs.iter().zip(outputs) {
                old[v.0] = Some(o);
            }
        }
        let place = |v: ValueId| match replaced.get(&v) {
            Some(Ref::Old(v)) => old[v.0],
            Some(Ref::New(i)) => new.get(*i).copied(),
            None => old[v.0],
        };
        for (name, v) in g.outputs() {
            b.output(name, place(*v).ok_or_else(|| lost(name))?);
        }
        // A graph's values are numbered as its builder's are: inputs first, then in the order of the nodes.
        let places = (0..g.value_count()).map(|v| place(ValueId(v))).collect();
        Ok((b.finish()?, places))
    }

    /// Fails where a value is replaced by one of another type.
    fn check_types(&self, g: &Graph, b: &GraphBuilder, new: &[ValueId]) -> Result<(), PassError> {
        for (v, r) in &self.replace {
            let ty = match r {
                Ref::Old(n) => Some(g.ty(*n)),
                Ref::New(i) => new.get(*i).map(|&n| b.ty(n)),
            };
            if ty != Some(g.ty(*v)) {
                let ty = ty.map_or("nothing".into(), ToString::to_string);
                let name = g.value_name(*v);
                return Err(GraphError::Invalid(format!("`{name}` of type {} is replaced by {ty}", g.ty(*v))).into());
            }
        }
        Ok(())
    }

    /// Nodes that the patch leaves without use, though they had one, or that it removes.
    fn dead(&self, g: &Graph, replaced: &HashMap<ValueId, Ref>) -> Vec<bool> {
        let mut uses = vec![0usize; g.value_count()];
        let mut used = |v: &ValueId| match replaced.get(v) {
            Some(Ref::Old(v)) => uses[v.0] += 1,
            Some(Ref::New(_)) => {}
            None => uses[v.0] += 1,
        };
        g.nodes().for_each(|(_, n)| n.inputs.iter().for_each(&mut used));
        g.outputs().iter().for_each(|(_, v)| used(v));
        for r in self.nodes.iter().flat_map(|n| &n.inputs) {
            if let Ref::Old(v) = r {
                uses[v.0] += 1;
            }
        }
        let mut had = vec![false; g.value_count()];
        g.nodes().for_each(|(_, n)| n.inputs.iter().for_each(|v| had[v.0] = true));
        g.outputs().iter().for_each(|(_, v)| had[v.0] = true);
        let mut dead = vec![false; g.nodes().len()];
        for (id, node) in g.nodes().rev() {
            let unused = node.outputs.iter().all(|v| uses[v.0] == 0);
            let before = node.outputs.iter().any(|v| had[v.0]);
            if unused && (before || self.remove.contains(&id)) {
                dead[id.0] = true;
                for v in &node.inputs {
                    let v = match replaced.get(v) {
                        Some(Ref::Old(v)) => v,
                        Some(Ref::New(_)) => continue,
                        None => v,
                    };
                    uses[v.0] -= 1;
                }
            }
        }
        dead
    }
}
