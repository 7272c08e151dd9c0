//! Views: tensors that share the elements of others, so that a change of one changes the others.
//!
//! When an operator changes a view in place, the tensor that it is a view of gets the new elements where the view has them.
//! Other views of it are made anew when they are next read.

use super::context::{Context, Named, Value};
use super::node::NodeContext;
use super::ops;
use super::schema::{Argument, Node};
use crate::frontend::reason::Reason;
use crate::graph::op::{Gather, Select};
use crate::graph::{Tensor, ValueId};

/// A tensor that is a view of another.
#[derive(Debug, Clone)]
pub(super) struct View {
    /// Name of the tensor that it is a view of.
    of: String,
    /// Index of the node that makes it; `None` if it is the tensor itself under another name.
    node: Option<usize>,
    /// Its place among the node's results.
    place: usize,
    /// How often the tensor had been changed when it was made.
    made_at: usize,
}

/// Names of a node's results.
fn results(node: &Node) -> Vec<&str> {
    let mut names = Vec::new();
    for output in &node.outputs {
        match output {
            Argument::AsTensor(of) => names.push(of.name.as_str()),
            Argument::AsTensors(list) => names.extend(list.iter().map(|of| of.name.as_str())),
            _ => {}
        }
    }
    names
}

impl<'a> Context<'a> {
    /// Notes that a node's results are views of its first argument.
    pub fn note_views(&mut self, node: &'a Node) {
        let Some(Argument::AsTensor(of)) = node.inputs.first().map(|input| &input.arg) else { return };
        let copies = ["reshape", "contiguous", "flatten"];
        let may_copy = copies.iter().any(|name| ops::short_name(&node.target).starts_with(&format!("aten.{name}.")));
        let meta = self.graph.tensor_values.get(&of.name);
        if may_copy && !meta.is_some_and(|meta| meta.is_contiguous(&self.symbols)) {
            return;
        }
        let at = self.graph.nodes.iter().position(|other| std::ptr::eq(other, node));
        let made_at = self.changes.get(&of.name).copied().unwrap_or(0);
        for (place, name) in results(node).into_iter().enumerate() {
            self.views.insert(name.into(), View { of: of.name.clone(), node: at, place, made_at });
        }
    }

    /// Notes that a node's result is the tensor of this name.
    pub fn note_alias(&mut self, node: &Node, of: &str) {
        let made_at = self.changes.get(of).copied().unwrap_or(0);
        for name in results(node).into_iter().filter(|name| *name != of) {
            self.views.insert(name.into(), View { of: of.into(), node: None, place: 0, made_at });
        }
    }

    /// Notes that a tensor has new elements: what it is a view of has them too.
    pub fn changed(&mut self, name: &str, v: ValueId) -> Result<(), Reason> {
        let (mut name, mut v) = (name.to_owned(), v);
        while let Some(view) = self.views.get(&name).cloned() {
            let Value::Tensor(whole) = self.value(&view.of)? else { return Err("what it changes is no tensor".into()) };
            let written = match view.node {
                Some(node) => self.written(&view, node, whole, v)?,
                None => v,
            };
            self.set(&name, v);
            (name, v) = (view.of, written);
        }
        self.set(&name, v);
        Ok(())
    }

    fn set(&mut self, name: &str, v: ValueId) {
        self.names.insert(name.into(), Named::Value(v.into()));
        *self.changes.entry(name.into()).or_default() += 1;
        let Some(view) = self.views.get(name) else { return };
        // Its parent is changed next, and then agrees with it.
        let next = self.changes.get(&view.of).copied().unwrap_or(0) + 1;
        if let Some(view) = self.views.get_mut(name) {
            view.made_at = next;
        }
    }

    /// A view of a tensor that was changed since it was made, made anew.
    pub fn refreshed(&mut self, name: &str) -> Result<Option<Value>, Reason> {
        let Some(view) = self.views.get(name).cloned() else { return Ok(None) };
        // The parent can be such a view itself.
        let parent = self.value(&view.of)?;
        let changes = self.changes.get(&view.of).copied().unwrap_or(0);
        if view.made_at == changes {
            return Ok(None);
        }
        let value = match view.node {
            Some(node) => self.viewed(&view, node, parent)?,
            None => parent,
        };
        self.names.insert(name.into(), Named::Value(value.clone()));
        *self.changes.entry(name.into()).or_default() += 1;
        if let Some(view) = self.views.get_mut(name) {
            view.made_at = changes;
        }
        Ok(Some(value))
    }

    /// The view of another tensor of the same shape.
    fn viewed(&mut self, view: &View, node: usize, of: Value) -> Result<Value, Reason> {
        let node = &self.graph.nodes[node];
        let found = ops::find(&node.target).ok_or("it is not supported")?;
        let kept = self.names.insert(view.of.clone(), Named::Value(of));
        let parent = self.views.remove(&view.of);
        let result = (found.operator.import)(&mut NodeContext::new(self, node));
        if let Some(kept) = kept {
            self.names.insert(view.of.clone(), kept);
        }
        if let Some(parent) = parent {
            self.views.insert(view.of.clone(), parent);
        }
        match result? {
            Value::List(mut list) if view.place < list.len() => Ok(list.swap_remove(view.place)),
            one => Ok(one),
        }
    }

    /// A tensor with the elements of a view replaced.
    fn written(&mut self, view: &View, node: usize, whole: ValueId, part: ValueId) -> Result<ValueId, Reason> {
        let shape = self.net.shape(whole)?;
        let count: usize = shape.iter().product();
        // The view of the elements' places tells where each of its elements is.
        let places = self.net.table("places", &shape, |i| i as i64)?;
        let Value::Tensor(of) = self.viewed(view, node, places.into())? else {
            return Err("its view is no tensor".into());
        };
        let places = self.net.constant_of(of).cloned().ok_or("it changes a view that is too large to follow")?;
        let places: Vec<usize> = places.ints().into_iter().filter_map(|i| usize::try_from(i).ok()).collect();
        if places.iter().copied().eq(0..count) {
            return self.net.reshape("whole", part, &shape);
        }
        let (mut from, mut is_there) = (vec![0i64; count], vec![false; count]);
        for (i, place) in places.iter().enumerate() {
            if std::mem::replace(&mut is_there[*place], true) {
                return Err("it changes a view whose elements share their place".into());
            }
            from[*place] = i as i64;
        }
        let part = self.net.reshape("elements", part, &[places.len()])?;
        let all = is_there.iter().all(|there| *there);
        let index = self.net.constant("index", Tensor::vector(from))?;
        let index = self.net.reshape("index", index, &shape)?;
        let v = self.net.node("written", Gather { axis: 0 }, &[part, index])?;
        if all {
            return Ok(v);
        }
        let mask = self.net.table("there", &shape, |i| is_there[i])?;
        self.net.node("changed", Select {}, &[mask, v, whole])
    }
}
