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

/// Number of decisions that are drawn for each trial; the estimate selects among them.
const DRAWN: usize = 24;

/// Number of the best plans that are changed.
const PARENTS: usize = 6;

/// Number of plans with the fewest estimated cycles that are tried first.
const FIRST: usize = 8;

/// Number of batches without a new plan after which a space counts as searched.
const MOST_EMPTY: u32 = 16;

/// A plan is not tried if its estimate exceeds that of the best plan by this factor, in eighths.
const WORTH: u64 = 12;

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
    space: Space,
    rng: StdRng,
    /// Number of batches since the best trial changed.
    idle: u32,
    /// Number of batches in a row that were empty.
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
        let (trials, best) = (Trials::new(), None);
        Task { window, places, workloads, current, trials, best, space, rng, idle: 0, empty: 0 }
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

    /// How much further trials are worth: the cycles of all places of the layer, less with every batch that did not
    /// find a better plan. 0 if there is nothing else to try.
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

    /// Returns plans to try next, at most `most`; none if no drawn plan is new and promising.
    pub fn batch(&mut self, most: usize, config: &HwConfig) -> Vec<(Decisions, Planned)> {
        self.idle += 1;
        let (layer, planned) = self.window.own().clone();
        let mut found: Vec<(u64, Decisions, Planned)> = Vec::new();
        let mut seen = HashSet::new();
        let mut add = |task: &Task, plan: Planned| {
            let decisions = plan.decisions();
            if !task.trials.contains_key(&decisions) && seen.insert(decisions.clone()) {
                found.push((plan.cycles(&layer, config), decisions, plan));
            }
        };
        // The current plan comes first, so that every other one can be compared with it.
        add(self, planned.clone());
        for plan in planned.alternatives(&layer, config, FIRST) {
            add(self, plan);
        }
        if !found.is_empty() {
            found.truncate(most);
            return found.into_iter().map(|(_, decisions, plan)| (decisions, plan)).collect();
        }
        let parents = self.parents();
        let limit = self.best.as_ref().and_then(|(_, best)| planned.with(best, &layer, config).ok());
        let limit = limit.map_or(u64::MAX, |best| best.cycles(&layer, config).saturating_mul(WORTH) / 8);
        for _ in 0..DRAWN * most {
            let drawn = match parents.len() {
                0 => random(&self.space, &mut self.rng),
                _ if self.rng.random_bool(0.4) => random(&self.space, &mut self.rng),
                count => {
                    let parent = &parents[self.rng.random_range(0..count)];
                    mutate(&self.space, parent, &mut self.rng)
                }
            };
            let Some(decisions) = drawn else { continue };
            if self.trials.contains_key(&decisions) || !seen.insert(decisions.clone()) {
                continue;
            }
            if let Ok(plan) = planned.with(&decisions, &layer, config) {
                let cycles = plan.cycles(&layer, config);
                if cycles <= limit {
                    found.push((cycles, decisions, plan));
                }
            }
        }
        self.empty = if found.is_empty() { self.empty + 1 } else { 0 };
        // Mostly the plans with the fewest estimated cycles, because the estimate is not exact also some others.
        found.sort_by_key(|(cycles, ..)| *cycles);
        let best = (3 * most).div_ceil(4).min(found.len());
        let mut chosen: Vec<_> = found.drain(..best).collect();
        while chosen.len() < most && !found.is_empty() {
            chosen.push(found.swap_remove(self.rng.random_range(0..found.len())));
        }
        chosen.into_iter().map(|(_, decisions, plan)| (decisions, plan)).collect()
    }

    /// The best plans so far. Plans with the same cycles are in the order of their decisions.
    fn parents(&self) -> Vec<Decisions> {
        let timed = |(d, cycles): (&Decisions, &Option<u64>)| Some(((*cycles)?, d.clone()));
        let mut all: Vec<(u64, Decisions)> = self.trials.iter().filter_map(timed).collect();
        all.sort();
        all.into_iter().take(PARENTS).map(|(_, decisions)| decisions).collect()
    }

    /// Returns the record of a trial.
    pub fn trial(&self, config: &str, decisions: Decisions, cycles: Option<u64>) -> Record {
        let context = self.workloads[2].hash.clone();
        self.record(config, decisions, Outcome::Trial { context, cycles })
    }

    /// Returns the record of the choice of these decisions.
    pub fn chosen(&self, config: &str, decisions: Decisions) -> Option<Record> {
        let cycles = self.trials.get(&decisions).copied().flatten()?;
        Some(self.record(config, decisions, Outcome::Chosen { cycles }))
    }

    fn record(&self, config: &str, decisions: Decisions, outcome: Outcome) -> Record {
        let [layer, near, _] = &self.workloads;
        let text = layer.text.trim_end().to_string();
        let (layer, near) = (layer.hash.clone(), near.hash.clone());
        Record { schema: SCHEMA, config: config.into(), layer, near, text, decisions, outcome }
    }
}
