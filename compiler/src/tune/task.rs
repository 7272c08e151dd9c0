//! The search for the best plan of one layer.

use super::draw::{mutate, random};
use crate::codegen::accel::Planned;
use crate::codegen::accel::space::{Decisions, Space};
use crate::partition::window::Window;
use crate::records::{Outcome, Record, SCHEMA, Workload};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{HashMap, HashSet};
use tilewright_hw::HwConfig;

/// Number of decisions that a generation draws; the estimate selects among them.
const DRAWN: usize = 512;

/// Number of plans of a generation that the cycle model times without their neighbors.
const ALONE: usize = 32;

/// Number of those that are chosen by their estimate. The estimate is not exact, so the others are drawn.
const BY_ESTIMATE: usize = 24;

/// Number of the best plans that are changed: of those timed with their neighbors, and of those timed alone.
const PARENTS: usize = 6;

/// Number of plans with the fewest estimated cycles that are tried first.
const FIRST: usize = 8;

/// Number of generations without a new plan after which a space counts as searched.
const MOST_EMPTY: u32 = 16;

/// A plan is not timed if its estimate exceeds that of the best plan by this factor, in eighths.
const WORTH: u64 = 10;

/// The results of trials by decisions; `None` if the program cannot be built or run.
pub type Trials = HashMap<Decisions, Option<u64>>;

/// A layer whose plan is searched.
pub struct Task {
    /// The layer and its neighbors, with the plans that they have until the end of the round.
    pub window: Window,
    /// Places of the layer: a program, and the index of a layer in it.
    pub places: Vec<[usize; 2]>,
    /// The workload of the layer, of the window, and of the window with its neighbors' plans.
    pub workloads: [Workload; 3],
    /// The decisions of the layer until the end of the round.
    pub current: Decisions,
    /// Trials so far.
    pub trials: Trials,
    /// The best trial.
    pub best: Option<(u64, Decisions)>,
    /// Cycles of the layer without its neighbors by decisions; `None` if the program cannot be built or run.
    pub alone: Trials,
    space: Space,
    rng: StdRng,
    /// Number of generations since the best trial changed.
    idle: u32,
    /// Number of generations in a row that were empty.
    empty: u32,
}

impl Task {
    /// A task without trials.
    pub fn new(
        window: Window,
        places: Vec<[usize; 2]>,
        workloads: [Workload; 3],
        seed: u64,
        config: &HwConfig,
    ) -> Task {
        let (layer, planned) = window.own();
        let own = u64::from_str_radix(&workloads[2].hash, 16).unwrap_or_default();
        let (space, current) = (planned.space(layer, config), planned.decisions());
        let rng = StdRng::seed_from_u64(seed ^ own);
        let (trials, best, alone) = (Trials::new(), None, Trials::new());
        Task { window, places, workloads, current, trials, best, alone, space, rng, idle: 0, empty: 0 }
    }

    /// Name of the layer.
    pub fn name(&self) -> &str {
        &self.window.own().0.name
    }

    /// Cycles of the window with the plan that the layer has.
    fn cycles_now(&self) -> Option<u64> {
        self.trials.get(&self.current).copied().flatten()
    }

    /// Number of combinations of decisions.
    pub fn combinations(&self) -> u64 {
        self.space.combinations()
    }

    /// Cycles that the best plan saves in all places of the layer.
    pub fn gain(&self) -> u64 {
        self.best.as_ref().map_or(0, |(_, decisions)| self.gain_of(decisions))
    }

    /// Cycles that a plan saves in all places of the layer.
    pub fn gain_of(&self, decisions: &Decisions) -> u64 {
        let both = self.cycles_now().zip(self.trials.get(decisions).copied().flatten());
        both.map_or(0, |(now, cycles)| now.saturating_sub(cycles) * self.places.len() as u64)
    }

    /// How much further trials are worth: the cycles of all places of the layer, less with every generation that
    /// did not find a better plan. 0 if there is nothing else to try.
    pub fn worth(&self) -> u64 {
        let idle = u64::from(self.idle) + 1;
        let cycles = self.best.as_ref().map_or(u64::MAX / 4, |(cycles, _)| cycles * self.places.len() as u64);
        if self.empty >= MOST_EMPTY { 0 } else { (cycles / (idle * idle)).max(1) }
    }

    /// Adds the result of a trial.
    pub fn add(&mut self, decisions: Decisions, cycles: Option<u64>) {
        if let Some(cycles) = cycles
            && self.best.as_ref().is_none_or(|(least, _)| cycles < *least)
        {
            self.best = Some((cycles, decisions.clone()));
            self.idle = 0;
        }
        self.trials.insert(decisions, cycles);
    }

    /// Returns the plans that are tried before any others: the current one, so that every other one can be compared with
    /// it, and those with the fewest estimated cycles. None if they are tried.
    pub fn first(&self, config: &HwConfig) -> Vec<(Decisions, Planned)> {
        let (layer, planned) = self.window.own();
        let mut found: Vec<(Decisions, Planned)> = Vec::new();
        for plan in std::iter::once(planned.clone()).chain(planned.alternatives(layer, config, FIRST)) {
            let decisions = plan.decisions();
            if !self.trials.contains_key(&decisions) && found.iter().all(|(d, _)| *d != decisions) {
                found.push((decisions, plan));
            }
        }
        found
    }

    /// Draws plans, and returns those to time alone, with the number of plans that were estimated. Returns none if no
    /// drawn plan is new and promising.
    pub fn generation(&mut self, config: &HwConfig) -> (Vec<(Decisions, Planned)>, usize) {
        self.idle += 1;
        let (layer, planned) = self.window.own().clone();
        let mut found: Vec<(u64, Decisions, Planned)> = Vec::new();
        let mut seen = HashSet::new();
        let parents = self.parents();
        let limit = self.best.as_ref().and_then(|(_, best)| planned.with(best, &layer, config).ok());
        let limit = limit.map_or(u64::MAX, |best| best.cycles(&layer, config).saturating_mul(WORTH) / 8);
        let mut estimated = 0;
        for _ in 0..DRAWN {
            let drawn = match parents.len() {
                0 => random(&self.space, &mut self.rng),
                _ if self.rng.random_bool(0.4) => random(&self.space, &mut self.rng),
                count => {
                    let parent = &parents[self.rng.random_range(0..count)];
                    mutate(&self.space, parent, &mut self.rng)
                }
            };
            let Some(decisions) = drawn else { continue };
            if self.is_known(&decisions) || !seen.insert(decisions.clone()) {
                continue;
            }
            if let Ok(plan) = planned.with(&decisions, &layer, config) {
                estimated += 1;
                let cycles = plan.cycles(&layer, config);
                if cycles <= limit {
                    found.push((cycles, decisions, plan));
                }
            }
        }
        self.empty = if found.is_empty() { self.empty + 1 } else { 0 };
        found.sort_by_key(|(cycles, ..)| *cycles);
        let mut chosen: Vec<_> = found.drain(..BY_ESTIMATE.min(found.len())).collect();
        while chosen.len() < ALONE && !found.is_empty() {
            chosen.push(found.swap_remove(self.rng.random_range(0..found.len())));
        }
        (chosen.into_iter().map(|(_, decisions, plan)| (decisions, plan)).collect(), estimated)
    }

    /// Whether a plan was timed, alone or with its neighbors.
    fn is_known(&self, decisions: &Decisions) -> bool {
        self.trials.contains_key(decisions) || self.alone.contains_key(decisions)
    }

    /// Returns the plans to time with their neighbors next: those with the fewest cycles alone, at most `most`.
    pub fn finalists(&self, most: usize, config: &HwConfig) -> Vec<(Decisions, Planned)> {
        let (layer, planned) = self.window.own();
        let open = ordered(&self.alone).into_iter().filter(|(_, decisions)| !self.trials.contains_key(*decisions));
        let plan = |(_, d): (u64, &Decisions)| Some((d.clone(), planned.with(d, layer, config).ok()?));
        open.take(most).filter_map(plan).collect()
    }

    /// The best plans so far.
    fn parents(&self) -> Vec<Decisions> {
        let best = |trials| ordered(trials).into_iter().take(PARENTS).map(|(_, decisions)| decisions.clone());
        best(&self.trials).chain(best(&self.alone)).collect()
    }

    /// Returns the record of a trial.
    pub fn trial(&self, config: &str, decisions: Decisions, cycles: Option<u64>) -> Record {
        let context = self.workloads[2].hash.clone();
        self.record(config, decisions, Outcome::Trial { context, cycles })
    }

    /// Returns the last choice for the layer next to its neighbors, of records for the configuration.
    pub fn last_choice<'r>(&self, known: &'r [Record]) -> Option<&'r Record> {
        let [layer, near, _] = &self.workloads;
        let is_own = |record: &&Record| record.layer == layer.hash && record.near == near.hash;
        known.iter().filter(is_own).rfind(|record| matches!(record.outcome, Outcome::Chosen { .. }))
    }

    /// Returns the record of the choice of the plan that the layer has, with the cycles of its window.
    pub fn chosen(&self, config: &str, cycles: u64) -> Record {
        self.record(config, self.current.clone(), Outcome::Chosen { cycles })
    }

    fn record(&self, config: &str, decisions: Decisions, outcome: Outcome) -> Record {
        let [layer, near, _] = &self.workloads;
        let text = layer.text.trim_end().to_string();
        let (layer, near) = (layer.hash.clone(), near.hash.clone());
        Record { schema: SCHEMA, config: config.into(), layer, near, text, decisions, outcome }
    }
}

/// Returns the plans whose cycles are known, the best ones first. Plans with the same cycles are in the order of their
/// decisions.
fn ordered(trials: &Trials) -> Vec<(u64, &Decisions)> {
    let timed = |(decisions, cycles): (_, &Option<u64>)| Some(((*cycles)?, decisions));
    let mut all: Vec<(u64, &Decisions)> = trials.iter().filter_map(timed).collect();
    all.sort();
    all
}
