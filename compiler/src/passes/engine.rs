//! Runs passes and applies their patches.

use super::draft::{Draft, Patched, Snapshot};
use super::{Pass, PassFailure, Patch};
use crate::graph::{Graph, GraphError, ValueId, verify};
use std::collections::{BTreeMap, HashMap};
use tilewright_hw::interrupt::{self, Interrupted};

/// An error of a pass.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// A patch that made the graph invalid.
    #[error("pass `{pass}`, patch {index} ({what} at `{node}`): {source}; this is a bug in the pass")]
    Patch {
        /// The pass.
        pass: &'static str,
        /// Number of the patch, counted over all passes from 1.
        index: usize,
        /// The patch's name.
        what: &'static str,
        /// The node that it started from.
        node: String,
        /// The error in the graph.
        source: Box<GraphError>,
    },
    /// The work was stopped from outside.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// A pass that failed.
    #[error("pass `{pass}`: {source}")]
    Failed {
        /// The pass.
        pass: &'static str,
        /// Why.
        source: PassFailure,
    },
    /// A pass that returned a graph with other inputs or outputs.
    #[error("pass `{pass}` changed the inputs or outputs from {from} to {to}; they must stay as they are")]
    Edges {
        /// The pass.
        pass: &'static str,
        /// The names and types before it.
        from: String,
        /// The names and types after it.
        to: String,
    },
    /// A pass that returned an invalid graph.
    #[error("pass `{pass}` returned an invalid graph: {source}")]
    Whole {
        /// The pass.
        pass: &'static str,
        /// What the verifier found.
        source: Box<GraphError>,
    },
    /// A pass that does not terminate.
    #[error("pass `{pass}` did not terminate after {patches} patches; this is a bug in the pass")]
    Endless {
        /// The pass.
        pass: &'static str,
        /// Number of patches that it applied.
        patches: usize,
    },
    /// An invalid graph.
    #[error("{0}")]
    Graph(#[from] Box<GraphError>),
}

impl From<GraphError> for PassError {
    fn from(e: GraphError) -> PassError {
        PassError::Graph(Box::new(e))
    }
}

/// A patch that was applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The pass.
    pub pass: &'static str,
    /// The patch's name.
    pub what: &'static str,
    /// The node that it started from.
    pub node: String,
}

/// What the passes did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The patches, in the order of application.
    pub applied: Vec<Applied>,
    /// Remarks of passes about nodes that they leave unchanged, by node name.
    pub notes: BTreeMap<String, String>,
}

impl Report {
    /// Number of patches that a pass applied.
    pub fn count(&self, pass: &str) -> usize {
        self.applied.iter().filter(|a| a.pass == pass).count()
    }
}

/// Called with a pass's name and the graph after it.
pub type Dump<'a> = dyn FnMut(&'static str, &Graph) + 'a;

/// One applied patch.
#[derive(Debug, Clone, Copy)]
pub struct Change<'g> {
    /// Its number, counted over all passes from 1.
    pub number: usize,
    /// The graph before it.
    pub before: &'g Graph,
    /// The graph after it.
    pub after: &'g Graph,
    /// For each value of the graph before: the same value or its replacement in the graph after; `None` if it is gone.
    pub places: &'g [Option<ValueId>],
    /// The values of the graph before that the patch replaces.
    pub replaced: &'g [ValueId],
}

/// Called with each patch as it is applied.
pub type Watch<'a> = dyn FnMut(Change) + 'a;

/// Options of a run.
#[derive(Default)]
pub struct Options<'a> {
    /// Stops after this many patches; no limit if absent.
    pub stop_after: Option<usize>,
    /// Called after each pass with its name and the graph.
    pub dump: Option<&'a mut Dump<'a>>,
    /// Called after each patch.
    pub watch: Option<&'a mut Watch<'a>>,
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("stop_after", &self.stop_after).finish_non_exhaustive()
    }
}

/// Runs passes in order, each until it finds nothing more to change: on all regions first, then on the graph around them.
///
/// # Errors
/// If a patch makes the graph invalid or a pass does not terminate; both are bugs in the pass.
pub fn run(g: Graph, passes: &[Box<dyn Pass>], mut options: Options) -> Result<(Graph, Report), PassError> {
    let mut report = Report::default();
    let mut g = g.with_regions(|region| {
        let stop_after = options.stop_after.map(|most| most.saturating_sub(report.applied.len()));
        let inside = Options { stop_after, ..Options::default() };
        let (region, Report { applied, notes }) = run(region.as_ref().clone(), passes, inside)?;
        report.applied.extend(applied);
        report.notes.extend(notes);
        Ok::<_, PassError>(region)
    })?;
    for pass in passes {
        g = run_pass(g, pass.as_ref(), &mut options, &mut report)?;
        report.notes.extend(pass.notes(&g));
        if let Some(dump) = &mut options.dump {
            dump(pass.name(), &g);
        }
    }
    Ok((g, report))
}

fn run_pass(g: Graph, pass: &dyn Pass, options: &mut Options, report: &mut Report) -> Result<Graph, PassError> {
    let g = rewrite_whole(g, pass, options, report)?;
    let most = 1000 + 100 * g.nodes().len();
    let mut draft = Draft::new(g);
    let mut before = options.watch.is_some().then(|| draft.graph());
    let (mut at, mut changed, mut patches) = (draft.first(), false, 0);
    loop {
        interrupt::check()?;
        if options.stop_after.is_some_and(|n| report.applied.len() >= n) {
            return draft.finish();
        }
        let view = draft.view();
        let Some((id, patch)) = draft.from(at).find_map(|id| Some((id, pass.rewrite(&view, id)?))) else {
            if !changed {
                return draft.finish();
            }
            (at, changed) = (draft.first(), false);
            continue;
        };
        let node = view.graph.node(id).name.clone();
        let (what, index) = (patch.what(), report.applied.len() + 1);
        let patched = draft.apply(&patch, id).map_err(|e| match e {
            PassError::Graph(source) => PassError::Patch { pass: pass.name(), index, what, node: node.clone(), source },
            e => e,
        })?;
        if let (Some(watch), Some(before)) = (&mut options.watch, &mut before) {
            let after = draft.graph();
            watch_patch(watch, index, (&patch, &patched), [before, &after]);
            *before = after;
        }
        report.applied.push(Applied { pass: pass.name(), what, node });
        patches += 1;
        if patches > most {
            return Err(PassError::Endless { pass: pass.name(), patches });
        }
        (at, changed) = (patched.next, true);
    }
}

/// The graph that the pass gives in place of the whole one, which counts as one patch.
fn rewrite_whole(g: Graph, pass: &dyn Pass, options: &mut Options, report: &mut Report) -> Result<Graph, PassError> {
    if options.stop_after.is_some_and(|n| report.applied.len() >= n) {
        return Ok(g);
    }
    let (name, new) = (pass.name(), pass.rewrite_graph(&g));
    let new = new.map_err(|source| PassError::Failed { pass: name, source })?;
    let Some(new) = new.filter(|new| *new != g) else { return Ok(g) };
    if let Some(error) = GraphError::join(verify(&new)) {
        return Err(PassError::Whole { pass: name, source: Box::new(error) });
    }
    let (from, to) = (edges(&g), edges(&new));
    if from != to {
        return Err(PassError::Edges { pass: name, from, to });
    }
    if let Some(watch) = &mut options.watch {
        let place = |v: ValueId| {
            let same = |w: &ValueId| new.value_name(*w) == g.value_name(v) && new.ty(*w) == g.ty(v);
            (0..new.value_count()).map(ValueId).find(same)
        };
        let places: Vec<_> = (0..g.value_count()).map(|v| place(ValueId(v))).collect();
        let number = report.applied.len() + 1;
        let replaced: Vec<ValueId> = g.outputs().iter().map(|(_, v)| *v).collect();
        watch(Change { number, before: &g, after: &new, places: &places, replaced: &replaced });
    }
    report.applied.push(Applied { pass: name, what: "graph", node: new.name().to_string() });
    Ok(new)
}

/// Names and types of a graph's inputs and outputs.
fn edges(g: &Graph) -> String {
    let edge = |name: &str, v: ValueId| format!("{name}: {}", g.ty(v));
    let inputs: Vec<String> = g.inputs().map(|(name, v)| edge(name, v)).collect();
    let outputs: Vec<String> = g.outputs().iter().map(|(name, v)| edge(name, *v)).collect();
    format!("({}) -> ({})", inputs.join(", "), outputs.join(", "))
}

/// Reports a patch, with the graphs before and after it as the draft returned them.
fn watch_patch(watch: &mut Watch, number: usize, (patch, patched): (&Patch, &Patched), ends: [&Snapshot; 2]) {
    let [before, after] = ends;
    let [own, place] = ends.map(|(_, list)| -> HashMap<ValueId, ValueId> {
        list.iter().enumerate().map(|(i, v)| (*v, ValueId(i))).collect()
    });
    let instead = |v: &ValueId| patched.replaced.get(v).copied().unwrap_or(*v);
    let places: Vec<_> = before.1.iter().map(|v| place.get(&instead(v)).copied()).collect();
    let replaced: Vec<ValueId> = patch.replace.iter().filter_map(|(v, _)| own.get(v).copied()).collect();
    watch(Change { number, before: &before.0, after: &after.0, places: &places, replaced: &replaced });
}
