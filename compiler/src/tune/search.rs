//! The search over all layers: which layer is next, and when it ends.

use super::choose::{choose, resume, timed};
use super::judge::{Judged, Trial, judge_all};
use super::request::{LayerResult, Progress, Report, Request, TuneError};
use super::task::{Task, Trials};
use super::tasks::{Program, programs, tasks};
use crate::codegen::accel::Planned;
use crate::codegen::accel::space::Decisions;
use crate::partition::window::Surroundings;
use crate::records::{Outcome, Record, config_key};
use std::collections::{HashMap, HashSet};
use std::time::Instant;
use tilewright_hw::interrupt::{self, Interrupted};

/// Number of layers that are searched at the same time, and number of plans of each generation that are timed with
/// their neighbors. They do not depend on the number of threads, so that the same seed gives the same trials everywhere.
const LAYERS: usize = 4;
const FINALISTS: usize = 4;

/// Share of the trials after which layers get their best plans so far, so that the other trials see them as neighbors.
const FIRST_ROUND: f64 = 0.7;

/// Writes a record.
type Write<'a> = dyn FnMut(&Record) -> std::io::Result<()> + 'a;

/// The state of a search.
struct Search<'a> {
    request: &'a Request<'a>,
    /// [`config_key`] of the configuration.
    config: String,
    /// What the layers of each program refer to.
    around: Vec<Surroundings<'a>>,
    /// Known trials by their context.
    known: HashMap<String, Trials>,
    /// Cycles of layers without neighbors, by the layer's workload.
    alone: HashMap<String, Trials>,
    /// Contexts of each task in the rounds so far.
    contexts: HashMap<usize, HashSet<String>>,
    /// Contexts whose known trials are counted.
    counted: HashSet<String>,
    start: Instant,
    report: Report,
}

/// Searches for better plans. `write` gets every record as soon as it is there, `progress` is called between trials.
///
/// # Errors
/// [`TuneError`].
pub fn tune(request: &Request, write: &mut Write, progress: &mut dyn FnMut(Progress)) -> Result<Report, TuneError> {
    let Request { graph, config, partition, clock, jitter, layer, seed, .. } = *request;
    let mut programs = programs(graph, config, partition);
    let mut cycles = timed(&programs, clock);
    interrupt::check()?;
    let before = cycles.iter().copied().sum::<Option<u64>>().ok_or(TuneError::Untimed)?;
    let mut search = Search::new(request, programs.iter().map(|p| p.around).collect());
    search.report.cycles = [before; 2];
    // All layers, whatever the request selects: their plans become records, so that a replay gives the same programs.
    let every = tasks(&programs, None, seed, config)?;
    if unite(&mut programs, &every) {
        cycles = timed(&programs, clock);
    }
    resume(&mut programs, &every, request.known, &mut cycles, clock, jitter);
    for share in [FIRST_ROUND, 1.0] {
        let mut all = tasks(&programs, layer, seed, config)?;
        search.remember(&mut all);
        interrupt::check()?;
        search.round(&mut all, share, write, progress)?;
        choose(&mut programs, &all, &mut cycles, clock, jitter);
        // What was stopped has no cycles.
        interrupt::check()?;
        search.report.cycles[1] = cycles.iter().flatten().sum();
        search.results(&all, &programs);
    }
    search.record_all(&tasks(&programs, None, seed, config)?, write)?;
    Ok(search.report)
}

/// Gives all layers of a task the plan of the first one, because a record holds for all of them. Returns whether that
/// changed a plan.
fn unite(programs: &mut [Program], tasks: &[Task]) -> bool {
    let mut changed = false;
    for task in tasks {
        for &[program, at] in task.places.iter().skip(1) {
            let Program { around, layers, .. } = &mut programs[program];
            let (layer, planned) = &mut layers[at];
            if let Ok(same) = planned.with(&task.current, layer, around.config) {
                changed |= same != *planned;
                *planned = same;
            }
        }
    }
    changed
}

impl<'a> Search<'a> {
    fn new(request: &'a Request<'a>, around: Vec<Surroundings<'a>>) -> Search<'a> {
        let mut known: HashMap<String, Trials> = HashMap::new();
        for record in request.known {
            if let Outcome::Trial { context, cycles } = &record.outcome {
                known.entry(context.clone()).or_default().insert(record.decisions.clone(), *cycles);
            }
        }
        let (config, counted, start) = (config_key(request.config), HashSet::new(), Instant::now());
        let (alone, contexts, report) = (HashMap::new(), HashMap::new(), Report::default());
        Search { request, config, around, known, alone, contexts, counted, start, report }
    }

    /// Gives tasks the trials of earlier searches. Trials of a context are dropped if the best of them takes other
    /// cycles now.
    fn remember(&mut self, tasks: &mut [Task]) {
        for task in tasks {
            let context = &task.workloads[2].hash;
            let Some(trials) = self.known.get(context) else { continue };
            if self.counted.insert(context.clone()) {
                let best = trials.iter().filter_map(|(d, cycles)| Some(((*cycles)?, d))).min();
                let now = best.and_then(|(_, decisions)| {
                    let (layer, planned) = task.window.own();
                    self.judge(task, planned.with(decisions, layer, self.request.config).ok()?)
                });
                let most = |known: u64| (known as f64 * self.request.jitter) as u64;
                let same = |(known, _): (u64, _)| now.is_some_and(|now| now.abs_diff(known) <= most(known));
                if !best.map_or(now.is_none(), same) {
                    self.report.stale += trials.len();
                    self.known.remove(context);
                    continue;
                }
                self.report.known += trials.len();
            }
            for (decisions, cycles) in trials {
                task.add(decisions.clone(), *cycles);
            }
        }
    }

    /// Number of trials so far, including known ones.
    fn trials(&self) -> usize {
        self.report.trials + self.report.known
    }

    /// Whether this share of all trials or of the time is used up.
    fn is_over(&self, share: f64) -> bool {
        let Request { trials, time, .. } = self.request;
        let over = trials.is_some_and(|most| self.trials() as f64 >= most as f64 * share);
        over || time.is_some_and(|most| self.start.elapsed().as_secs_f64() >= most.as_secs_f64() * share)
    }

    /// Makes trials until this share of all trials is used up, or there is nothing else to try.
    fn round(
        &mut self,
        tasks: &mut [Task],
        share: f64,
        write: &mut Write,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), TuneError> {
        let Request { config, trials, .. } = *self.request;
        let before = self.report.cycles[1];
        while !self.is_over(share) {
            let mut order: Vec<usize> = (0..tasks.len()).filter(|&i| tasks[i].worth() > 0).collect();
            order.sort_by_key(|&i| (std::cmp::Reverse(tasks[i].worth()), i));
            self.report.exhausted = order.is_empty();
            if self.report.exhausted {
                break;
            }
            order.truncate(LAYERS);
            let begun: Vec<Vec<(Decisions, Planned)>> = order.iter().map(|&task| tasks[task].first(config)).collect();
            let searched = order.iter().zip(&begun).filter(|(_, first)| first.is_empty()).map(|(&task, _)| task);
            self.time_alone(tasks, &searched.collect::<Vec<_>>())?;
            let mut batch: Vec<Trial> = Vec::new();
            for (&task, first) in order.iter().zip(begun) {
                let plans = if first.is_empty() { tasks[task].finalists(FINALISTS, config) } else { first };
                batch.extend(plans.into_iter().map(|(decisions, planned)| Trial { task, decisions, planned }));
            }
            batch.truncate(trials.map_or(usize::MAX, |most| most.saturating_sub(self.trials())));
            for Judged { trial: Trial { task, decisions, .. }, cycles } in self.trials_of(tasks, batch, write)? {
                let context = &tasks[task].workloads[2].hash;
                self.counted.insert(context.clone());
                self.known.entry(context.clone()).or_default().insert(decisions.clone(), cycles);
                tasks[task].add(decisions, cycles);
            }
            let gained: u64 = tasks.iter().map(Task::gain).sum();
            progress(Progress { trials: self.trials(), best: before.saturating_sub(gained) });
        }
        Ok(())
    }

    /// Draws a generation of plans for each of these tasks, and times the promising ones without their neighbors.
    fn time_alone(&mut self, tasks: &mut [Task], searched: &[usize]) -> Result<(), Interrupted> {
        let start = Instant::now();
        let mut batch: Vec<Trial> = Vec::new();
        for &task in searched {
            let (plans, estimated) = tasks[task].generation(self.request.config);
            self.report.estimated += estimated;
            let known = self.alone.get(&tasks[task].workloads[0].hash);
            for (decisions, planned) in plans {
                match known.and_then(|known| known.get(&decisions)) {
                    Some(&cycles) => _ = tasks[task].alone.insert(decisions, cycles),
                    None => batch.push(Trial { task, decisions, planned }),
                }
            }
        }
        self.report.estimate_seconds += start.elapsed().as_secs_f64();
        let judge = |trial: &Trial| self.judge_alone(&tasks[trial.task], trial.planned.clone());
        let (judged, seconds) = judge_all(batch, self.request.threads, &judge, &mut |_, _| {})?;
        self.report.alone += judged.len();
        self.report.alone_seconds += seconds;
        for Judged { trial: Trial { task, decisions, .. }, cycles } in judged {
            let known = self.alone.entry(tasks[task].workloads[0].hash.clone()).or_default();
            known.insert(decisions.clone(), cycles);
            tasks[task].alone.insert(decisions, cycles);
        }
        Ok(())
    }

    /// Returns the cycles of a task's layer alone with this plan.
    fn judge_alone(&self, task: &Task, planned: Planned) -> Option<u64> {
        task.window.alone(planned).cycles_in_order(&self.around[task.places.first()?[0]], self.request.sieve)
    }

    /// Returns the cycles of a task's window with this plan of its layer.
    fn judge(&self, task: &Task, planned: Planned) -> Option<u64> {
        task.window.with(planned).least_cycles(&self.around[task.places.first()?[0]], self.request.clock)
    }

    /// Makes trials on all threads, and writes a record of each as it ends.
    fn trials_of(&mut self, tasks: &[Task], batch: Vec<Trial>, write: &mut Write) -> Result<Vec<Judged>, TuneError> {
        let (threads, key) = (self.request.threads, self.config.clone());
        let mut failed = Ok(());
        let (judged, seconds) = judge_all(
            batch,
            threads,
            &|trial| self.judge(&tasks[trial.task], trial.planned.clone()),
            &mut |trial, cycles| {
                let record = tasks[trial.task].trial(&key, trial.decisions.clone(), cycles);
                if failed.is_ok() {
                    failed = write(&record);
                }
            },
        )?;
        failed?;
        self.report.trials += judged.len();
        self.report.seconds += seconds;
        Ok(judged)
    }

    /// Writes the plans of all layers, except those that are the last choice of the log.
    fn record_all(&mut self, tasks: &[Task], write: &mut Write) -> Result<(), TuneError> {
        for task in tasks {
            let known = self.known.get(&task.workloads[2].hash).and_then(|trials| trials.get(&task.current).copied());
            let cycles = known.unwrap_or_else(|| self.judge(task, task.window.own().1.clone()));
            interrupt::check()?;
            let Some(cycles) = cycles else { continue };
            let record = task.chosen(&self.config, cycles);
            if task.last_choice(self.request.known) != Some(&record) {
                write(&record)?;
            }
        }
        Ok(())
    }

    /// Adds the choices to the report.
    fn results(&mut self, tasks: &[Task], programs: &[Program]) {
        for (i, task) in tasks.iter().enumerate() {
            let Some(&[program, at]) = task.places.first() else { continue };
            let decisions = programs[program].layers[at].1.decisions();
            // The tasks of both rounds are the same, in the same order.
            let before = self.report.layers.get(i).map_or(0, |layer| layer.gain);
            let contexts = self.contexts.entry(i).or_default();
            contexts.insert(task.workloads[2].hash.clone());
            let trials = contexts.iter().filter_map(|context| self.known.get(context)).map(Trials::len).sum();
            let new = LayerResult {
                name: task.name().to_string(),
                places: task.places.len(),
                combinations: task.combinations(),
                trials,
                gain: before + task.gain_of(&decisions),
                decisions,
            };
            match self.report.layers.get_mut(i) {
                Some(old) => *old = new,
                None => self.report.layers.push(new),
            }
        }
    }
}
