//! Finds the rewrite of the graph that changes the evaluator's result.
//!
//! Patches are always applied in the same order, so the graph after any number of them can be rebuilt. If a sequence of
//! patches changes the answer, halving the sequence finds the patch that does it. Patches that replace floats by
//! integers can change answers by a step here and there, and such steps grow along the network. So they are judged one
//! by one: each computes from the values before all of them (`each`).

mod each;
mod error;
mod report;

pub use error::BisectError;

use std::collections::BTreeMap;

use tilewright_compiler::graph::{Graph, Tensor, eval};
use tilewright_compiler::passes::{Applied, Options, Pass, run};
use tilewright_runtime::tensor;

use crate::examine::diff::{Difference, Tolerance, compare};

/// A sequence of consecutive patches of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// Numbers of its first and last patch, from 1.
    pub patches: [usize; 2],
    /// Whether its passes must not change any answer.
    pub exact: bool,
    /// Tolerance of the comparison: of the answer if the passes are exact, else of each patch's results.
    pub tolerance: Tolerance,
    /// The output that changes most over the stretch, and its largest difference; none if nothing changes at all.
    pub largest: Option<(String, f64)>,
}

/// The patch that changes the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    /// Its number, from 1.
    pub number: usize,
    /// Its pass, name and node.
    pub applied: Applied,
    /// Operators that it removed.
    pub before: Vec<String>,
    /// Nodes that it added.
    pub after: Vec<String>,
    /// Index of the run whose answer changes, from 0.
    pub run: usize,
    /// The output that changes; for an inexact patch, the value that it replaces.
    pub output: String,
    /// The difference from the answer, or from the value, before the stretch.
    pub difference: Difference,
}

/// Result of a bisection.
#[derive(Debug, Clone, PartialEq)]
pub struct Bisection {
    /// Number of runs.
    pub runs: usize,
    /// Number of all patches.
    pub patches: usize,
    /// Number of graphs that were evaluated.
    pub evaluations: usize,
    /// The stretches up to the first one that changes an answer.
    pub stretches: Vec<Stretch>,
    /// The patch that changes the answer, if there is one.
    pub suspect: Option<Suspect>,
}

/// Finds the first patch that changes the answer for the inputs of any of the `runs`. `tolerance` is for exact passes;
/// results of inexact passes may differ by at least `each::STEPS`.
///
/// # Errors
/// [`BisectError`].
pub fn bisect(
    graph: &Graph,
    passes: &[Box<dyn Pass>],
    runs: &[Vec<Tensor>],
    tolerance: &Tolerance,
) -> Result<Bisection, BisectError> {
    let (_, report) = run(graph.clone(), passes, Options::default())?;
    let applied = report.applied;
    let exact: BTreeMap<&str, bool> = passes.iter().map(|pass| (pass.name(), pass.exact())).collect();
    let kind = |index: usize| exact.get(applied[index].pass).copied().unwrap_or(true);
    let mut answers = Answers { graph, passes, runs, known: BTreeMap::new() };
    let (mut stretches, mut suspect, mut start) = (Vec::new(), None, 0);
    while start < applied.len() && suspect.is_none() {
        let end = (start..applied.len()).find(|&i| kind(i) != kind(start)).unwrap_or(applied.len());
        let mut allowed = *tolerance;
        if !kind(start) {
            allowed.steps = allowed.steps.max(each::STEPS);
        }
        let base = answers.after(start)?;
        let largest = differences(&base, &answers.after(end)?, &Tolerance::default())
            .max_by(|a, b| a.2.largest.total_cmp(&b.2.largest))
            .map(|(_, output, difference)| (output, difference.largest));
        stretches.push(Stretch { patches: [start + 1, end], exact: kind(start), tolerance: allowed, largest });
        if !kind(start) {
            let found = each::first(&answers.graph_after(start)?, graph, passes, runs, [start, end], &allowed)?;
            if let Some(each::WrongPatch { number, run, value, difference }) = found {
                suspect = Some(answers.suspect(&applied, number, (run, value, difference))?);
            }
        } else if differs(&base, &answers.after(end)?, &allowed).is_some() {
            let (mut same, mut other) = (start, end);
            while other - same > 1 {
                let middle = same + (other - same) / 2;
                if differs(&base, &answers.after(middle)?, &allowed).is_some() {
                    other = middle;
                } else {
                    same = middle;
                }
            }
            if let Some(found) = differs(&base, &answers.after(other)?, &allowed) {
                suspect = Some(answers.suspect(&applied, other, found)?);
            }
        }
        start = end;
    }
    Ok(Bisection { runs: runs.len(), patches: applied.len(), evaluations: answers.known.len(), stretches, suspect })
}

/// The outputs of each run, by name.
type Answer = Vec<Vec<(String, tensor::Tensor)>>;

/// Answers after any number of patches, each computed once.
struct Answers<'g> {
    graph: &'g Graph,
    passes: &'g [Box<dyn Pass>],
    runs: &'g [Vec<Tensor>],
    known: BTreeMap<usize, Answer>,
}

impl Answers<'_> {
    fn graph_after(&self, patches: usize) -> Result<Graph, BisectError> {
        let options = Options { stop_after: Some(patches), ..Options::default() };
        Ok(run(self.graph.clone(), self.passes, options)?.0)
    }

    /// Describes a patch and what it changes.
    fn suspect(
        &self,
        applied: &[Applied],
        number: usize,
        (run, output, difference): (usize, String, Difference),
    ) -> Result<Suspect, BisectError> {
        let [before, after] = [self.graph_after(number - 1)?, self.graph_after(number)?];
        let (before, after) = (only_in(&before, &after), only_in(&after, &before));
        Ok(Suspect { number, applied: applied[number - 1].clone(), before, after, run, output, difference })
    }

    fn after(&mut self, patches: usize) -> Result<Answer, BisectError> {
        if let Some(known) = self.known.get(&patches) {
            return Ok(known.clone());
        }
        let graph = self.graph_after(patches)?;
        let of_run = |inputs: &Vec<Tensor>| {
            let outputs = eval(&graph, inputs).map_err(|e| BisectError::Eval { patches, source: Box::new(e) })?;
            let names = graph.outputs().iter().map(|(name, _)| name.clone());
            Ok(names.zip(outputs.iter().map(tensor::Tensor::from)).collect())
        };
        let answer: Answer = self.runs.iter().map(of_run).collect::<Result<_, BisectError>>()?;
        self.known.insert(patches, answer.clone());
        Ok(answer)
    }
}

/// The first run and output that differ.
fn differs(a: &Answer, b: &Answer, tolerance: &Tolerance) -> Option<(usize, String, Difference)> {
    differences(a, b, tolerance).next()
}

/// Runs and outputs that differ.
fn differences(a: &Answer, b: &Answer, tolerance: &Tolerance) -> impl Iterator<Item = (usize, String, Difference)> {
    let both = a.iter().zip(b).enumerate();
    let outputs = both.flat_map(|(run, (a, b))| a.iter().zip(b).map(move |(x, y)| (run, x, y)));
    outputs.filter_map(|(run, (name, x), (_, y))| Some((run, name.clone(), compare(x, y, tolerance)?)))
}

/// Nodes of `graph` that `other` does not have, with their operators; without constants.
fn only_in(graph: &Graph, other: &Graph) -> Vec<String> {
    let text = |graph: &Graph| -> Vec<String> {
        let nodes = graph.nodes().filter(|(_, node)| node.op.name() != "constant");
        nodes.map(|(_, node)| format!("{} {}", node.op.name(), node.name)).collect()
    };
    let there: std::collections::BTreeSet<String> = text(other).into_iter().collect();
    text(graph).into_iter().filter(|node| !there.contains(node)).collect()
}

#[cfg(test)]
mod tests;
