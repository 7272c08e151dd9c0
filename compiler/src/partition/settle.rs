//! Finds the final placement: takes back placements, fusions and kept results until the driver accepts every program,
//! chains and doubtful fusions whose layers take fewer cycles one by one, and fused poolings until timed programs show
//! that separating another one saves nothing.

use super::place::{Fusion, Placed, place};
use super::weigh::{self, Programs, Weighing};
use super::{Code, Offload, Options, Partition, Region, auto, explain, fuse, keep, tune};
use crate::codegen::accel::{BuildError, Planned};
use crate::cost::CostOracle;
use crate::graph::{Graph, NodeId, ValueId};
use crate::records::Replay;
use std::collections::{HashMap, HashSet};
use tilewright_driver::Search;
use tilewright_hw::HwConfig;
use tilewright_runtime::artifact::Place;
use tune::Judge;

/// A partition, and the cycles of its programs if they are known.
pub(super) struct Settled {
    pub partition: Partition,
    pub cycles: Option<u64>,
    /// Whether convolutions are joined to chains.
    pub has_chains: bool,
}

impl Settled {
    /// Whether it leaves fewer nodes to the CPU, or the same nodes and takes fewer cycles. Cycles of programs that do
    /// different work cannot be compared.
    pub fn beats(&self, other: &Settled) -> bool {
        let (left, others) = (self.on_cpu(), other.on_cpu());
        if left != others {
            return left.is_subset(&others);
        }
        self.cycles.zip(other.cycles).is_some_and(|(cycles, least)| cycles < least)
    }

    fn on_cpu(&self) -> HashSet<NodeId> {
        let cpu = self.partition.regions.iter().filter(|r| r.code == Code::Cpu);
        cpu.flat_map(|r| r.nodes.iter().copied()).collect()
    }
}

/// Plans of fused layers that are compared with the separate layers, those with the fewest estimated cycles.
const FUSED_PLANS: usize = 4;

/// Nodes that the accelerator does not get, each with the reason.
type Refused = HashMap<NodeId, String>;

/// Builds the regions of a placement; the error names the layer that prevents it.
pub(super) type Build<'a> = dyn Fn(&Placed) -> Result<Vec<Region>, BuildError> + 'a;

/// The inputs of all rounds.
struct Task<'a> {
    graph: &'a Graph,
    config: &'a HwConfig,
    options: Options,
    oracle: &'a dyn CostOracle,
    build: &'a Build<'a>,
}

/// Fusions and kept results that are taken back, each with the reason.
#[derive(Clone, Default)]
struct LeftOut {
    apart: fuse::Apart,
    away: keep::Away,
}

/// Places the graph, and places it again with less on the accelerator as long as `build` rejects a layer.
pub(super) fn settle(
    graph: &Graph,
    config: &HwConfig,
    options: Options,
    oracle: &dyn CostOracle,
    build: &Build,
) -> Settled {
    let task = Task { graph, config, options, oracle, build };
    let mut judge = task.judge();
    let mut weighing = Weighing::new(weigh::MOST_INSNS);
    let mut known = HashMap::new();
    let (mut refused, mut left_out) = (Refused::new(), LeftOut::default());
    let mut plain = task.place(Offload::All, &refused);
    loop {
        let all = task.with_level(plain.clone(), &left_out);
        let offered = task.problem(&all);
        let mut placed = task.choose(all, &offered, &refused, &left_out);
        let fusions: Vec<(Fusion, usize)> = fuse::to_confirm(&placed).collect();
        for (fusion, layer) in fusions {
            if let Some(plan) = known.get(&fusion) {
                placed.layers[layer].planned = Planned::clone(plan);
            }
        }
        match build(&placed) {
            Ok(regions) => {
                let compared = known.len();
                let apart = task.fusions_apart(judge.as_mut(), &mut known, &placed, (&plain, &left_out));
                left_out.apart.extend(apart);
                if known.len() > compared {
                    continue;
                }
                let cycles = task.timed(&mut placed, &regions);
                if let Some((fusion, why)) = task.pooling_apart(&mut weighing, &placed, cycles, (&plain, &left_out)) {
                    left_out.apart.insert(fusion, why);
                    continue;
                }
                let mut replay = Replay::default();
                let settled = (placed, regions, cycles);
                let (placed, regions, cycles) = task.tuned(judge.as_mut(), settled, &mut replay);
                let (placed, regions, cycles) = task.ordered(placed, regions, cycles);
                let costs = auto::costs(graph, &placed, &offered, &task.problem(&placed));
                let explanations = explain::explain(graph, &placed, options.offload, costs);
                let has_chains = fuse::has_chains(&placed);
                return Settled { partition: Partition { regions, explanations, replay }, cycles, has_chains };
            }
            Err(error) => {
                if !left_out.add(&placed, &error) {
                    task.refuse(&mut refused, &placed, &error);
                    plain = task.place(Offload::All, &refused);
                }
            }
        }
    }
}

impl<'a> Task<'a> {
    /// Whether timed programs confirm fusions in doubt.
    fn confirms(&self) -> bool {
        self.oracle.clock().is_some() && self.options.search_tiles && self.options.offload == Offload::All
    }

    fn judge(&self) -> Option<Judge<'a>> {
        let clock = self.oracle.clock().filter(|_| self.options.search_tiles)?;
        let known = (clock, self.oracle.records());
        Some(Judge::new(self.graph, self.config, known, &self.options).with(self.oracle.other_shapes()))
    }

    /// Places and plans the layers, without fusions and kept results.
    fn place(&self, offload: Offload, refused: &Refused) -> Placed {
        place(self.graph, self.config, &Options { offload, ..self.options }, refused, self.oracle)
    }

    /// Adds the fusions and kept results of the optimization level to a placement. All changes of plans are made here,
    /// so that costs are those of the programs that are built.
    fn with_level(&self, mut placed: Placed, left_out: &LeftOut) -> Placed {
        let options = &self.options;
        if options.fuse && !options.keep_values {
            let confirmed = self.confirms();
            let rules = fuse::Rules { apart: &left_out.apart, chain: options.chain, confirmed };
            fuse::fuse((self.graph, self.config), &mut placed, &rules);
        }
        if options.keep_on_chip && !options.keep_values {
            keep_on_chip(self.graph, self.config, &mut placed, &left_out.away);
        }
        if options.offload == Offload::Auto
            && self.oracle.clock().is_some()
            && let Ok(regions) = (self.build)(&placed)
        {
            self.timed(&mut placed, &regions);
        }
        placed
    }

    /// Selects what the accelerator gets. In `all`, it has all nodes that it can compute.
    fn choose(&self, all: Placed, offered: &auto::Problem, refused: &Refused, left_out: &LeftOut) -> Placed {
        let again = |offload, refused: &Refused| self.with_level(self.place(offload, refused), left_out);
        match self.options.offload {
            Offload::All => all,
            Offload::Auto => {
                let problem = |placed: &Placed| self.problem(placed);
                auto::choose(self.graph, &all, offered, &problem, &|kept| again(Offload::All, kept)).unwrap_or(all)
            }
            Offload::None => again(Offload::None, refused),
        }
    }

    fn problem(&self, placed: &Placed) -> auto::Problem {
        auto::Problem::new(self.graph, placed, &self.options, self.config, self.oracle)
    }

    /// Returns the cycles of all programs if they are known, and gives each layer its share.
    fn timed(&self, placed: &mut Placed, regions: &[Region]) -> Option<u64> {
        tune::share_cycles(placed, regions, self.oracle.clock()?)
    }

    /// Returns the chains and fusions in doubt whose layers take fewer cycles one by one, together with their neighbors,
    /// each with the reason to show. `known` has the best plans of those that were compared.
    fn fusions_apart(
        &self,
        judge: Option<&mut Judge>,
        known: &mut HashMap<Fusion, Planned>,
        placed: &Placed,
        (plain, left_out): (&Placed, &LeftOut),
    ) -> Vec<(Fusion, String)> {
        let Some(judge) = judge.filter(|_| self.confirms()) else { return Vec::new() };
        let mut apart = Vec::new();
        for (fusion, layer) in fuse::to_confirm(placed) {
            if known.contains_key(&fusion) {
                continue;
            }
            let mut left_out = left_out.clone();
            left_out.apart.insert(fusion, String::new());
            let other = self.with_level(plain.clone(), &left_out);
            let nodes = &placed.layers[layer].layer.nodes;
            let own = &placed.layers[layer];
            let mut best: Option<([u64; 2], Planned)> = None;
            for plan in own.planned.alternatives(&own.layer, self.config, FUSED_PLANS) {
                let mut placed = placed.clone();
                placed.layers[layer].planned = plan.clone();
                if let Some(cycles) = judge.compare([&placed, &other], nodes)
                    && best.as_ref().is_none_or(|best| cycles < best.0)
                {
                    best = Some((cycles, plan));
                }
            }
            known.insert(fusion, best.as_ref().map_or(own.planned.clone(), |best| best.1.clone()));
            if let Some(([together, alone], _)) = best
                && alone < together
            {
                let why = format!("together, with their neighbors they take {together} cycles, one by one {alone}");
                apart.push((fusion, why));
            }
        }
        apart
    }

    /// Returns a fused pooling whose separation leads to fewer cycles than `cycles`, with the reason to show.
    fn pooling_apart(
        &self,
        weighing: &mut Weighing,
        placed: &Placed,
        cycles: Option<u64>,
        (plain, left_out): (&Placed, &LeftOut),
    ) -> Option<(Fusion, String)> {
        let together = cycles.filter(|_| self.options.offload == Offload::All)?;
        let without = |fusion| {
            let mut left_out = left_out.clone();
            left_out.apart.insert(fusion, String::new());
            let mut other = self.with_level(plain.clone(), &left_out);
            let found = (self.build)(&other).unwrap_or_default();
            let cycles = self.timed(&mut other, &found).filter(|_| !found.is_empty());
            Programs { cycles, insns: found.iter().map(Region::insns).sum() }
        };
        let (fusion, alone) = weighing.dearest(fuse::poolings(placed), together, &without)?;
        Some((fusion, format!("fused, all programs take {together} cycles, otherwise {alone}")))
    }

    /// Uses the tiles of records and those that the judge selects, if all programs then take fewer cycles.
    fn tuned(
        &self,
        judge: Option<&mut Judge>,
        settled: (Placed, Vec<Region>, Option<u64>),
        replay: &mut Replay,
    ) -> (Placed, Vec<Region>, Option<u64>) {
        let Some(judge) = judge else { return settled };
        let (estimated, mut best) = (settled.0.clone(), settled);
        // Plans are compared in small programs, so the best ones there can be worse in the whole program.
        for &timing in judge.timings() {
            let mut tuned = estimated.clone();
            if let Some(least) = best.2
                && {
                    let (changed, how) = judge.tune(&mut tuned, timing);
                    *replay = how;
                    changed
                }
                && let Ok(found) = (self.build)(&tuned)
                && let Some(less) = self.timed(&mut tuned, &found).filter(|cycles| *cycles < least)
            {
                best = (tuned, found, Some(less));
            }
        }
        best
    }

    /// Compares more orders of each program's instructions.
    fn ordered(
        &self,
        mut placed: Placed,
        mut regions: Vec<Region>,
        cycles: Option<u64>,
    ) -> (Placed, Vec<Region>, Option<u64>) {
        let Some(clock) = self.oracle.clock() else { return (placed, regions, cycles) };
        for region in &mut regions {
            if let Code::Accel(region) = &mut region.code {
                region.order(clock, &Search::ALL);
            }
        }
        let cycles = self.timed(&mut placed, &regions);
        (placed, regions, cycles)
    }

    /// Refuses the nodes of a rejected layer, so that each round has one layer less; refuses all nodes if the layer is
    /// unknown.
    fn refuse(&self, refused: &mut Refused, placed: &Placed, error: &BuildError) {
        let before = refused.len();
        let nodes = suspects(placed, error).flat_map(|l| l.layer.nodes.iter().copied());
        refused.extend(nodes.map(|n| (n, error.to_string())));
        if refused.len() == before {
            refused.extend(self.graph.nodes().map(|(n, _)| (n, error.to_string())));
        }
    }
}

impl LeftOut {
    /// Takes back kept results or fusions that can be the reason for a rejected program, so that its layers get another
    /// round. Returns false if there are none.
    fn add(&mut self, placed: &Placed, error: &BuildError) -> bool {
        let kept = keep::suspects(placed, &error.layer);
        if !kept.is_empty() {
            self.away.extend(kept.into_iter().map(|value| (value, error.to_string())));
            return true;
        }
        let before = self.apart.len();
        let last = suspects(placed, error).filter_map(|l| fuse::last(&l.layer, &l.planned));
        self.apart.extend(last.map(|fusion| (fusion, error.to_string())));
        self.apart.len() > before
    }
}

/// Returns the layer that an error names, or all layers if it names none.
fn suspects<'p>(placed: &'p Placed, error: &BuildError) -> impl Iterator<Item = &'p super::place::PlacedLayer> {
    let named = placed.layers.iter().position(|l| l.layer.name == error.layer);
    named.map_or(&placed.layers[..], |at| &placed.layers[at..=at]).iter()
}

/// Keeps results in inp between the layers of each program.
fn keep_on_chip(graph: &Graph, config: &HwConfig, placed: &mut Placed, away: &keep::Away) {
    let users = graph.users();
    let places: HashMap<NodeId, usize> =
        placed.nodes.iter().filter(|(_, at)| at.place == Place::Accel).map(|(&node, at)| (node, at.depth)).collect();
    let leaves = |value: ValueId, depth: usize| {
        graph.is_output(value) || users[value.0].iter().any(|user| places.get(user) != Some(&depth))
    };
    keep::keep(config, placed, &leaves, away);
}
