//! Decides which element-wise operators and poolings are fused into the tiles of the product before them.

use super::place::{Fusion, Placed, PlacedLayer};
use crate::codegen::accel::{self, FuseError, Fused, Layer, Neighbors, Planned};
use crate::graph::{Graph, ValueId};
use std::collections::HashMap;
use tilewright_hw::HwConfig;

/// Returns the operator that was fused into a layer last.
pub(super) fn last(layer: &Layer, planned: &Planned) -> Option<Fusion> {
    if accel::fused(planned) == 0 {
        return None;
    }
    Some((*layer.nodes.first()?, layer.output.0))
}

/// Returns the fused poolings.
pub(super) fn poolings(placed: &Placed) -> impl Iterator<Item = Fusion> {
    let pooled = placed.layers.iter().filter(|l| accel::has_fused_pooling(&l.planned));
    pooled.filter_map(|l| last(&l.layer, &l.planned))
}

/// Returns whether there are chains.
pub(super) fn has_chains(placed: &Placed) -> bool {
    placed.layers.iter().any(|l| accel::is_chain(&l.planned))
}

/// Returns the fusions that timed programs are to confirm, each with the index of its layer: chains, and those whose
/// separate layers take fewer cycles by the estimate.
pub(super) fn to_confirm(placed: &Placed) -> impl Iterator<Item = (Fusion, usize)> {
    let all = placed.layers.iter().enumerate().filter_map(|(i, l)| Some((last(&l.layer, &l.planned)?, i)));
    all.filter(|(fusion, i)| placed.doubted.contains(fusion) || accel::is_chain(&placed.layers[*i].planned))
}

/// Operators that must not be fused, each with the reason.
pub(super) type Apart = HashMap<Fusion, String>;

/// What decides about fusions besides their estimates.
pub(super) struct Rules<'a> {
    /// Operators that are not fused.
    pub apart: &'a Apart,
    /// Whether convolutions can be joined to chains.
    pub chain: bool,
    /// Whether timed programs will confirm fusions in doubt. Otherwise there are none.
    pub confirmed: bool,
}

/// Fuses all operators that can be fused.
pub(super) fn fuse((graph, config): (&Graph, &HwConfig), placed: &mut Placed, rules: &Rules) {
    let mut at = 0;
    while at < placed.layers.len() {
        let mut reason = None;
        let found = |product| match fused(graph, config, placed, product, at) {
            Ok(fused) if !rules.chain && accel::is_chain(&fused.planned) => None,
            Ok(fused) => {
                let why = last(&fused.layer, &fused.planned).and_then(|fusion| rules.apart.get(&fusion));
                let why = why.or(fused.doubt.as_ref().filter(|_| !rules.confirmed)).cloned();
                let decided = why.is_none();
                reason = why.or(reason.take());
                decided.then_some((product, fused))
            }
            Err(FuseError::Reason(why)) => {
                reason = Some(why);
                None
            }
            Err(FuseError::Unfit) => None,
        };
        let Some((product, Fused { layer, planned, doubt })) = (0..at).rev().find_map(found) else {
            let alone = &placed.layers[at].layer;
            let what = match &placed.layers[at].planned {
                Planned::Pool(..) | Planned::Pairwise(..) => Some("not fused into the product before it"),
                planned if accel::continues_chain(planned) => Some("not in one chain with the product before it"),
                _ => None,
            };
            if let (Some(what), Some(reason)) = (what, reason) {
                let note = format!("{what}: {reason}");
                placed.notes.extend(alone.nodes.iter().map(|&node| (node, note.clone())));
            }
            at += 1;
            continue;
        };
        for node in &layer.nodes {
            if let Some(at) = placed.nodes.get_mut(node) {
                at.why = planned.describe(&layer);
            }
        }
        placed.doubted.extend(doubt.and_then(|_| last(&layer, &planned)));
        placed.layers[product] = PlacedLayer { layer, planned, depth: placed.layers[product].depth, cycles: None };
        placed.layers.remove(at);
    }
}

/// Returns layer `product` with the operator of layer `at` fused into its tiles.
///
/// # Errors
/// The same as [`accel::fuse`].
fn fused(graph: &Graph, config: &HwConfig, placed: &Placed, product: usize, at: usize) -> Result<Fused, FuseError> {
    let (first, second) = (&placed.layers[product], &placed.layers[at]);
    if first.depth != second.depth {
        return Err(FuseError::Unfit);
    }
    let (value, users) = (first.layer.output.0, graph.users());
    let alone = !graph.is_output(value) && users[value.0].iter().all(|user| second.layer.nodes.contains(user));
    let pair = Neighbors {
        first: (&first.layer, &first.planned),
        second: (&second.layer, &second.planned),
        ready: &|other| ready(placed, other, product),
    };
    accel::fuse(pair, alone, config)
}

/// Whether a value is available before a layer begins.
fn ready(placed: &Placed, value: ValueId, layer: usize) -> bool {
    let root = placed.roots.get(&value).copied().unwrap_or(value);
    let depth = placed.layers[layer].depth;
    placed.layers[layer..].iter().all(|l| l.depth != depth || l.layer.output.0 != root)
}
