//! Decides where each node runs and why, and groups nodes into regions as large as possible.
//!
//! The nodes of a region run in one place without data from other places in between. Accelerator regions come with
//! their program; a [`crate::backend::Backend`] compiles the nodes of CPU regions.

mod auto;
mod cut;
mod decide;
mod explain;
mod fuse;
mod keep;
mod layouts;
mod options;
mod place;
mod region;
mod settle;
mod shared;
mod tune;
mod weigh;
pub(crate) mod window;

pub use explain::Explanation;
pub use options::{Offload, Options};
pub use region::{AccelRegion, Code, Partition, Region};

use crate::codegen::accel::BuildError;
use crate::cost::{Analytic, Clock, CostOracle};
use crate::graph::{Graph, NodeId, ValueId};
use place::Placed;
use region::RegionSource;
use settle::settle;
use std::collections::{BTreeMap, HashSet};
use tilewright_driver::Search;
use tilewright_hw::HwConfig;
use tilewright_runtime::artifact::Place;

/// Splits a graph in integer form into regions for a configuration, and builds the accelerator's programs.
///
/// Costs of operators are estimated, so the same input gives the same regions on every machine. This never fails: nodes
/// that the accelerator cannot compute go to the CPU, and [`Partition::explanations`] gives the reason.
pub fn partition(graph: &Graph, config: &HwConfig, options: impl Into<Options>) -> Partition {
    partition_by(graph, config, options, &Analytic { config })
}

/// Like [`partition`], with costs from an oracle.
pub fn partition_by(
    graph: &Graph,
    config: &HwConfig,
    options: impl Into<Options>,
    oracle: &dyn CostOracle,
) -> Partition {
    let options = options.into();
    let clock = oracle.clock();
    let settled = |options: Options| {
        settle(graph, config, options, oracle, &|placed| regions(graph, config, placed, &options, clock))
    };
    // At a further shape, plans are taken over from the first one, and lower levels are not tried.
    let further = oracle.other_shapes().is_some_and(|others| !others.is_empty());
    let mut best = settled(options);
    if clock.is_none() || options.offload != Offload::All || further {
        tune::keep_plans(&best.partition, config, oracle);
        return best.partition;
    }
    // If a lower optimization level is known to need fewer cycles, use it.
    for options in options.below(best.has_chains) {
        let below = settled(options);
        if below.beats(&best) {
            best = below;
        }
    }
    tune::keep_plans(&best.partition, config, oracle);
    best.partition
}

/// What a region's nodes have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Cpu,
    Own,
    Accel,
}

fn regions(
    graph: &Graph,
    config: &HwConfig,
    placed: &Placed,
    options: &Options,
    clock: Option<&dyn Clock>,
) -> Result<Vec<Region>, BuildError> {
    let mut grouped: BTreeMap<(usize, Kind), Vec<NodeId>> = BTreeMap::new();
    for (node, at) in &placed.nodes {
        let kind = match (&graph.node(*node).op, at.place) {
            (op, _) if op.is_own_step() => Kind::Own,
            (_, Place::Accel) => Kind::Accel,
            (_, Place::Cpu | Place::Cuda) => Kind::Cpu,
        };
        grouped.entry((at.depth, kind)).or_default().push(*node);
    }
    // Backends only join nodes within a region.
    let whole = |kind: Kind| kind == Kind::Accel || kind == Kind::Cpu && options.join;
    let (whole, single): (Vec<_>, Vec<_>) = grouped.into_iter().partition(|((_, kind), _)| whole(*kind));
    let single = single.into_iter().flat_map(|(key, nodes)| nodes.into_iter().map(move |node| (key, vec![node])));
    let mut all: Vec<((usize, Kind), Vec<NodeId>)> = whole.into_iter().chain(single).collect();
    all.sort_by_key(|(key, _)| *key);
    let by_depth = placed.by_depth();
    all.into_iter()
        .map(|((depth, kind), nodes)| {
            let code = match kind {
                Kind::Own => Code::Own,
                Kind::Cpu => Code::Cpu,
                Kind::Accel => {
                    let mut region = accel_region(graph, config, placed, &by_depth[&depth], &nodes, options)?;
                    if let Some(clock) = clock {
                        region.order(clock, &[Search::FIRST]);
                    }
                    Code::Accel(Box::new(region))
                }
            };
            Ok(Region { nodes, code })
        })
        .collect()
}

fn accel_region(
    graph: &Graph,
    config: &HwConfig,
    placed: &Placed,
    layers: &[usize],
    nodes: &[NodeId],
    options: &Options,
) -> Result<AccelRegion, BuildError> {
    let layers: Vec<_> =
        layers.iter().map(|&i| &placed.layers[i]).map(|l| (l.layer.clone(), l.planned.clone())).collect();
    let made: HashSet<ValueId> = layers.iter().map(|(l, _)| l.output.0).collect();
    let inside: HashSet<NodeId> = nodes.iter().copied().collect();
    let root = |v: ValueId| placed.roots.get(&v).copied().unwrap_or(v);
    let mut outputs = Vec::new();
    for value in nodes.iter().map(|&n| graph.node(n).output()) {
        let leaves =
            options.keep_values || graph.is_output(value) || graph.users()[value.0].iter().any(|u| !inside.contains(u));
        // Sums between a product and its requantization never leave the layer.
        if leaves && made.contains(&root(value)) {
            outputs.push(value);
        }
    }
    let reorder = options.reorder && !options.keep_values;
    RegionSource { layers, outputs, roots: placed.roots.clone(), seen: placed.seen.clone(), reorder }
        .build(graph, config)
}

#[cfg(test)]
pub(crate) mod tests;
