//! Operators of single elements and poolings taken into the tiles of the product before them, so that its results are
//! neither stored nor loaded in between.

use super::place::{Placed, PlacedLayer};
use crate::codegen::accel::{Kind, Layer, Other, Plan, Then, cycles, plan};
use crate::graph::{Graph, NodeId, ValueId};
use std::collections::HashSet;
use tilewright_hw::HwConfig;

/// Most operators behind one product.
const MOST: usize = 2;

/// An operator behind a product: the product's first node, and the operator's result.
pub(super) type Fusion = (NodeId, ValueId);

/// What was fused into a layer last.
pub(super) fn last(layer: &Layer) -> Option<Fusion> {
    layer.then.last()?;
    Some((*layer.nodes.first()?, layer.output.0))
}

/// Fuses what can be fused, but for what stays `apart`.
pub(super) fn fuse(graph: &Graph, config: &HwConfig, placed: &mut Placed, apart: &HashSet<Fusion>) {
    let mut at = 0;
    while at < placed.layers.len() {
        let allowed = |(layer, _): &(Layer, Plan)| last(layer).is_none_or(|fusion| !apart.contains(&fusion));
        let found = |product| fused(graph, config, placed, product, at).filter(allowed);
        let fused = (0..at).rev().find_map(|product| Some((product, found(product)?)));
        let Some((product, (layer, plan))) = fused else {
            at += 1;
            continue;
        };
        for node in &layer.nodes {
            if let Some(at) = placed.nodes.get_mut(node) {
                at.why = super::place::describe(&layer, &plan);
            }
        }
        placed.layers[product] = PlacedLayer { layer, plan, depth: placed.layers[product].depth, cycles: None };
        placed.layers.remove(at);
    }
}

/// The layer `product` with the operator of layer `at` behind it, where that is possible and takes less time.
fn fused(graph: &Graph, config: &HwConfig, placed: &Placed, product: usize, at: usize) -> Option<(Layer, Plan)> {
    let (first, second) = (&placed.layers[product], &placed.layers[at]);
    let Plan::Conv(before) = &first.plan else { return None };
    let (value, view) = first.layer.output;
    let fits = first.depth == second.depth
        && matches!(first.layer.kind, Kind::Conv(_))
        && first.layer.then.len() < MOST
        && second.layer.inputs.iter().filter(|i| **i == (value, view)).count() == 1;
    if !fits || graph.is_output(value) {
        return None;
    }
    // Nobody else reads the product's result.
    let users = graph.users();
    if users[value.0].iter().any(|user| !second.layer.nodes.contains(user)) {
        return None;
    }
    let mut layer = first.layer.clone();
    let place = second.layer.inputs.iter().position(|i| *i == (value, view))?;
    // Operators of single elements stand before a pooling alone.
    let pool = matches!(second.layer.kind, Kind::Pool(_));
    if if pool { !layer.then.is_empty() } else { layer.pooling().is_some() || second.layer.output.1 != view } {
        return None;
    }
    layer.then.push(match &second.layer.kind {
        Kind::Lookup(table) => Then::Lookup(table.clone()),
        Kind::Pool(pool) => Then::Pool { pool: Box::new(pool.clone()), of: view },
        Kind::Pair(pair) if pair.b == Other::Tensor => {
            let other = second.layer.inputs[1 - place];
            if other.1 != view || !ready(placed, other.0, product) {
                return None;
            }
            layer.inputs.push(other);
            let op = if place == 0 { pair.op } else { pair.op.swapped() };
            Then::Pair { op, input: layer.inputs.len() - 1 }
        }
        _ => return None,
    });
    layer.nodes.extend(&second.layer.nodes);
    layer.name.clone_from(&second.layer.name);
    layer.output = second.layer.output;
    let plan = plan(&layer, config, true).ok()?;
    let Plan::Conv(tile) = &plan else { return None };
    let alone = if pool {
        cycles(&second.layer, &second.plan, config)
    } else {
        // Alone the operator would move its operands and its result over the bus.
        let moved = second.layer.inputs.len() as u64 + 1;
        moved * view.layout(config).bytes() as u64 / u64::from(config.bus_bytes())
    };
    (tile.cycles <= before.cycles + alone).then_some((layer, plan))
}

/// Whether a value is there before a layer begins.
fn ready(placed: &Placed, value: ValueId, layer: usize) -> bool {
    let root = placed.roots.get(&value).copied().unwrap_or(value);
    let depth = placed.layers[layer].depth;
    placed.layers[layer..].iter().all(|l| l.depth != depth || l.layer.output.0 != root)
}
