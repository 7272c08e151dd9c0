//! A graph while a pass changes it.
//!
//! Nodes and values keep their ids from patch to patch: new ones are appended, removed ones leave a gap, and a separate
//! list holds the order of the nodes. So the time for a patch depends on its size, not on the size of the graph. Each
//! patch is verified where it can be wrong: the types of new nodes are inferred, a replacement must have the type of
//! the value that it replaces, and operands must be defined before they are read. The whole graph is verified when it
//! leaves the draft.

use super::View;
use super::engine::PassError;
use super::patch::{Patch, Ref};
use crate::graph::{Def, Graph, GraphError, Node, NodeId, Value, ValueId, verify};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Marks the end of the list of nodes.
const END: usize = usize::MAX;

/// Initial distance between the order keys of neighbors.
const STEP: u128 = 1 << 64;

/// A graph that is being changed.
pub(super) struct Draft {
    graph: Graph,
    /// Positions of a value among the graph's outputs.
    leaves: HashMap<ValueId, Vec<usize>>,
    /// The node with each name.
    names: HashMap<String, NodeId>,
    links: Vec<Link>,
    first: usize,
    changed: bool,
}

/// A node's position in the order.
#[derive(Clone, Copy)]
struct Link {
    before: usize,
    behind: usize,
    /// Increases along the order.
    key: u128,
    dropped: bool,
}

/// The result of a patch.
pub(super) struct Patched {
    /// The node to continue with.
    pub next: Option<NodeId>,
    /// Replaced values, each with its replacement.
    pub replaced: HashMap<ValueId, ValueId>,
}

/// A graph, and for each of its values the id in the draft.
pub(super) type Snapshot = (Graph, Vec<ValueId>);

impl Draft {
    pub fn new(graph: Graph) -> Draft {
        let count = graph.nodes().len();
        let link = |i: usize| Link {
            before: i.checked_sub(1).unwrap_or(END),
            behind: if i + 1 < count { i + 1 } else { END },
            key: (i as u128 + 1) * STEP,
            dropped: false,
        };
        let mut leaves: HashMap<ValueId, Vec<usize>> = HashMap::new();
        for (place, (_, v)) in graph.outputs().iter().enumerate() {
            leaves.entry(*v).or_default().push(place);
        }
        Draft {
            leaves,
            names: graph.nodes().map(|(id, n)| (n.name.clone(), id)).collect(),
            links: (0..count).map(link).collect(),
            first: if count == 0 { END } else { 0 },
            changed: false,
            graph,
        }
    }

    /// The view that a pass gets.
    pub fn view(&self) -> View<'_> {
        View::new(&self.graph)
    }

    /// The first node.
    pub fn first(&self) -> Option<NodeId> {
        (self.first != END).then_some(NodeId(self.first))
    }

    /// A node and all nodes after it.
    pub fn from(&self, at: Option<NodeId>) -> impl Iterator<Item = NodeId> {
        std::iter::successors(at, |id| self.behind(*id))
    }

    fn behind(&self, id: NodeId) -> Option<NodeId> {
        let behind = self.links[id.0].behind;
        (behind != END).then_some(NodeId(behind))
    }

    /// The current graph.
    pub fn graph(&self) -> Snapshot {
        let mut own: Vec<ValueId> = self.graph.inputs().map(|(_, v)| v).collect();
        let order: Vec<NodeId> = self.from(self.first()).collect();
        own.extend(order.iter().flat_map(|id| &self.graph.node(*id).outputs));
        let mut place = vec![ValueId(usize::MAX); self.graph.value_count()];
        own.iter().enumerate().for_each(|(i, v)| place[v.0] = ValueId(i));
        let placed = |list: &[ValueId]| -> Vec<ValueId> { list.iter().map(|v| place[v.0]).collect() };
        let mut values = self.graph.values[..self.graph.inputs().len()].to_vec();
        let mut nodes = Vec::with_capacity(order.len());
        for (n, id) in order.into_iter().enumerate() {
            let node = self.graph.node(id);
            let own = |(i, v): (usize, &ValueId)| Value { ty: self.graph.ty(*v).clone(), def: Def::Node(NodeId(n), i) };
            values.extend(node.outputs.iter().enumerate().map(own));
            let (inputs, outputs) = (placed(&node.inputs), placed(&node.outputs));
            nodes.push(Node { name: node.name.clone(), op: node.op.clone(), inputs, outputs });
        }
        let outputs = self.graph.outputs.iter().map(|(name, v)| (name.clone(), place[v.0])).collect();
        (Graph::of_parts(self.graph.name.clone(), self.graph.input_names.clone(), values, nodes, outputs), own)
    }

    /// The final graph, verified.
    pub fn finish(self) -> Result<Graph, PassError> {
        if !self.changed {
            return Ok(self.graph);
        }
        let (graph, _) = self.graph();
        match GraphError::join(verify(&graph)) {
            Some(e) => Err(e.into()),
            None => Ok(graph),
        }
    }

    /// Applies a patch that a pass found at a node. New nodes are inserted before that node, so they can read what it
    /// could read. If nodes before it are removed, the traversal skips as many nodes: it counts positions from the
    /// first node.
    ///
    /// # Errors
    /// If the graph would become invalid; do not use the draft after that.
    pub fn apply(&mut self, patch: &Patch, at: NodeId) -> Result<Patched, PassError> {
        self.changed = true;
        let old_nodes = self.links.len();
        let new = self.add(patch, at)?;
        let values: Vec<ValueId> = new.iter().map(|id| self.graph.node(*id).output()).collect();
        let mut replaced: HashMap<ValueId, ValueId> = HashMap::new();
        for (old, to) in &patch.replace {
            replaced.insert(*old, self.place(*old, *to, &values)?);
        }
        let mut open = patch.remove.clone();
        // A value that nothing used goes as well: the same pass would find its node again and again.
        open.extend(replaced.keys().filter_map(|v| Some(self.graph.def_node(*v)?.0)));
        let moved = self.replace(&replaced);
        // New nodes read what the patch says, even values that it replaces.
        for id in &new {
            self.graph.nodes[id.0].inputs.iter().for_each(|v| self.graph.users[v.0].push(*id));
        }
        let mut next = new.first().copied().or(Some(at));
        let mut leap = 0;
        while let Some(id) = open.pop() {
            let unused = self.graph.node(id).outputs.iter().all(|v| !self.used(*v));
            if id.0 >= old_nodes || !unused || self.links[id.0].dropped {
                continue;
            }
            leap += usize::from(self.links[id.0].key < self.links[at.0].key);
            if next == Some(id) {
                next = self.behind(id);
            }
            self.drop_node(id, &mut open);
        }
        for id in moved.into_iter().filter(|id| !self.links[id.0].dropped) {
            self.check_operands(id)?;
        }
        self.name(&new);
        let next = (0..leap).try_fold(next, |id, _| id.map(|id| self.behind(id))).flatten();
        Ok(Patched { next, replaced })
    }

    /// True if something reads the value.
    fn used(&self, v: ValueId) -> bool {
        !self.graph.users[v.0].is_empty() || self.graph.is_output(v)
    }

    /// Adds a patch's new nodes before a node. They have no final names yet and are not registered as users of their
    /// operands.
    fn add(&mut self, patch: &Patch, at: NodeId) -> Result<Vec<NodeId>, PassError> {
        let mut keys = self.keys_before(at, patch.nodes.len());
        let mut new: Vec<NodeId> = Vec::with_capacity(patch.nodes.len());
        for n in &patch.nodes {
            let id = NodeId(self.links.len());
            let place = |r: &Ref| match r {
                Ref::Old(v) => Some(*v),
                Ref::New(i) => new.get(*i).map(|id| self.graph.node(*id).output()),
            };
            let inputs: Option<Vec<ValueId>> = n.inputs.iter().map(place).collect();
            let inputs = inputs.ok_or_else(|| lost(&n.name))?;
            let name = if n.name.is_empty() { n.op.name().to_owned() } else { n.name.clone() };
            let types: Vec<_> = inputs.iter().map(|v| self.graph.ty(*v)).collect();
            let error = |source| GraphError::Op { node: name.clone(), op: n.op.name(), source };
            let types = n.op.infer(&types).map_err(error)?;
            let outputs: Vec<_> = (0..types.len()).map(|i| ValueId(self.graph.values.len() + i)).collect();
            let own = |(i, ty)| Value { ty, def: Def::Node(id, i) };
            self.graph.values.extend(types.into_iter().enumerate().map(own));
            self.graph.leaves.resize(self.graph.values.len(), false);
            self.graph.users.resize(self.graph.values.len(), Vec::new());
            self.graph.nodes.push(Node { name, op: n.op.clone(), inputs, outputs });
            let before = self.links[at.0].before;
            self.links.push(Link { before, behind: at.0, key: keys.next().unwrap_or_default(), dropped: false });
            self.links[at.0].before = id.0;
            *(if before == END { &mut self.first } else { &mut self.links[before].behind }) = id.0;
            self.check_operands(id)?;
            new.push(id);
        }
        Ok(new)
    }

    /// `count` order keys between a node and the one before it.
    fn keys_before(&mut self, at: NodeId, count: usize) -> impl Iterator<Item = u128> + use<> {
        let ends = |d: &Draft| match d.links[at.0] {
            Link { before: END, key, .. } => (0, key),
            Link { before, key, .. } => (d.links[before].key, key),
        };
        let (mut low, mut high) = ends(self);
        if high - low <= count as u128 {
            let order: Vec<NodeId> = self.from(self.first()).collect();
            order.iter().enumerate().for_each(|(i, id)| self.links[id.0].key = (i as u128 + 1) * STEP);
            (low, high) = ends(self);
        }
        let step = (high - low) / (count as u128 + 1);
        (1..=count as u128).map(move |i| low + i * step)
    }

    /// The value that replaces another one; it must have the same type.
    fn place(&self, old: ValueId, to: Ref, new: &[ValueId]) -> Result<ValueId, PassError> {
        let to = match to {
            Ref::Old(v) => Some(v),
            Ref::New(i) => new.get(i).copied(),
        };
        let ty = self.graph.ty(old);
        to.filter(|v| self.graph.ty(*v) == ty).ok_or_else(|| {
            let found = to.map_or("nothing".into(), |v| self.graph.ty(v).to_string());
            let name = self.graph.value_name(old);
            GraphError::Invalid(format!("`{name}` of type {ty} is replaced by {found}")).into()
        })
    }

    /// Replaces values, all at once, and returns the nodes whose operands changed.
    fn replace(&mut self, replaced: &HashMap<ValueId, ValueId>) -> BTreeSet<NodeId> {
        let users = replaced.keys().flat_map(|v| std::mem::take(&mut self.graph.users[v.0]));
        let users: BTreeSet<NodeId> = users.collect();
        for id in &users {
            for v in &mut self.graph.nodes[id.0].inputs {
                if let Some(to) = replaced.get(v) {
                    *v = *to;
                    self.graph.users[to.0].push(*id);
                }
            }
        }
        let leaves: Vec<_> = replaced.iter().filter_map(|(v, to)| Some((*v, *to, self.leaves.remove(v)?))).collect();
        leaves.iter().for_each(|(v, ..)| self.graph.leaves[v.0] = false);
        for (_, to, places) in leaves {
            places.iter().for_each(|place| self.graph.outputs[*place].1 = to);
            self.leaves.entry(to).or_default().extend(places);
            self.graph.leaves[to.0] = true;
        }
        users
    }

    /// Removes a node and adds the nodes whose values it read to `makers`.
    fn drop_node(&mut self, id: NodeId, makers: &mut Vec<NodeId>) {
        let Link { before, behind, .. } = self.links[id.0];
        *(if before == END { &mut self.first } else { &mut self.links[before].behind }) = behind;
        if behind != END {
            self.links[behind].before = before;
        }
        self.links[id.0].dropped = true;
        let node = &self.graph.nodes[id.0];
        if self.names.get(&node.name) == Some(&id) {
            self.names.remove(&node.name);
        }
        for v in &node.inputs {
            let users = &mut self.graph.users[v.0];
            if let Some(at) = users.iter().position(|user| *user == id) {
                users.swap_remove(at);
            }
            makers.extend(self.graph.def_node(*v).map(|(maker, _)| maker));
        }
    }

    /// Fails if a node comes before one that defines its operands.
    fn check_operands(&self, id: NodeId) -> Result<(), PassError> {
        let node = self.graph.node(id);
        let there = |v: &ValueId| match self.graph.def_node(*v) {
            Some((maker, _)) => !self.links[maker.0].dropped && self.links[maker.0].key < self.links[id.0].key,
            None => true,
        };
        if node.inputs.iter().all(there) { Ok(()) } else { Err(lost(&node.name)) }
    }

    /// Makes the names of new nodes unique: of several nodes with one name, the first keeps it and the others get a
    /// number.
    fn name(&mut self, new: &[NodeId]) {
        let mut open: BTreeMap<u128, NodeId> = new.iter().map(|id| (self.links[id.0].key, *id)).collect();
        while let Some((key, id)) = open.pop_first() {
            let before = |name: &str| self.names.get(name).is_some_and(|other| self.links[other.0].key < key);
            let base = &self.graph.nodes[id.0].name;
            let numbered = || (1..).map(|k| format!("{base}.{k}")).find(|name| !before(name));
            let name = if before(base) { numbered().unwrap_or_default() } else { base.clone() };
            // The node that had the name comes later and gets another one.
            if let Some(other) = self.names.insert(name.clone(), id) {
                open.insert(self.links[other.0].key, other);
            }
            self.graph.nodes[id.0].name = name;
        }
    }
}

fn lost(node: &str) -> PassError {
    GraphError::Invalid(format!("node `{node}` reads a value that is not defined yet")).into()
}
