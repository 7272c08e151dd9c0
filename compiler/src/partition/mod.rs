//! Which nodes run where, in regions as large as possible, and why.
//!
//! A region's nodes run in one place without a look outside in between. Accelerator regions come with their program; the
//! nodes of CPU regions are left to a [`crate::backend::Backend`].

mod auto;
mod cut;
mod decide;
mod explain;
mod fuse;
mod keep;
mod layouts;
mod place;
mod settle;
mod shared;
mod tune;
mod weigh;

pub use explain::Explanation;

use crate::codegen::accel::{self, Aliases, BuildError, Constants};
use crate::cost::{Analytic, CostOracle};
use crate::graph::{Graph, NodeId, ValueId};
use crate::passes::OptLevel;
use place::Placed;
use settle::settle;
use std::collections::{BTreeMap, HashSet};
use tilewright_driver::AccelProgram;
use tilewright_hw::HwConfig;
use tilewright_runtime::artifact::{LayerEnd, Packing, Place, TensorPlace};

/// What is offered to the accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Offload {
    /// Every operator that it can compute.
    #[default]
    All,
    /// What takes less time there, with what it takes to bring its operands there and its results back.
    Auto,
    /// Nothing.
    None,
}

impl Offload {
    /// Everything where there is an accelerator, else nothing.
    pub fn all_if(accelerator: bool) -> Offload {
        if accelerator { Offload::All } else { Offload::None }
    }
}

/// How a graph is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What is offered to the accelerator.
    pub offload: Offload,
    /// Whether the host reads what every layer writes, each in memory of its own, so that all can be looked at after a run.
    pub keep_values: bool,
    /// Whether operators of single elements and poolings are taken into the tiles of the product before them.
    pub fuse: bool,
    /// Whether results stay in inp between layers where they fit.
    pub keep_on_chip: bool,
    /// Whether what follows each other in one place becomes one program, or one function where that is possible; else every
    /// layer of the accelerator has a program, and every node of the CPU a function.
    pub join: bool,
    /// Whether the tiles of products are those of the fewest estimated cycles; else they are the first that fit.
    pub search_tiles: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            offload: Offload::All,
            keep_values: false,
            fuse: false,
            keep_on_chip: false,
            join: true,
            search_tiles: true,
        }
    }
}

impl Options {
    /// Those of a level of optimisation.
    pub fn of_level(level: OptLevel) -> Options {
        Options {
            join: level >= OptLevel::O1,
            search_tiles: level >= OptLevel::O2,
            fuse: level >= OptLevel::O3,
            keep_on_chip: level >= OptLevel::O3,
            ..Options::default()
        }
    }

    /// The same with what the accelerator gains at a level taken away, level by level.
    fn below(self) -> Vec<Options> {
        let plain = Options { fuse: false, keep_on_chip: false, ..self };
        let first = Options { search_tiles: false, ..plain };
        let mut all = Vec::new();
        if plain != self {
            all.push(plain);
        }
        if first != plain {
            all.push(first);
        }
        all
    }
}

impl From<Offload> for Options {
    fn from(offload: Offload) -> Options {
        Options { offload, ..Options::default() }
    }
}

/// The graph in regions.
#[derive(Debug, Clone, PartialEq)]
pub struct Partition {
    /// Regions in an order in which every operand is there when it is read.
    pub regions: Vec<Region>,
    /// Each node but constants, in the graph's order.
    pub explanations: Vec<Explanation>,
}

impl Partition {
    /// Adds what passes say of nodes, by their names, to why these run on the CPU.
    pub fn tell(&mut self, notes: &BTreeMap<String, String>) {
        for e in self.explanations.iter_mut().filter(|e| e.place == Place::Cpu) {
            if let Some(note) = notes.get(&e.name) {
                e.why += &format!("; {note}");
            }
        }
    }
}

/// Nodes that run in one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// The nodes, in the graph's order.
    pub nodes: Vec<NodeId>,
    /// How they run.
    pub code: Code,
}

impl Region {
    /// Instructions of its program, if it has one.
    fn insns(&self) -> usize {
        match &self.code {
            Code::Cpu => 0,
            Code::Accel(accel) => accel.program.insn_count(),
        }
    }

    /// Where the nodes run.
    pub fn place(&self) -> Place {
        match self.code {
            Code::Cpu => Place::Cpu,
            Code::Accel(_) => Place::Accel,
        }
    }
}

/// How a region runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Code {
    /// On the CPU, by whatever compiles it.
    Cpu,
    /// On the accelerator.
    Accel(Box<AccelRegion>),
}

/// A region's program and the values at its border, each with its place in the program's list.
#[derive(Debug, Clone, PartialEq)]
pub struct AccelRegion {
    /// The program.
    pub program: AccelProgram,
    /// Values that the host turns into the device's layout, in the order of the program's inputs. One value may be
    /// there twice, in two layouts.
    pub inputs: Vec<(ValueId, Packing)>,
    /// Values that the host turns back, in the order of the program's outputs.
    pub outputs: Vec<(ValueId, Packing)>,
    /// Where tensors lie in the program's memory, and when.
    pub tensors: Vec<TensorPlace>,
    /// The program's layers, in the order of their instructions.
    pub layers: Vec<LayerEnd>,
}

/// Splits a graph in integer form into regions for a configuration, and builds the accelerator's programs. What operators
/// take is estimated: the same input gives the same regions on every machine.
///
/// Nothing is refused: what the accelerator cannot compute, for whatever reason, goes to the CPU and says why.
pub fn partition(graph: &Graph, config: &HwConfig, options: impl Into<Options>) -> Partition {
    partition_by(graph, config, options, &Analytic { config })
}

/// The same with costs that someone else knows.
pub fn partition_by(
    graph: &Graph,
    config: &HwConfig,
    options: impl Into<Options>,
    oracle: &dyn CostOracle,
) -> Partition {
    let options = options.into();
    let mut best = settle(graph, config, options, oracle, &|placed| regions(graph, config, placed, &options));
    if oracle.clock().is_none() || options.offload != Offload::All {
        return best.partition;
    }
    // What a level adds is no loss where the level below is known to take less.
    for options in options.below() {
        let below = settle(graph, config, options, oracle, &|placed| regions(graph, config, placed, &options));
        if below.beats(&best) {
            best = below;
        }
    }
    best.partition
}

fn regions(graph: &Graph, config: &HwConfig, placed: &Placed, options: &Options) -> Result<Vec<Region>, BuildError> {
    let mut grouped: BTreeMap<(usize, bool), Vec<NodeId>> = BTreeMap::new();
    for (node, at) in &placed.nodes {
        let key = (at.depth, at.place == Place::Accel);
        grouped.entry(key).or_default().push(*node);
    }
    // A backend joins nodes of one region alone.
    let whole = |on_accel: bool| on_accel || options.join;
    let (whole, single): (Vec<_>, Vec<_>) = grouped.into_iter().partition(|((_, on_accel), _)| whole(*on_accel));
    let single = single.into_iter().flat_map(|(key, nodes)| nodes.into_iter().map(move |node| (key, vec![node])));
    let mut all: Vec<((usize, bool), Vec<NodeId>)> = whole.into_iter().chain(single).collect();
    all.sort_by_key(|(key, _)| *key);
    let by_depth = placed.by_depth();
    all.into_iter()
        .map(|((depth, on_accel), nodes)| {
            let code = if on_accel {
                Code::Accel(Box::new(accel_region(
                    graph,
                    config,
                    placed,
                    &by_depth[&depth],
                    &nodes,
                    options.keep_values,
                )?))
            } else {
                Code::Cpu
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
    keep: bool,
) -> Result<AccelRegion, BuildError> {
    let layers: Vec<_> =
        layers.iter().map(|&i| &placed.layers[i]).map(|l| (l.layer.clone(), l.planned.clone())).collect();
    let made: HashSet<ValueId> = layers.iter().map(|(l, _)| l.output.0).collect();
    let inside: HashSet<NodeId> = nodes.iter().copied().collect();
    let root = |v: ValueId| placed.roots.get(&v).copied().unwrap_or(v);
    let seen = |v: ValueId| placed.seen.get(&v).copied();
    let mut outputs = Vec::new();
    for value in nodes.iter().map(|&n| graph.node(n).output()) {
        let leaves = keep || graph.is_output(value) || graph.users()[value.0].iter().any(|u| !inside.contains(u));
        // Sums between a product and its requantization never leave the layer.
        if leaves && made.contains(&root(value)) {
            outputs.push(value);
        }
    }
    let aliases = Aliases { root: &root, view: &seen };
    let built = accel::build(graph, config, &layers, &outputs, aliases, Constants::Given)?;
    let pack =
        |list: Vec<(ValueId, accel::View)>| list.into_iter().map(|(v, view)| (v, view.packing(config))).collect();
    let (inputs, outputs) = (pack(built.inputs), pack(built.outputs));
    Ok(AccelRegion { program: built.program, inputs, outputs, tensors: built.tensors, layers: built.layers })
}

#[cfg(test)]
mod tests;
