//! Operators of single elements and poolings taken into the tiles of the product before them, so that its results are
//! neither stored nor loaded in between.

use super::place::{Placed, PlacedLayer};
use crate::codegen::accel::{Kind, Layer, Other, Plan, Then, cycles, plan};
use crate::graph::{Graph, NodeId, ValueId};
use std::collections::HashMap;
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

/// The poolings in tiles of products.
pub(super) fn poolings(placed: &Placed) -> impl Iterator<Item = Fusion> {
    placed.layers.iter().filter(|l| l.layer.pooling().is_some()).filter_map(|l| last(&l.layer))
}

/// What must not be fused, each with the reason.
pub(super) type Apart = HashMap<Fusion, String>;

/// Fuses what can be fused, but for what stays `apart`.
pub(super) fn fuse(graph: &Graph, config: &HwConfig, placed: &mut Placed, apart: &Apart) {
    let mut at = 0;
    while at < placed.layers.len() {
        let mut reason = None;
        let found = |product| match fused(graph, config, placed, product, at) {
            Ok((layer, plan)) => {
                let why = last(&layer).and_then(|fusion| apart.get(&fusion));
                reason = why.cloned().or(reason.take());
                why.is_none().then_some((product, layer, plan))
            }
            Err(why) => {
                reason = why.or(reason.take());
                None
            }
        };
        let Some((product, layer, plan)) = (0..at).rev().find_map(found) else {
            let alone = &placed.layers[at].layer;
            if let (Kind::Pool(_), Some(reason)) = (&alone.kind, reason) {
                let note = format!("not in the tiles of the product before it: {reason}");
                placed.notes.extend(alone.nodes.iter().map(|&node| (node, note.clone())));
            }
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

/// The layer `product` with the operator of layer `at` behind it.
///
/// # Errors
/// Where that is not possible, or takes more time; the reason, where the operator reads nothing but the product's results.
fn fused(
    graph: &Graph,
    config: &HwConfig,
    placed: &Placed,
    product: usize,
    at: usize,
) -> Result<(Layer, Plan), Option<String>> {
    let (first, second) = (&placed.layers[product], &placed.layers[at]);
    let pool = matches!(second.layer.kind, Kind::Pool(_));
    let (value, view) = first.layer.output;
    let place = second.layer.inputs.iter().position(|i| *i == (value, view)).ok_or(None)?;
    let fits = first.depth == second.depth
        && matches!(first.layer.kind, Kind::Conv(_))
        && (matches!(first.plan, Plan::Conv(_)) || pool && matches!(first.plan, Plan::Depthwise(_)))
        && first.layer.then.len() < MOST
        && second.layer.inputs.iter().filter(|i| **i == (value, view)).count() == 1;
    if !fits {
        return Err(None);
    }
    // Nobody else reads the product's result.
    let users = graph.users();
    if graph.is_output(value) || users[value.0].iter().any(|user| !second.layer.nodes.contains(user)) {
        return Err(Some("its results are read elsewhere too".into()));
    }
    let mut layer = first.layer.clone();
    let other = match &second.layer.kind {
        _ if layer.pooling().is_some() => return Err(Some("a pooling is in them already".into())),
        Kind::Pool(_) if !layer.then.is_empty() => return Err(Some("other operators are in them already".into())),
        Kind::Pool(pool) => Then::Pool { pool: Box::new(pool.clone()), of: view },
        _ if second.layer.output.1 != view => return Err(None),
        Kind::Lookup(table) => Then::Lookup(table.clone()),
        Kind::Pair(pair) if pair.b == Other::Tensor => {
            let other = second.layer.inputs[1 - place];
            if other.1 != view || !ready(placed, other.0, product) {
                return Err(None);
            }
            layer.inputs.push(other);
            let op = if place == 0 { pair.op } else { pair.op.swapped() };
            Then::Pair { op, input: layer.inputs.len() - 1 }
        }
        _ => return Err(None),
    };
    layer.then.push(other);
    layer.nodes.extend(&second.layer.nodes);
    layer.name.clone_from(&second.layer.name);
    layer.output = second.layer.output;
    let plan = plan(&layer, config, true).map_err(Some)?;
    let alone = if pool {
        cycles(&second.layer, &second.plan, config)
    } else {
        // Alone the operator would move its operands and its result over the bus.
        let moved = second.layer.inputs.len() as u64 + 1;
        moved * view.layout(config).bytes() as u64 / u64::from(config.bus_bytes())
    };
    let (together, before) = (cycles(&layer, &plan, config), cycles(&first.layer, &first.plan, config));
    if together > before + alone {
        return Err(Some(format!("both take {} cycles by the estimate, there they take {together}", before + alone)));
    }
    Ok((layer, plan))
}

/// Whether a value is there before a layer begins.
fn ready(placed: &Placed, value: ValueId, layer: usize) -> bool {
    let root = placed.roots.get(&value).copied().unwrap_or(value);
    let depth = placed.layers[layer].depth;
    placed.layers[layer..].iter().all(|l| l.depth != depth || l.layer.output.0 != root)
}
