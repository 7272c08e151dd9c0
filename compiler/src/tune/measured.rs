//! The search for the fastest code by measured times.
//!
//! Times vary from run to run. So the search only needs a measurement to be right on average: a plan is chosen if it is
//! also faster when both plans are measured again.

use super::draw::{mutate, random};
use super::request::TuneError;
use crate::codegen::accel::space::{Decisions, Space};
use crate::records::{Outcome, Record, SCHEMA, Workload};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tilewright_hw::interrupt;

/// Number of the best plans that are changed.
const PARENTS: usize = 4;

/// Number of decisions that are drawn for a trial until one is new.
const MOST_DRAWN: usize = 200;

/// A chosen plan must be faster by this share, in percent.
const LEAST_GAIN: u64 = 2;

/// A layer whose plan is searched by measured times.
#[derive(Debug, Clone)]
pub struct MeasuredLayer {
    /// Name of the first such layer.
    pub name: String,
    /// Number of such layers.
    pub places: usize,
    /// What determines its time.
    pub workload: Workload,
    /// Its plans.
    pub space: Space,
    /// The decisions that it has.
    pub current: Decisions,
}

/// What to tune by measured times.
#[derive(Debug, Clone, Copy)]
pub struct MeasuredRequest<'a> {
    /// The different layers.
    pub layers: &'a [MeasuredLayer],
    /// Identifies the processor in records.
    pub config: &'a str,
    /// Records of an earlier search. Their trials are not repeated.
    pub known: &'a [Record],
    /// Seed of all random decisions.
    pub seed: u64,
    /// Maximum number of trials, including known ones.
    pub trials: Option<usize>,
    /// Maximum time.
    pub time: Option<Duration>,
}

/// The result for a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredResult {
    /// Nanoseconds with the decisions that it had and with the chosen ones; `None` if they could not be measured.
    pub ns: [Option<u64>; 2],
    /// The chosen decisions.
    pub decisions: Decisions,
    /// Number of trials, including known ones.
    pub trials: usize,
}

/// The result of a search by measured times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeasuredReport {
    /// Number of new trials.
    pub trials: usize,
    /// Number of trials that were known.
    pub known: usize,
    /// By layer, in the order of the request.
    pub layers: Vec<MeasuredResult>,
}

/// The search for one layer.
struct Search<'a> {
    layer: &'a MeasuredLayer,
    trials: HashMap<Decisions, Option<u64>>,
    rng: StdRng,
    /// Number of trials since the best one.
    idle: u64,
    is_over: bool,
}

impl Search<'_> {
    /// The best trials. Plans with the same time are in the order of their decisions.
    fn ordered(&self) -> Vec<(u64, &Decisions)> {
        let mut all: Vec<_> = self.trials.iter().filter_map(|(decisions, ns)| Some(((*ns)?, decisions))).collect();
        all.sort();
        all
    }

    /// How much further trials are worth: the time of all places, less with every trial that was not better.
    fn worth(&self) -> u64 {
        let all = |(ns, _): &(u64, &Decisions)| ns * self.layer.places as u64;
        let ns = self.ordered().first().map_or(u64::MAX / 4, all);
        if self.is_over { 0 } else { (ns / (1 + self.idle / 4).pow(2)).max(1) }
    }

    /// Returns new decisions; `None` if there seem to be no others. The current ones come first.
    fn next(&mut self) -> Option<Decisions> {
        if !self.trials.contains_key(&self.layer.current) {
            return Some(self.layer.current.clone());
        }
        let parents: Vec<Decisions> = self.ordered().into_iter().take(PARENTS).map(|(_, d)| d.clone()).collect();
        for _ in 0..MOST_DRAWN {
            let drawn = match parents.len() {
                count if count > 0 && self.rng.random_bool(0.6) => {
                    let parent = &parents[self.rng.random_range(0..count)];
                    mutate(&self.layer.space, parent, &mut self.rng)
                }
                _ => random(&self.layer.space, &mut self.rng),
            };
            if let Some(decisions) = drawn.filter(|decisions| !self.trials.contains_key(decisions)) {
                return Some(decisions);
            }
        }
        None
    }

    fn add(&mut self, decisions: Decisions, ns: Option<u64>) {
        let best = self.ordered().first().map(|(ns, _)| *ns);
        self.idle = if ns.is_some_and(|ns| best.is_none_or(|best| ns < best)) { 0 } else { self.idle + 1 };
        self.trials.insert(decisions, ns);
    }
}

/// Searches for faster plans. `measure` returns the nanoseconds of a layer, by its index, with some decisions, or `None`
/// if its code cannot be made or run. `write` gets every record as soon as it is there, `progress` the number of trials.
///
/// # Errors
/// [`TuneError::Write`] if a record cannot be written, [`TuneError::Interrupted`].
pub fn tune_measured(
    request: &MeasuredRequest,
    measure: &mut dyn FnMut(usize, &Decisions) -> Option<u64>,
    write: &mut dyn FnMut(&Record) -> std::io::Result<()>,
    progress: &mut dyn FnMut(usize),
) -> Result<MeasuredReport, TuneError> {
    let start = Instant::now();
    let mut report = MeasuredReport::default();
    let mut searches: Vec<Search> = Vec::new();
    for layer in request.layers {
        let own = u64::from_str_radix(&layer.workload.hash, 16).unwrap_or_default();
        let rng = StdRng::seed_from_u64(request.seed ^ own);
        let mut search = Search { layer, trials: HashMap::new(), rng, idle: 0, is_over: false };
        for record in request.known.iter().filter(|record| record.layer == layer.workload.hash) {
            if let Outcome::Timed { ns } = record.outcome {
                search.add(record.decisions.clone(), ns);
            }
        }
        report.known += search.trials.len();
        searches.push(search);
    }
    let is_over = |trials: usize| {
        request.trials.is_some_and(|most| trials >= most) || request.time.is_some_and(|most| start.elapsed() >= most)
    };
    while !is_over(report.trials + report.known) {
        let Some(at) = (0..searches.len()).max_by_key(|&i| (searches[i].worth(), std::cmp::Reverse(i))) else { break };
        if searches[at].worth() == 0 {
            break;
        }
        let Some(decisions) = searches[at].next() else {
            searches[at].is_over = true;
            continue;
        };
        let ns = measure(at, &decisions);
        interrupt::check()?;
        write(&record(request, at, &decisions, Outcome::Timed { ns }))?;
        searches[at].add(decisions, ns);
        report.trials += 1;
        progress(report.trials + report.known);
    }
    for (at, search) in searches.iter().enumerate() {
        let current = &search.layer.current;
        let mut result = MeasuredResult { ns: [None; 2], decisions: current.clone(), trials: search.trials.len() };
        result.ns = [search.trials.get(current).copied().flatten(); 2];
        if let Some((_, best)) = search.ordered().first()
            && *best != current
        {
            let again = [current, best].map(|decisions| measure(at, decisions));
            interrupt::check()?;
            if let [Some(now), Some(ns)] = again {
                let is_faster = ns.saturating_mul(100) < now.saturating_mul(100 - LEAST_GAIN);
                result.ns = [Some(now), Some(if is_faster { ns } else { now })];
                if is_faster {
                    result.decisions = (*best).clone();
                }
            }
        }
        if let Some(ns) = result.ns[1] {
            write(&record(request, at, &result.decisions, Outcome::Fastest { ns }))?;
        }
        report.layers.push(result);
    }
    Ok(report)
}

fn record(request: &MeasuredRequest, at: usize, decisions: &Decisions, outcome: Outcome) -> Record {
    let Workload { hash, text } = request.layers[at].workload.clone();
    let config = request.config.to_string();
    let text = text.trim_end().to_string();
    Record { schema: SCHEMA, config, layer: hash.clone(), near: hash, text, decisions: decisions.clone(), outcome }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::accel::space::{Choice, Knob};

    fn layer() -> MeasuredLayer {
        let knobs = vec![Knob::size("columns", 9), Knob::size("vectors", 5)];
        let current = Decisions::new([("columns", 1.into()), ("vectors", 1.into())]);
        let (name, workload, space) = ("layer".into(), Workload::new("layer"), Space::of(knobs));
        MeasuredLayer { name, places: 2, workload, space, current }
    }

    fn time(decisions: &Decisions) -> Option<u64> {
        let number = |name: &str| match decisions.0[name] {
            Choice::Number(n) => n as u64,
            Choice::Word(_) => 0,
        };
        // The code of one plan cannot be made.
        let ns = 1000 + 100 * number("columns").abs_diff(7) + 100 * number("vectors").abs_diff(3);
        (decisions.0["columns"] != Choice::Number(2)).then_some(ns)
    }

    fn search(known: &[Record], trials: usize) -> (MeasuredReport, Vec<Record>) {
        let layers = [layer()];
        let request =
            MeasuredRequest { layers: &layers, config: "c", known, seed: 1, trials: Some(trials), time: None };
        let mut written = Vec::new();
        let mut write = |record: &Record| {
            written.push(record.clone());
            Ok(())
        };
        let report = tune_measured(&request, &mut |_, d| time(d), &mut write, &mut |_| {}).unwrap();
        (report, written)
    }

    #[test]
    fn the_fastest_plan_is_found_and_a_search_goes_on() {
        let (report, written) = search(&[], 100);
        // The space has 45 plans, then the search ends.
        assert_eq!(report.layers[0].ns, [Some(1800), Some(1000)]);
        assert_eq!(report.layers[0].decisions, Decisions::new([("columns", 7.into()), ("vectors", 3.into())]));
        assert!(report.trials <= 45 && written.len() == report.trials + 1);
        assert_eq!(written[0].decisions, layer().current);
        let (first, half) = search(&[], 10);
        assert_eq!((first.trials, &half[..10]), (10, &written[..10]));
        let (rest, _) = search(&half, 20);
        assert_eq!((rest.known, rest.trials), (10, 10));
    }

    #[test]
    fn a_plan_that_is_hardly_faster_is_not_chosen() {
        let layers = [layer()];
        let request =
            MeasuredRequest { layers: &layers, config: "c", known: &[], seed: 1, trials: Some(20), time: None };
        let mut measure = |_: usize, d: &Decisions| Some(if *d == layer().current { 1000 } else { 990 });
        let report = tune_measured(&request, &mut measure, &mut |_| Ok(()), &mut |_| {}).unwrap();
        assert_eq!(report.layers[0].decisions, layer().current);
        // There is nothing to search in an empty space.
        let layers = [MeasuredLayer { space: Space::default(), ..layer() }];
        let report =
            tune_measured(&MeasuredRequest { layers: &layers, ..request }, &mut measure, &mut |_| Ok(()), &mut |_| {});
        assert_eq!(report.unwrap().trials, 1);
        let failed = |_: &Record| Err(std::io::Error::other("the disk is full"));
        let error = tune_measured(&request, &mut measure, &mut { failed }, &mut |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "a record cannot be written: the disk is full");
    }
}
