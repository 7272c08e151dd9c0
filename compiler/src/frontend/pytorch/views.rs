//! Views: tensors that share the elements of others, so that a change of one changes the others.
//!
//! When an operator changes a view in place, the tensor that it is a view of gets the new elements where the view has them.
//! Other views of it are made anew when they are next read.

use super::context::{Context, Named, Value};
use super::node::NodeContext;
use super::ops;
use super::schema::{Argument, NamedArgument, Node};
use crate::frontend::reason::Reason;
use crate::graph::op::{Gather, Select};
use crate::graph::{Tensor, ValueId};

/// A tensor that is a view of another.
#[derive(Debug, Clone)]
pub(super) struct View<'a> {
    /// Name of the tensor that it is a view of.
    of: String,
    /// The name that the node has for that tensor.
    argument: String,
    /// The node that makes it; `None` if it is the tensor itself under another name.
    node: Option<&'a Node>,
    /// Its place among the node's results.
    place: usize,
    /// How often the tensor had been changed when it was made.
    made_at: usize,
}

/// How many views are of each other at most.
const DEPTH: usize = 256;

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
        let copies = ["reshape", "reshape_as", "contiguous", "flatten", "ravel"];
        let may_copy = copies.iter().any(|name| ops::short_name(&node.target).starts_with(&format!("aten.{name}.")));
        // A conversion, and what is asked to be a copy or to have another order in memory, is a tensor of its own.
        let copies = |input: &NamedArgument| match (input.name.as_str(), &input.arg) {
            ("copy", Argument::AsBool(copy)) => *copy,
            ("memory_format", Argument::AsMemoryFormat(_)) => may_copy,
            _ => false,
        };
        let is_converted = results(node).iter().any(|name| self.scalar_type(name) != self.scalar_type(&of.name));
        if is_converted || node.inputs.iter().any(copies) {
            return;
        }
        let metas = [Some(of.name.as_str()), results(node).first().copied()];
        let metas = metas.map(|name| self.graph.tensor_values.get(name?));
        let [Some(from), Some(to)] = metas else { return };
        let is_contiguous = ops::short_name(&node.target).starts_with("aten.contiguous.");
        let is_view =
            if is_contiguous { from.is_contiguous(&self.symbols) } else { from.is_viewed_as(to, &self.symbols) };
        if may_copy && !is_view {
            return;
        }
        let made_at = self.changes.get(&of.name).copied().unwrap_or(0);
        for (place, name) in results(node).into_iter().enumerate() {
            self.views.insert(
                name.into(),
                View { of: of.name.clone(), argument: of.name.clone(), node: Some(node), place, made_at },
            );
        }
    }

    /// Notes that a node's result is the tensor of this name.
    pub fn note_alias(&mut self, node: &Node, of: &str) {
        let made_at = self.changes.get(of).copied().unwrap_or(0);
        for name in results(node).into_iter().filter(|name| *name != of) {
            self.views.insert(name.into(), View { of: of.into(), argument: of.into(), node: None, place: 0, made_at });
        }
    }

    /// Gives a name another view of its tensor, as `t_` does: the tensor itself gets a name that the program does not have.
    pub fn seen_as(&mut self, node: &'a Node, name: &str, value: &Value) {
        let hidden = format!("{name}/{}", self.views.len());
        if let Some(meaning) = self.names.get(name).cloned() {
            self.names.insert(hidden.clone(), meaning);
        }
        if let Some(view) = self.views.remove(name) {
            self.views.insert(hidden.clone(), view);
        }
        let made_at = self.changes.get(name).copied().unwrap_or(0);
        self.changes.insert(hidden.clone(), made_at);
        for view in self.views.values_mut().filter(|view| view.of == name) {
            view.of.clone_from(&hidden);
        }
        self.names.insert(name.into(), Named::Value(value.clone()));
        self.views.insert(name.into(), View { of: hidden, argument: name.into(), node: Some(node), place: 0, made_at });
        self.note_alias(node, name);
    }

    /// How many views there are from a name to the tensor that has its elements.
    fn depth(&self, name: &str) -> usize {
        let mut depth = 0;
        let mut at = name;
        while let Some(view) = self.views.get(at).filter(|_| depth <= DEPTH) {
            (depth, at) = (depth + 1, &view.of);
        }
        depth
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
        if self.depth(name) > DEPTH {
            return Err(
                format!("`{name}` is a view of more than {DEPTH} views of each other, which is not supported").into()
            );
        }
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
    fn viewed(&mut self, view: &View<'a>, node: &'a Node, of: Value) -> Result<Value, Reason> {
        let found = ops::find(&node.target).ok_or("it is not supported")?;
        let kept = self.names.insert(view.argument.clone(), Named::Value(of));
        let parent = self.views.remove(&view.argument);
        let result = (found.operator.import)(&mut NodeContext::new(self, node));
        if let Some(kept) = kept {
            self.names.insert(view.argument.clone(), kept);
        }
        if let Some(parent) = parent {
            self.views.insert(view.argument.clone(), parent);
        }
        match result? {
            Value::List(mut list) if view.place < list.len() => Ok(list.swap_remove(view.place)),
            one => Ok(one),
        }
    }

    /// A tensor with the elements of a view replaced.
    fn written(&mut self, view: &View<'a>, node: &'a Node, whole: ValueId, part: ValueId) -> Result<ValueId, Reason> {
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
