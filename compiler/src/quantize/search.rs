//! Chooses a method for each tensor: the one that costs least at the network's outputs.
//!
//! The search first tries each method for all tensors and starts from the best one. It then tries each other method for
//! each tensor alone, on half of the samples. It applies the helpful changes together, best ones first, as many as cost
//! least on the other half. With few samples a choice looks better than it is on other data, so a change must help by
//! more than the scatter of the samples explains. Finally, the result is compared with the start, as compiled networks
//! on all samples.

use super::observe::Seen;
use super::range::{Method, Params};
use super::scales::{Ranges, scales};
use super::trial::{Representation, Trial};
use super::{QuantizeError, QuantizeRequest, Told};
use crate::graph::ValueId;
use std::collections::BTreeMap;

/// The candidate methods.
pub(super) const METHODS: [Method; 4] = [Method::MinMax, Method::Percentile(99.99), Method::Mse, Method::Entropy];

/// Maximum number of runs of the network for the changes of one round.
const MOST_RUNS: usize = 800;
/// Maximum number of samples for measuring costs.
const MEASURED: usize = 128;
/// A gain must exceed this many standard errors.
const SURE: f64 = 2.0;
/// Minimum number of samples for changes: with fewer, a gain cannot be told from chance.
const FEWEST: usize = 8;
/// Maximum number of samples for trying a change.
const MOST_SAMPLES: usize = 8;
/// Number of rounds of changes; the second starts from the result of the first.
const ROUNDS: usize = 2;
/// A method is dropped if its trial costs more than this many times the best; the others are compared as networks.
const CLOSE: f64 = 2.0;
/// Scales that differ by less than this fraction count as equal.
const ALIKE: f32 = 0.03;

/// Another method for one tensor.
#[derive(Debug, Clone, Copy)]
struct Change {
    value: ValueId,
    method: usize,
    gain: f64,
}

struct Search<'w> {
    request: &'w QuantizeRequest<'w>,
    seen: &'w BTreeMap<ValueId, Seen>,
    trial: Trial,
    /// The range of each value with each method.
    candidates: BTreeMap<ValueId, [(f32, f32); METHODS.len()]>,
}

/// A method for each value, as an index into [`METHODS`].
type Assignment = BTreeMap<ValueId, usize>;

/// Finds a method for each value that has its own scale, and its range.
pub(super) fn search(
    request: &QuantizeRequest,
    seen: &BTreeMap<ValueId, Seen>,
    told: &mut Told,
) -> Result<(BTreeMap<ValueId, Method>, Ranges), QuantizeError> {
    let own = seen.iter().filter(|(v, _)| request.plan.like[v.0] == **v);
    let candidates: BTreeMap<_, _> =
        own.map(|(v, seen)| (*v, METHODS.map(|method| method.range(&seen.histogram)))).collect();
    // The scales that the trial is built with do not matter.
    let ranges = candidates.iter().map(|(v, ranges)| (*v, ranges[0])).collect();
    let inserted = request.inserted(&scales(request.graph, request.plan, &ranges), seen)?;
    let trial = Trial::new(request, &inserted, MEASURED)?;
    let mut search = Search { request, seen, trial, candidates };
    let best = search.run(told)?;
    let methods = best.iter().map(|(v, method)| (*v, METHODS[*method])).collect();
    Ok((methods, search.ranges(&best)))
}

impl Search<'_> {
    fn run(&mut self, told: &mut Told) -> Result<Assignment, QuantizeError> {
        let all = self.trial.samples();
        let mut single: Vec<(f64, Assignment)> = Vec::new();
        for method in 0..METHODS.len() {
            let assignment: Assignment = self.candidates.keys().map(|v| (*v, method)).collect();
            single.push((sum(&self.cost(&assignment, 0..all)?), assignment));
            told("compare methods", method + 1, METHODS.len());
        }
        let least = single.iter().map(|(cost, _)| *cost).fold(f64::INFINITY, f64::min);
        single.retain(|(cost, _)| *cost <= CLOSE * least);
        let mut start: Option<(Vec<f64>, Assignment)> = None;
        let of = single.len();
        for (i, (_, assignment)) in single.into_iter().enumerate() {
            let cost = self.network_cost(&assignment)?;
            told("compare networks", i + 1, of);
            if start.as_ref().is_none_or(|(least, _)| sum(&cost) < sum(least)) {
                start = Some((cost, assignment));
            }
        }
        let (start_cost, start) = start.unwrap_or_default();
        let mut now = start.clone();
        let rounds = if all < FEWEST { 0 } else { ROUNDS };
        for _ in 0..rounds {
            let Some(next) = self.round(&now, told)? else { break };
            now = next;
        }
        Ok(if now != start && surely_less(&self.network_cost(&now)?, &start_cost) { now } else { start })
    }

    /// A better assignment, if the changes lead to one.
    fn round(&mut self, now: &Assignment, told: &mut Told) -> Result<Option<Assignment>, QuantizeError> {
        let changes = self.changes(now);
        if changes.is_empty() {
            return Ok(None);
        }
        let all = self.trial.samples();
        // One half of the samples measures what a change gains, the other half decides whether it is kept.
        let tried = (MOST_RUNS / changes.len()).clamp(1, MOST_SAMPLES);
        let trying = (0..all).step_by(2).take(tried);
        let before = sum(&self.cost(now, trying.clone())?);
        let of = changes.len();
        let mut helpful: BTreeMap<ValueId, Change> = BTreeMap::new();
        for (i, change) in changes.into_iter().enumerate() {
            let gain = before - sum(&self.cost(&changed(now, &[change]), trying.clone())?);
            told("choose methods", i + 1, of);
            if gain > helpful.get(&change.value).map_or(0.0, |best| best.gain) {
                helpful.insert(change.value, Change { gain, ..change });
            }
        }
        let mut helpful: Vec<Change> = helpful.into_values().collect();
        helpful.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        let holding = || (if all > 1 { 1 } else { 0 }..all).step_by(2);
        let unchanged = self.cost(now, holding())?;
        let mut best = (sum(&unchanged), None);
        let mut taken = helpful.len();
        while taken > 0 {
            let next = changed(now, &helpful[..taken]);
            let cost = self.cost(&next, holding())?;
            if sum(&cost) < best.0 && surely_less(&cost, &unchanged) {
                best = (sum(&cost), Some(next));
            }
            taken /= 2;
        }
        Ok(best.1)
    }

    /// All changes of one tensor that have an effect, those that change its scale most first; no more than can be
    /// tried.
    fn changes(&self, now: &Assignment) -> Vec<Change> {
        let mut found: Vec<(f32, Change)> = Vec::new();
        for (value, ranges) in &self.candidates {
            let params = ranges.map(|(lo, hi)| Params::asymmetric(lo, hi));
            let mut known = vec![params[now[value]]];
            for (method, p) in params.iter().enumerate() {
                if known.iter().any(|k| alike(k, p)) {
                    continue;
                }
                known.push(*p);
                let by = (p.scale / known[0].scale).ln().abs();
                found.push((by, Change { value: *value, method, gain: 0.0 }));
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.into_iter().map(|(_, change)| change).take(MOST_RUNS).collect()
    }

    fn ranges(&self, assignment: &Assignment) -> Ranges {
        assignment.iter().map(|(v, method)| (*v, self.candidates[v][*method])).collect()
    }

    fn params(&self, assignment: &Assignment) -> BTreeMap<ValueId, Params> {
        scales(self.request.graph, self.request.plan, &self.ranges(assignment))
    }

    /// The cost of the quantized network itself, per sample.
    fn network_cost(&self, assignment: &Assignment) -> Result<Vec<f64>, QuantizeError> {
        let inserted = self.request.inserted(&self.params(assignment), self.seen)?;
        self.trial.network_cost(self.request, &inserted)
    }

    /// The cost in the trial, per sample.
    fn cost(
        &mut self,
        assignment: &Assignment,
        samples: impl Iterator<Item = usize>,
    ) -> Result<Vec<f64>, QuantizeError> {
        let params = self.params(assignment);
        self.trial.cost(samples, &|v| params.get(&v).copied().map(Representation::Integers))
    }
}

fn changed(now: &Assignment, changes: &[Change]) -> Assignment {
    let mut next = now.clone();
    next.extend(changes.iter().map(|change| (change.value, change.method)));
    next
}

fn sum(costs: &[f64]) -> f64 {
    costs.iter().sum()
}

/// True if costs are lower than others on the same samples by more than chance explains.
fn surely_less(costs: &[f64], others: &[f64]) -> bool {
    if !sum(costs).is_finite() || !sum(others).is_finite() {
        return sum(costs) < sum(others);
    }
    let gains = || others.iter().zip(costs).map(|(other, cost)| other - cost);
    let total: f64 = gains().sum();
    let mean = total / costs.len().max(1) as f64;
    // Standard deviation of the sum of independent gains.
    let deviation = gains().map(|gain| (gain - mean).powi(2)).sum::<f64>().sqrt();
    total > SURE * deviation
}

/// True if two scales and zero points give nearly the same integers.
fn alike(a: &Params, b: &Params) -> bool {
    (a.scale / b.scale - 1.0).abs() < ALIKE && (a.zero_point - b.zero_point).abs() < 4
}
