//! Decides the layouts of all values together, so that the total time of layers and changes of layout is minimal.
//!
//! An element-wise layer accepts its data in any layout and writes its result in the same one; other layers need a
//! certain layout. So a value's producer and all its readers share the choice of its layout. This is dynamic
//! programming over the nodes in graph order: a state is the set of forms in which the values that are still needed are
//! available, and the nodes that layers already cover. For each state only the cheapest choices are kept. The result is
//! optimal unless there are more than [`MOST_STATES`] states at a node; then the most expensive ones are dropped.
//!
//! A value costs once for each form in which it is needed, regardless of the number of readers.
//!
//! The time of a step depends on the number of states but not on the number of open values, because a state shares all
//! that a step does not change with its predecessor.

use super::shared::Shared;
use crate::codegen::accel::{Layer, Planned, View};
use crate::graph::{Graph, NodeId, Op, ValueId};
use indexmap::IndexMap;
use indexmap::map::Entry;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// Maximum number of states that are kept at a node.
const MOST_STATES: usize = 256;

/// A way to compute a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NodeChoice {
    /// The CPU computes it, for this reason.
    Cpu(String),
    /// It is an alias of its data's bytes, with another view if one is given.
    Alias(Option<View>),
    /// It is the first node of a layer.
    Layer(Rc<(Layer, Planned)>),
}

/// Costs of choices.
pub(super) trait Costs {
    /// Nanoseconds of a layer.
    fn layer(&self, layer: &Layer, planned: &Planned) -> u64;
    /// Nanoseconds of a node on the CPU.
    fn cpu(&self, node: NodeId) -> u64;
    /// Nanoseconds to bring a value from the accelerator, where it has this view, to the host.
    fn leave(&self, value: ValueId, view: View) -> u64;
    /// Nanoseconds to bring a value from the host to the accelerator, a launch included.
    fn enter(&self, value: ValueId, view: View) -> u64;
}

/// Returns the possible choices for a node, given the views of its data on the accelerator.
pub(super) type Choices<'a> = dyn Fn(NodeId, &dyn Fn(ValueId) -> Option<View>) -> Vec<NodeChoice> + 'a;

/// The forms in which a value is available.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Forms {
    /// On the host.
    host: bool,
    /// In device memory, written by the accelerator.
    made: Option<View>,
    /// In device memory, written by the host.
    brought: BTreeSet<View>,
}

impl Forms {
    fn host() -> Forms {
        Forms { host: true, ..Forms::default() }
    }

    fn made(view: Option<View>) -> Forms {
        Forms { made: view, ..Forms::default() }
    }
}

/// The part of the choices so far that matters for the following ones.
#[derive(Debug, Clone)]
struct State {
    /// Forms of values that are still needed.
    forms: Shared<Forms>,
    /// Later nodes that are already part of a layer.
    taken: Shared<()>,
}

impl State {
    fn new(graph: &Graph) -> State {
        State { forms: Shared::new(graph.value_count()), taken: Shared::new(graph.nodes().len()) }
    }

    /// Identifies the state by hashes. If two different states have the same hashes (a chance of 1 in 2^64), the more
    /// expensive one is dropped.
    fn print(&self) -> (u64, u64) {
        (self.forms.print(), self.taken.print())
    }
}

/// The choices that lead to a state, as a list from the last to the first.
struct Trail {
    node: NodeId,
    choices: Rc<Vec<NodeChoice>>,
    /// Index of the selected choice.
    index: usize,
    before: Option<Rc<Trail>>,
}

impl Drop for Trail {
    /// Drops the list iteratively: recursion could overflow the stack, because a trail is as long as the graph.
    fn drop(&mut self) {
        let mut last = self.before.take();
        while let Some(mut trail) = last.and_then(Rc::into_inner) {
            last = trail.before.take();
        }
    }
}

/// A cache of the choices of nodes.
#[derive(Default)]
struct Known(HashMap<NodeId, Vec<Answer>>);

/// Choices of a node, with the views on which they depend.
type Answer = (Vec<(ValueId, Option<View>)>, Rc<Vec<NodeChoice>>);

impl Known {
    /// Returns the choices of a node, from the cache if the views on which they depend are the same.
    fn choices(
        &mut self,
        id: NodeId,
        choices: &Choices,
        lies: &dyn Fn(ValueId) -> Option<View>,
    ) -> Rc<Vec<NodeChoice>> {
        let answers = self.0.entry(id).or_default();
        if let Some((_, list)) = answers.iter().find(|(asked, _)| asked.iter().all(|(v, view)| lies(*v) == *view)) {
            return Rc::clone(list);
        }
        let asked = RefCell::new(Vec::new());
        let list = Rc::new(choices(id, &|v| {
            let view = lies(v);
            asked.borrow_mut().push((v, view));
            view
        }));
        answers.push((asked.into_inner(), Rc::clone(&list)));
        list
    }
}

/// Nanoseconds, and as a tie breaker the number of choices other than the first.
type Cost = (u64, usize);

/// The states at a node by their hashes, in the order in which they were found.
type Open = IndexMap<(u64, u64), Reached>;

/// A state, its minimum cost so far, and the choices that lead to it.
type Reached = (State, Cost, Option<Rc<Trail>>);

/// Returns the cheapest choices for a graph's nodes, and their cost in nanoseconds.
pub(super) fn decide(graph: &Graph, choices: &Choices, costs: &dyn Costs) -> (BTreeMap<NodeId, NodeChoice>, u64) {
    let walk = Lookups::new(graph, costs);
    let mut open = Open::new();
    let mut first = State::new(graph);
    for (_, value) in graph.inputs() {
        if walk.last[value.0].is_some() {
            first.forms.set(value.0, Some(Forms::host()));
        }
    }
    keep(&mut open, (first, (0, 0), None));
    let mut known = Known::default();
    for (id, node) in graph.nodes() {
        if matches!(node.op, Op::Constant(_)) {
            continue;
        }
        let mut next = Open::new();
        for (_, (mut state, cost, trail)) in open {
            if state.taken.get(id.0).is_some() {
                state.taken.set(id.0, None);
                walk.forget(&mut state, id);
                keep(&mut next, (state, cost, trail));
                continue;
            }
            let lies = |v: ValueId| state.forms.get(v.0).and_then(|f| f.made);
            let list = known.choices(id, choices, &lies);
            let mut left = Some(state);
            for (index, choice) in list.iter().enumerate() {
                let after = if index + 1 < list.len() { left.clone() } else { left.take() };
                let Some(mut after) = after else { break };
                let cost = (cost.0 + walk.take(&mut after, id, choice), cost.1 + usize::from(index > 0));
                walk.forget(&mut after, id);
                let trail = Trail { node: id, choices: Rc::clone(&list), index, before: trail.clone() };
                keep(&mut next, (after, cost, Some(Rc::new(trail))));
            }
        }
        if next.len() > MOST_STATES {
            next.sort_by(|_, (_, cost, _), _, (_, other, _)| cost.cmp(other));
            next.truncate(MOST_STATES);
        }
        open = next;
    }
    let Some((_, cost, mut trail)) = open.into_values().min_by_key(|(_, cost, _)| *cost) else {
        return (BTreeMap::new(), 0);
    };
    let mut found = BTreeMap::new();
    while let Some(last) = trail {
        found.insert(last.node, last.choices[last.index].clone());
        trail = last.before.clone();
    }
    (found, cost.0)
}

/// Adds a state, unless it is already there at no higher cost.
fn keep(open: &mut Open, reached: Reached) {
    match open.entry(reached.0.print()) {
        Entry::Vacant(at) => _ = at.insert(reached),
        Entry::Occupied(mut at) if reached.1 < at.get().1 => _ = at.insert(reached),
        Entry::Occupied(_) => {}
    }
}

/// The graph, with tables that the steps need.
struct Lookups<'a> {
    graph: &'a Graph,
    costs: &'a dyn Costs,
    /// The last reader of each value.
    last: Vec<Option<NodeId>>,
    /// For each node, the values that it is the last to read, and its own values that have no reader.
    read: Vec<Vec<ValueId>>,
}

impl<'a> Lookups<'a> {
    fn new(graph: &'a Graph, costs: &'a dyn Costs) -> Lookups<'a> {
        let last: Vec<Option<NodeId>> = graph.users().iter().map(|users| users.iter().max().copied()).collect();
        let mut read = vec![Vec::new(); graph.nodes().len()];
        for (v, reader) in last.iter().enumerate().map(|(v, reader)| (ValueId(v), *reader)) {
            if let Some(at) = reader.or_else(|| Some(graph.def_node(v)?.0)) {
                read[at.0].push(v);
            }
        }
        Lookups { graph, costs, last, read }
    }

    /// Applies a choice to a state, and returns its cost.
    fn take(&self, state: &mut State, id: NodeId, choice: &NodeChoice) -> u64 {
        let node = self.graph.node(id);
        let mut cost = 0;
        match choice {
            NodeChoice::Cpu(_) => {
                for &value in &node.inputs {
                    cost += self.on_host(state, value);
                }
                for &value in &node.outputs {
                    state.forms.set(value.0, Some(Forms::host()));
                }
                cost + self.costs.cpu(id)
            }
            NodeChoice::Alias(view) => {
                let of = state.forms.get(node.inputs[0].0).and_then(|f| f.made);
                self.made(state, node.output(), view.or(of))
            }
            NodeChoice::Layer(planned) => {
                let (layer, planned) = planned.as_ref();
                for &(value, view) in &layer.inputs {
                    cost += self.on_device(state, value, view);
                }
                layer.nodes.iter().filter(|n| **n > id).for_each(|n| state.taken.set(n.0, Some(())));
                cost += self.made(state, layer.output.0, Some(layer.output.1));
                cost + self.costs.layer(layer, planned)
            }
        }
    }

    /// Records a value that the accelerator writes, and returns the cost of bringing it to the host if it is an output.
    fn made(&self, state: &mut State, value: ValueId, view: Option<View>) -> u64 {
        state.forms.set(value.0, Some(Forms::made(view)));
        let cost = if self.graph.is_output(value) { self.on_host(state, value) } else { 0 };
        if self.last[value.0].is_none() {
            state.forms.set(value.0, None);
        }
        cost
    }

    /// Makes a value available on the host, and returns the cost.
    fn on_host(&self, state: &mut State, value: ValueId) -> u64 {
        let Some(forms) = state.forms.get(value.0).filter(|forms| !forms.host) else { return 0 };
        let forms = Forms { host: true, ..forms.clone() };
        let made = forms.made;
        state.forms.set(value.0, Some(forms));
        made.map_or(0, |view| self.costs.leave(value, view))
    }

    /// Makes a value available in device memory with this view, and returns the cost.
    fn on_device(&self, state: &mut State, value: ValueId, view: View) -> u64 {
        let there = |f: &Forms| f.made == Some(view) || f.brought.contains(&view);
        if state.forms.get(value.0).is_none_or(there) {
            return 0;
        }
        let cost = self.on_host(state, value) + self.costs.enter(value, view);
        if let Some(mut forms) = state.forms.get(value.0).cloned() {
            forms.brought.insert(view);
            state.forms.set(value.0, Some(forms));
        }
        cost
    }

    /// Forgets values that no node after this one reads. It must already have been called for all earlier nodes.
    fn forget(&self, state: &mut State, id: NodeId) {
        for value in &self.read[id.0] {
            state.forms.set(value.0, None);
        }
    }
}
