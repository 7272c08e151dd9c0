//! Gives layers the plans of records, and compares tiles of the others by exact cycles, if there is a [`Clock`].
//!
//! The estimate of a layer ignores how it overlaps with its neighbors, and how a few more or fewer instructions affect
//! a busy bus. So the plans with the fewest estimated cycles are each built together with the layers before and after,
//! and the plan with the fewest exact cycles is used.

use super::place::Placed;
use super::window::{Surroundings, Window, times};
use super::{Code, Options, Partition, Region};
use crate::codegen::accel::{Layer, Planned};
use crate::cost::{Clock, CostOracle};
use crate::graph::{Graph, NodeId};
use crate::records::{Elsewhere, OtherShapes, Records, Replay};
use std::collections::{HashMap, HashSet};
use tilewright_hw::HwConfig;

/// Maximum number of plans of a layer that are compared.
const MOST: usize = 8;

/// Maximum number of instructions of all programs that are timed for one partition; four times as many if it is
/// thorough. This limits the compile time, in the same way on every machine.
const MOST_INSNS: usize = 100_000;

/// Percentage of the least estimated cycles that a plan of the first shape may take at a further one.
const MOST_ELSEWHERE: u64 = 105;

/// Which of a program's orders the judge times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timing {
    /// The order of the layers.
    Program,
    /// The order that is most often the best one.
    Searched,
}

/// A clock with a cache of its answers, because networks repeat their layers.
pub(super) struct Judge<'a> {
    graph: &'a Graph,
    config: &'a HwConfig,
    clock: &'a dyn Clock,
    records: Option<&'a Records>,
    others: Option<&'a OtherShapes>,
    known: HashMap<String, [Option<u64>; 2]>,
    /// Whether programs are also timed in the order that a search finds.
    reorder: bool,
    /// Whether results can stay on the chip: the level at which compilation may take longer.
    thorough: bool,
    /// Plans of records of the same layers next to other neighbors, by the index of the layer.
    hints: HashMap<usize, Planned>,
    /// Number of instructions that can still be timed.
    left: usize,
}

impl<'a> Judge<'a> {
    /// A new judge for the programs that the options allow; its limit is larger if results can stay on the chip.
    pub fn new(
        graph: &'a Graph,
        config: &'a HwConfig,
        (clock, records): (&'a dyn Clock, Option<&'a Records>),
        options: &Options,
    ) -> Judge<'a> {
        let thorough = options.keep_on_chip;
        let left = if thorough { 4 * MOST_INSNS } else { MOST_INSNS };
        let reorder = options.reorder && !options.keep_values;
        let (known, hints, others) = (HashMap::new(), HashMap::new(), None);
        Judge { graph, config, clock, records, others, known, reorder, thorough, hints, left }
    }

    /// Takes over plans of the first shape, if this is a further one.
    #[must_use]
    pub fn with(mut self, others: Option<&'a OtherShapes>) -> Judge<'a> {
        self.others = others.filter(|others| !others.is_empty());
        self
    }

    /// The orders in which plans are compared. A second order takes as much time again.
    pub fn timings(&self) -> &'static [Timing] {
        match (self.reorder, self.thorough) {
            (true, true) => &[Timing::Searched, Timing::Program],
            (true, false) => &[Timing::Searched],
            (false, _) => &[Timing::Program],
        }
    }

    /// Gives each layer the plan of its record, or else the plan with the fewest cycles. Returns whether that changed a
    /// plan, and how records were used.
    pub fn tune(&mut self, placed: &mut Placed, timing: Timing) -> (bool, Replay) {
        let before: Vec<Planned> = placed.layers.iter().map(|l| l.planned.clone()).collect();
        let mut replay = Replay::default();
        let mut open = Vec::new();
        for group in placed.by_depth().into_values() {
            for at in 0..group.len() {
                if !self.replay(placed, &group, at, &mut replay) {
                    open.push((group.clone(), at));
                }
            }
        }
        for (group, at) in open {
            match self.others {
                Some(others) => self.as_elsewhere(placed, group[at], others),
                None => self.tune_layer(placed, &group, at, timing),
            }
        }
        (placed.layers.iter().zip(&before).any(|(l, planned)| l.planned != *planned), replay)
    }

    /// Gives a layer the plan of its record. Returns whether it has one that fits. A record of the same layer next to
    /// other neighbors is only remembered: its plan is compared with others.
    fn replay(&mut self, placed: &mut Placed, group: &[usize], at: usize, replay: &mut Replay) -> bool {
        let Some(records) = self.records else { return false };
        let window = window(placed, group, at);
        let around = self.around(placed);
        let workload = window.layer(&around);
        let (layer, planned) = window.own();
        let Some(decisions) = records.find(&workload, &window.near(&around)) else {
            let hint = records.anywhere(&workload).and_then(|d| planned.with(d, layer, self.config).ok());
            self.hints.extend(hint.map(|hint| (group[at], hint)));
            replay.unknown += 1;
            return false;
        };
        match planned.with(decisions, layer, self.config) {
            Ok(planned) => {
                replay.used += 1;
                set_plan(placed, group[at], planned);
                true
            }
            Err(reason) => {
                *replay.refused.entry(reason).or_default() += 1;
                false
            }
        }
    }

    /// Gives a layer the plan that it has at the first shape, if its estimate is not much worse than the best one. If the
    /// decisions do not fit, the plan at the same place among the alternatives is meant.
    fn as_elsewhere(&self, placed: &mut Placed, index: usize, others: &OtherShapes) {
        let own = &placed.layers[index];
        let Some(Elsewhere { decisions, rank }) = others.find(&own.layer.name) else { return };
        let most = own.planned.cycles(&own.layer, self.config).saturating_mul(MOST_ELSEWHERE) / 100;
        let near = |planned: &Planned| planned.cycles(&own.layer, self.config) <= most;
        let ranked = || {
            let mut alternatives = own.planned.alternatives(&own.layer, self.config, MOST).into_iter();
            alternatives.nth(rank?).filter(near)
        };
        let same = own.planned.with(&decisions, &own.layer, self.config).ok().filter(near);
        if let Some(planned) = same.or_else(ranked) {
            set_plan(placed, index, planned);
        }
    }

    fn tune_layer(&mut self, placed: &mut Placed, group: &[usize], at: usize, timing: Timing) {
        let own = &placed.layers[group[at]];
        let mut choices = own.planned.alternatives(&own.layer, self.config, MOST);
        let hint = self.hints.remove(&group[at]);
        if choices.len() < 2 && hint.is_none() {
            return;
        }
        choices.extend(hint);
        let window = window(placed, group, at);
        let Some(mut best) = self.cycles(placed, &window, timing) else { return };
        let mut planned = window.own().1.clone();
        for choice in choices {
            let changed = window.with(choice);
            if let Some(cycles) = self.cycles(placed, &changed, timing)
                && cycles < best
            {
                (best, planned) = (cycles, changed.own().1.clone());
            }
        }
        set_plan(placed, group[at], planned);
    }

    /// Compares two placements by the fewest cycles of the layers that compute some nodes, with the layers before and
    /// after, as separate programs. Layers that only one placement fuses with those are included in both.
    pub fn compare(&mut self, placements: [&Placed; 2], nodes: &[NodeId]) -> Option<[u64; 2]> {
        let mut nodes: HashSet<NodeId> = nodes.iter().copied().collect();
        loop {
            let before = nodes.len();
            for layer in placements.iter().flat_map(|placed| &placed.layers) {
                if layer.layer.nodes.iter().any(|node| nodes.contains(node)) {
                    nodes.extend(&layer.layer.nodes);
                }
            }
            if nodes.len() == before {
                break;
            }
        }
        // The number of chains limits these programs.
        let left = std::mem::replace(&mut self.left, usize::MAX);
        let [a, b] = placements.map(|placed| self.around_nodes(placed, &nodes));
        self.left = left;
        Some([a?, b?])
    }

    fn around_nodes(&mut self, placed: &Placed, nodes: &HashSet<NodeId>) -> Option<u64> {
        let own = |i: &usize| placed.layers[*i].layer.nodes.iter().any(|node| nodes.contains(node));
        let group = placed.by_depth().into_values().find(|group| group.iter().any(own))?;
        let (first, last) = (group.iter().position(own)?, group.iter().rposition(own)?);
        let some = &group[first.saturating_sub(1)..(last + 2).min(group.len())];
        let layer = |i: &usize| (placed.layers[*i].layer.clone(), placed.layers[*i].planned.clone());
        let window = Window { layers: some.iter().map(layer).collect(), own: 0 };
        let timings = self.timings();
        timings.iter().filter_map(|&timing| self.cycles(placed, &window, timing)).min()
    }

    fn around<'p>(&self, placed: &'p Placed) -> Surroundings<'p>
    where
        'a: 'p,
    {
        Surroundings { graph: self.graph, config: self.config, roots: &placed.roots, seen: &placed.seen }
    }

    /// Returns the cycles of a window as a separate program; `None` if they are unknown, the program cannot be built,
    /// or the limit is reached.
    fn cycles(&mut self, placed: &Placed, window: &Window, timing: Timing) -> Option<u64> {
        let around = self.around(placed);
        let key = window.key(&around);
        if let Some(known) = self.known.get(&key) {
            return known[timing as usize];
        }
        if self.left == 0 {
            return None;
        }
        let built = window.build(&around).ok();
        self.left = self.left.saturating_sub(built.as_ref().map_or(0, |b| b.recording.len()));
        let wanted = [Timing::Program, Timing::Searched].map(|timing| self.timings().contains(&timing));
        let times = built.map_or([None; 2], |b| times(&b, self.clock, wanted));
        self.known.insert(key, times);
        times[timing as usize]
    }
}

/// The window around a layer of a placement.
fn window(placed: &Placed, group: &[usize], at: usize) -> Window {
    let layer = |i: usize| &placed.layers[group[i]];
    Window::around(at, group.len(), |i| (layer(i).layer.clone(), layer(i).planned.clone()))
}

/// Changes the plan of a layer, and what `--explain` says about it.
fn set_plan(placed: &mut Placed, index: usize, planned: Planned) {
    let own = &placed.layers[index];
    if planned == own.planned {
        return;
    }
    let why = planned.describe(&own.layer);
    for node in &own.layer.nodes {
        if let Some(at) = placed.nodes.get_mut(node) {
            at.why.clone_from(&why);
        }
    }
    placed.layers[index].planned = planned;
}

/// Keeps the plans of a model's first shape for further shapes.
pub(super) fn keep_plans(partition: &Partition, config: &HwConfig, oracle: &dyn CostOracle) {
    let Some(others) = oracle.other_shapes().filter(|others| others.is_empty()) else { return };
    let programs = partition.regions.iter().filter_map(|region| match &region.code {
        Code::Accel(program) => Some(program),
        Code::Cpu | Code::Own => None,
    });
    let elsewhere = |(layer, planned): &(Layer, Planned)| {
        let rank = planned.alternatives(layer, config, MOST).iter().position(|other| other == planned);
        (layer.name.clone(), Elsewhere { decisions: planned.decisions(), rank })
    };
    others.keep(programs.flat_map(|program| &program.source.layers).map(elsewhere));
}

/// Gives each layer its share of its program's cycles: from the end of the previous layer to its own end.
///
/// Returns the sum over all programs, or `None` if the cycles of a program are unknown.
pub(super) fn share_cycles(placed: &mut Placed, regions: &[Region], clock: &dyn Clock) -> Option<u64> {
    let mut sum = 0;
    let by_depth = placed.by_depth();
    for region in regions {
        let Code::Accel(accel) = &region.code else { continue };
        let depth = region.nodes.first().and_then(|n| placed.nodes.get(n))?.depth;
        let parts = match &accel.done {
            Some(done) => done.clone(),
            None => clock.cycles(&accel.program, &accel.insn_layers)?,
        };
        let mut before = 0;
        for (&layer, &done) in by_depth.get(&depth).into_iter().flatten().zip(&parts) {
            placed.layers[layer].cycles = Some(done.saturating_sub(before));
            before = done;
        }
        sum += before;
    }
    Some(sum)
}
