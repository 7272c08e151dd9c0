//! One decision over the graph: how every value lies, so that layers and changes of layout take least together.
//!
//! A layer that works element by element takes its data as they lie, in whichever way that is, and leaves its result alike;
//! others want one way. So the layout of a value is a choice that its maker and all its readers share. The nodes are walked
//! in the graph's order; of all choices so far that leave the values that are still read in the same forms, with the same
//! nodes taken care of, the cheapest is kept. What comes out is the least of all, unless more than [`MOST_STATES`] are open at
//! once: then the dearest of them are dropped.
//!
//! A value costs once for each form in which it is needed, however many readers share it.
//!
//! A step takes as long as there are states, however many values are open: a state shares with the one that it came from all
//! that the step leaves alone.

use super::shared::Shared;
use crate::codegen::accel::{Layer, Planned, View};
use crate::graph::{Graph, NodeId, Op, ValueId};
use indexmap::IndexMap;
use indexmap::map::Entry;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// Most states that are kept.
const MOST_STATES: usize = 256;

/// What becomes of a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Choice {
    /// The CPU computes it, for this reason.
    Cpu(String),
    /// The bytes of its data, seen as a view if that is another one.
    Alias(Option<View>),
    /// The first node of a layer.
    Layer(Rc<(Layer, Planned)>),
}

/// What choices cost.
pub(super) trait Costs {
    /// Nanoseconds of a layer.
    fn layer(&self, layer: &Layer, planned: &Planned) -> u64;
    /// Nanoseconds of a node on the CPU.
    fn cpu(&self, node: NodeId) -> u64;
    /// Nanoseconds to bring a value from the accelerator, where it lies like this, to the host.
    fn leave(&self, value: ValueId, view: View) -> u64;
    /// Nanoseconds to bring a value from the host to the accelerator, a launch included.
    fn enter(&self, value: ValueId, view: View) -> u64;
}

/// What may become of a node, given how its data lie on the accelerator.
pub(super) type Choices<'a> = dyn Fn(NodeId, &dyn Fn(ValueId) -> Option<View>) -> Vec<Choice> + 'a;

/// How a value lies.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Forms {
    /// On the host.
    host: bool,
    /// As the accelerator made it.
    made: Option<View>,
    /// In device memory, brought there by the host.
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

/// What is to be known of the choices so far.
#[derive(Debug, Clone)]
struct State {
    /// Values that are still read.
    forms: Shared<Forms>,
    /// Nodes ahead that layers have taken in.
    taken: Shared<()>,
}

impl State {
    fn new(graph: &Graph) -> State {
        State { forms: Shared::new(graph.value_count()), taken: Shared::new(graph.nodes().len()) }
    }

    /// What differs where states differ. Where it does not although they do, once in 2^64, the dearer of them is dropped.
    fn print(&self) -> (u64, u64) {
        (self.forms.print(), self.taken.print())
    }
}

/// The choices on the way to a state, the last one first.
struct Trail {
    node: NodeId,
    choices: Rc<Vec<Choice>>,
    /// Which of them it is.
    index: usize,
    before: Option<Rc<Trail>>,
}

impl Drop for Trail {
    /// One after the other, as a trail is as long as the graph.
    fn drop(&mut self) {
        let mut last = self.before.take();
        while let Some(mut trail) = last.and_then(Rc::into_inner) {
            last = trail.before.take();
        }
    }
}

/// The choices of nodes that were asked for, each with the values that they depend on and how those lay.
#[derive(Default)]
struct Known(HashMap<NodeId, Vec<Answer>>);

type Answer = (Vec<(ValueId, Option<View>)>, Rc<Vec<Choice>>);

impl Known {
    /// The choices of a node, from an earlier state if all that they depended on there lies alike.
    fn choices(&mut self, id: NodeId, choices: &Choices, lies: &dyn Fn(ValueId) -> Option<View>) -> Rc<Vec<Choice>> {
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

/// Nanoseconds, and how often another choice than the first was taken, which decides between equals.
type Cost = (u64, usize);

/// The states at a node by their prints, in the order in which they were found.
type Open = IndexMap<(u64, u64), Reached>;

/// A state, the least that it costs to come there, and how.
type Reached = (State, Cost, Option<Rc<Trail>>);

/// The cheapest choices for a graph's nodes, and what they cost in nanoseconds.
pub(super) fn decide(graph: &Graph, choices: &Choices, costs: &dyn Costs) -> (BTreeMap<NodeId, Choice>, u64) {
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

fn keep(open: &mut Open, reached: Reached) {
    match open.entry(reached.0.print()) {
        Entry::Vacant(at) => _ = at.insert(reached),
        Entry::Occupied(mut at) if reached.1 < at.get().1 => _ = at.insert(reached),
        Entry::Occupied(_) => {}
    }
}

/// The graph with what the steps of the walk look up.
struct Lookups<'a> {
    graph: &'a Graph,
    costs: &'a dyn Costs,
    /// The last reader of each value.
    last: Vec<Option<NodeId>>,
    /// The values of which each node is the last reader, and those of its own that have none.
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

    /// Adds a choice to a state, and says what it costs.
    fn take(&self, state: &mut State, id: NodeId, choice: &Choice) -> u64 {
        let node = self.graph.node(id);
        let mut cost = 0;
        match choice {
            Choice::Cpu(_) => {
                for &value in &node.inputs {
                    cost += self.on_host(state, value);
                }
                for &value in &node.outputs {
                    state.forms.set(value.0, Some(Forms::host()));
                }
                cost + self.costs.cpu(id)
            }
            Choice::Alias(view) => {
                let of = state.forms.get(node.inputs[0].0).and_then(|f| f.made);
                self.made(state, node.output(), view.or(of))
            }
            Choice::Layer(planned) => {
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

    /// A value that the accelerator makes; what leaves the graph goes to the host.
    fn made(&self, state: &mut State, value: ValueId, view: Option<View>) -> u64 {
        state.forms.set(value.0, Some(Forms::made(view)));
        let cost = if self.graph.is_output(value) { self.on_host(state, value) } else { 0 };
        if self.last[value.0].is_none() {
            state.forms.set(value.0, None);
        }
        cost
    }

    fn on_host(&self, state: &mut State, value: ValueId) -> u64 {
        let Some(forms) = state.forms.get(value.0).filter(|forms| !forms.host) else { return 0 };
        let forms = Forms { host: true, ..forms.clone() };
        let made = forms.made;
        state.forms.set(value.0, Some(forms));
        made.map_or(0, |view| self.costs.leave(value, view))
    }

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

    /// Forgets values that nobody reads behind a node, where that was done for all nodes before it.
    fn forget(&self, state: &mut State, id: NodeId) {
        for value in &self.read[id.0] {
            state.forms.set(value.0, None);
        }
    }
}
