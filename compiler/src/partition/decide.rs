//! One decision over the graph: how every value lies, so that layers and changes of layout take least together.
//!
//! A layer that works element by element takes its data as they lie, in whichever way that is, and leaves its result alike;
//! others want one way. So the layout of a value is a choice that its maker and all its readers share. The nodes are walked
//! in the graph's order; of all choices so far that leave the values that are still read in the same forms, with the same
//! nodes taken care of, the cheapest is kept. What comes out is the least of all, unless more than [`MOST_STATES`] are open at
//! once: then the dearest of them are dropped.
//!
//! A value costs once for each form in which it is needed, however many readers share it.

use crate::codegen::accel::{Layer, Plan, View};
use crate::graph::{Graph, NodeId, Op, ValueId};
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
    Layer(Rc<(Layer, Plan)>),
}

/// What choices cost.
pub(super) trait Costs {
    /// Nanoseconds of a layer.
    fn layer(&self, layer: &Layer, plan: &Plan) -> u64;
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Forms {
    /// On the host.
    host: bool,
    /// As the accelerator made it.
    made: Option<View>,
    /// In device memory, brought there by the host.
    brought: BTreeSet<View>,
}

/// What is to be known of the choices so far.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
struct State {
    /// Values that are still read.
    forms: BTreeMap<ValueId, Forms>,
    /// Nodes ahead that layers have taken in.
    taken: BTreeSet<NodeId>,
}

/// The choices on the way to a state, the last one first.
struct Trail {
    node: NodeId,
    choice: Choice,
    before: Option<Rc<Trail>>,
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

type Open = BTreeMap<State, (Cost, Option<Rc<Trail>>)>;

/// The cheapest choices for a graph's nodes, and what they cost in nanoseconds.
pub(super) fn decide(graph: &Graph, choices: &Choices, costs: &dyn Costs) -> (BTreeMap<NodeId, Choice>, u64) {
    let walk = Walk::new(graph, costs);
    let mut open = Open::new();
    let mut first = State::default();
    for (_, value) in graph.inputs() {
        if walk.last[value.0].is_some() {
            first.forms.insert(value, Forms { host: true, ..Forms::default() });
        }
    }
    open.insert(first, ((0, 0), None));
    let mut known = Known::default();
    for (id, node) in graph.nodes() {
        if matches!(node.op, Op::Constant(_)) {
            continue;
        }
        let mut next = Open::new();
        for (mut state, (cost, trail)) in std::mem::take(&mut open) {
            if state.taken.remove(&id) {
                walk.forget(&mut state, id);
                keep(&mut next, state, cost, trail);
                continue;
            }
            let lies = |v: ValueId| state.forms.get(&v).and_then(|f| f.made);
            let list = known.choices(id, choices, &lies);
            let mut left = Some(state);
            for (index, choice) in list.iter().enumerate() {
                let after = if index + 1 < list.len() { left.clone() } else { left.take() };
                let Some(mut after) = after else { break };
                let cost = (cost.0 + walk.take(&mut after, id, choice), cost.1 + usize::from(index > 0));
                walk.forget(&mut after, id);
                let trail = Trail { node: id, choice: choice.clone(), before: trail.clone() };
                keep(&mut next, after, cost, Some(Rc::new(trail)));
            }
        }
        if next.len() > MOST_STATES {
            let mut all: Vec<_> = next.into_iter().collect();
            all.sort_by_key(|(_, (cost, _))| *cost);
            next = all.into_iter().take(MOST_STATES).collect();
        }
        open = next;
    }
    let Some((cost, mut trail)) = open.into_values().min_by_key(|(cost, _)| *cost) else {
        return (BTreeMap::new(), 0);
    };
    let mut found = BTreeMap::new();
    while let Some(last) = trail {
        found.insert(last.node, last.choice.clone());
        trail = last.before.clone();
    }
    (found, cost.0)
}

fn keep(open: &mut Open, state: State, cost: Cost, trail: Option<Rc<Trail>>) {
    match open.entry(state) {
        std::collections::btree_map::Entry::Vacant(at) => {
            at.insert((cost, trail));
        }
        std::collections::btree_map::Entry::Occupied(mut at) => {
            if cost < at.get().0 {
                at.insert((cost, trail));
            }
        }
    }
}

/// The graph with what the steps of the walk look up.
struct Walk<'a> {
    graph: &'a Graph,
    costs: &'a dyn Costs,
    /// The last reader of each value.
    last: Vec<Option<NodeId>>,
    /// The values of which each node is the last reader, and those of its own that have none.
    read: Vec<Vec<ValueId>>,
}

impl<'a> Walk<'a> {
    fn new(graph: &'a Graph, costs: &'a dyn Costs) -> Walk<'a> {
        let last: Vec<Option<NodeId>> = graph.users().iter().map(|users| users.iter().max().copied()).collect();
        let mut read = vec![Vec::new(); graph.nodes().len()];
        for (v, reader) in last.iter().enumerate().map(|(v, reader)| (ValueId(v), *reader)) {
            if let Some(at) = reader.or_else(|| Some(graph.def_node(v)?.0)) {
                read[at.0].push(v);
            }
        }
        Walk { graph, costs, last, read }
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
                    state.forms.insert(value, Forms { host: true, ..Forms::default() });
                }
                cost + self.costs.cpu(id)
            }
            Choice::Alias(view) => {
                let of = state.forms.get(&node.inputs[0]).and_then(|f| f.made);
                self.made(state, node.output(), view.or(of))
            }
            Choice::Layer(planned) => {
                let (layer, plan) = planned.as_ref();
                for &(value, view) in &layer.inputs {
                    cost += self.on_device(state, value, view);
                }
                state.taken.extend(layer.nodes.iter().filter(|n| **n > id));
                cost += self.made(state, layer.output.0, Some(layer.output.1));
                cost + self.costs.layer(layer, plan)
            }
        }
    }

    /// A value that the accelerator makes; what leaves the graph goes to the host.
    fn made(&self, state: &mut State, value: ValueId, view: Option<View>) -> u64 {
        state.forms.insert(value, Forms { made: view, ..Forms::default() });
        let cost = if self.graph.is_output(value) { self.on_host(state, value) } else { 0 };
        if self.last[value.0].is_none() {
            state.forms.remove(&value);
        }
        cost
    }

    fn on_host(&self, state: &mut State, value: ValueId) -> u64 {
        match state.forms.get_mut(&value) {
            Some(Forms { host, made, .. }) if !*host => {
                *host = true;
                made.map_or(0, |view| self.costs.leave(value, view))
            }
            _ => 0,
        }
    }

    fn on_device(&self, state: &mut State, value: ValueId, view: View) -> u64 {
        let there = |f: &Forms| f.made == Some(view) || f.brought.contains(&view);
        if state.forms.get(&value).is_none_or(there) {
            return 0;
        }
        let cost = self.on_host(state, value) + self.costs.enter(value, view);
        if let Some(forms) = state.forms.get_mut(&value) {
            forms.brought.insert(view);
        }
        cost
    }

    /// Forgets values that nobody reads behind a node, where that was done for all nodes before it.
    fn forget(&self, state: &mut State, id: NodeId) {
        for value in &self.read[id.0] {
            state.forms.remove(value);
        }
    }
}
