//! Assigns a place and a depth to every node.
//!
//! Nodes with the same place and depth form a region. An edge to another place, or to a reader that needs another
//! layout, leads to a greater depth.

use super::Options;
use super::decide::{NodeChoice, decide};
use super::layouts::Layouts;
use crate::codegen::accel::{Layer, Planned, View};
use crate::cost::CostOracle;
use crate::graph::{Graph, NodeId, Op, ValueId};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use tilewright_hw::HwConfig;
use tilewright_runtime::artifact::Place;

/// Where a node runs.
#[derive(Debug, Clone)]
pub(super) struct NodePlace {
    pub place: Place,
    pub depth: usize,
    pub why: String,
}

/// A layer with its plan and its region.
#[derive(Debug, Clone)]
pub(super) struct PlacedLayer {
    pub layer: Layer,
    pub planned: Planned,
    pub depth: usize,
    /// Its share of its program's cycles, if they are known.
    pub cycles: Option<u64>,
}

/// Identifies a fused operator: the first node of the layer that it is fused into, and the operator's result.
pub(super) type Fusion = (NodeId, ValueId);

/// The whole graph, placed.
#[derive(Debug, Clone, Default)]
pub(super) struct Placed {
    pub nodes: BTreeMap<NodeId, NodePlace>,
    pub layers: Vec<PlacedLayer>,
    /// Maps an alias on the accelerator to the value whose bytes it shares.
    pub roots: HashMap<ValueId, ValueId>,
    /// Maps an alias to its view, if that differs from the view of its root.
    pub seen: HashMap<ValueId, View>,
    /// Additional notes on nodes for `--explain`.
    pub notes: HashMap<NodeId, String>,
    /// Fusions whose separate layers take fewer cycles by the estimate.
    pub doubted: HashSet<Fusion>,
}

impl Placed {
    /// Returns the indices of the layers for each depth.
    pub fn by_depth(&self) -> BTreeMap<usize, Vec<usize>> {
        let mut found: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (i, l) in self.layers.iter().enumerate() {
            found.entry(l.depth).or_default().push(i);
        }
        found
    }

    /// Makes `to` an alias of `from`, with another view if `view` is given.
    fn recast(&mut self, from: ValueId, to: ValueId, view: Option<View>) {
        let root = self.roots.get(&from).copied().unwrap_or(from);
        self.roots.insert(to, root);
        if let Some(view) = view.or(self.seen.get(&from).copied()) {
            self.seen.insert(to, view);
        }
    }
}

/// A value that is available: from which depth on, and in which view.
#[derive(Clone, Copy, Default)]
struct Ready {
    depth: usize,
    /// Its view in device memory, if the accelerator made it.
    view: Option<View>,
    /// Whether a step of its own made it.
    own_step: bool,
}

/// Places every node according to the cheapest choice of layouts.
pub(super) fn place(
    graph: &Graph,
    config: &HwConfig,
    options: &Options,
    refused: &HashMap<NodeId, String>,
    oracle: &dyn CostOracle,
) -> Placed {
    let layouts = Layouts::new(graph, config, options, refused, oracle);
    let (mut chosen, _) = decide(graph, &|id, lies| layouts.choices(id, lies), &layouts);
    let mut placed = Placed::default();
    let mut ready: HashMap<ValueId, Ready> = HashMap::new();
    for (id, node) in graph.nodes() {
        if matches!(node.op, Op::Constant(_)) || placed.nodes.contains_key(&id) {
            continue;
        }
        let why = match chosen.remove(&id) {
            Some(NodeChoice::Alias(view)) => {
                let Ready { depth, view: lies, .. } = ready.get(&node.inputs[0]).copied().unwrap_or_default();
                placed.recast(node.inputs[0], node.output(), view);
                ready.insert(node.output(), Ready { depth, view: view.or(lies), own_step: false });
                let order = if view.is_some() { " in another order of dimensions" } else { "" };
                let why = format!("the same bytes{order}; nothing to do");
                placed.nodes.insert(id, NodePlace { place: Place::Accel, depth, why });
                continue;
            }
            Some(NodeChoice::Layer(planned)) => {
                let (layer, planned) = Rc::unwrap_or_clone(planned);
                let changes = layouts.changes(&layer, &|v| ready.get(&v).and_then(|r| r.view));
                accept(&mut placed, &mut ready, layer, planned, (options.join, &changes));
                continue;
            }
            Some(NodeChoice::Cpu(reason)) => reason,
            None => String::new(),
        };
        let from = node.inputs.iter().filter_map(|v| ready.get(v));
        let own_step = node.op.is_own_step();
        let depth = from.map(|r| r.depth + usize::from(r.view.is_some() || own_step || r.own_step)).max().unwrap_or(0);
        for &value in &node.outputs {
            ready.insert(value, Ready { depth, view: None, own_step });
        }
        placed.nodes.insert(id, NodePlace { place: Place::Cpu, depth, why });
    }
    placed
}

fn accept(
    placed: &mut Placed,
    ready: &mut HashMap<ValueId, Ready>,
    layer: Layer,
    planned: Planned,
    (join, changes): (bool, &str),
) {
    let from = layer.inputs.iter().filter_map(|(v, view)| {
        let r = ready.get(v)?;
        Some(r.depth + usize::from(!join || r.view != Some(*view)))
    });
    let mut depth = from.max().unwrap_or(0);
    if let Some(before) = placed.layers.last().filter(|_| !join) {
        depth = depth.max(before.depth + 1);
    }
    let why = planned.describe(&layer) + changes;
    for &node in &layer.nodes {
        placed.nodes.insert(node, NodePlace { place: Place::Accel, depth, why: why.clone() });
    }
    ready.insert(layer.output.0, Ready { depth, view: Some(layer.output.1), own_step: false });
    placed.layers.push(PlacedLayer { layer, planned, depth, cycles: None });
}
