//! `tune --device cpu`: a search for faster code of this machine's processor, by measured times.

mod process;
mod report;
mod server;

use std::collections::BTreeMap;
use std::path::Path;

use tilewright_compiler::backend::{Backend, BackendError};
use tilewright_compiler::codegen::accel::space::Decisions;
use tilewright_compiler::graph::{Graph, NodeId};
use tilewright_compiler::partition::{Code, Offload, partition};
use tilewright_compiler::passes;
use tilewright_compiler::passes::pipelines::cpu_passes;
use tilewright_compiler::records::{Outcome, Record, Records, SCHEMA, Workload};
use tilewright_compiler::tune::{MeasuredLayer, MeasuredReport, MeasuredRequest, TuneError, tune_measured};
use tilewright_llvm::{LlvmBackend, Processor};
use tilewright_runtime::artifact::Artifact;
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::{Session, SessionError};

use super::{TuneRequest, open};
use crate::model::build::{Options, opt_level, partitioned};
use crate::model::compile::{CompileError, compile};
use crate::model::error::ModelError;
use crate::model::inference::made_up;

pub use process::measured_by;
pub use server::tune_cpu_on;

/// Fewest and most runs of a measurement, and the seconds after which it ends.
const RUNS: [usize; 2] = [11, 301];
const SECONDS: f64 = 0.05;

/// A layer of the CPU.
struct CpuLayer {
    /// The layer as a graph of its own.
    graph: Graph,
    found: MeasuredLayer,
}

/// The result of a search for CPU code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuTuning {
    /// Names of the different layers, and how often each occurs.
    pub layers: Vec<(String, usize)>,
    /// The result, with the layers in the same order.
    pub report: MeasuredReport,
    /// Number of the log's lines that are not used, by reason.
    pub skipped: BTreeMap<String, usize>,
}

impl CpuTuning {
    /// Nanoseconds of all layers before and after, without those that could not be measured.
    pub fn ns(&self) -> [u64; 2] {
        let all = |k: usize| {
            let layers = self.layers.iter().zip(&self.report.layers);
            layers.filter_map(|((_, places), layer)| Some(layer.ns[k]? * *places as u64)).sum()
        };
        [all(0), all(1)]
    }
}

/// Searches for faster code of a model's layers on the CPU of the options, where all of the model runs, and appends a record
/// to the log for each trial and each choice. `measure` returns the median nanoseconds of the artifact at a path, best in
/// a process of its own; `None` if it does not run. `progress` gets the number of trials.
///
/// # Errors
/// [`ModelError::Log`] if the log cannot be read or written, [`ModelError::Tune`] if there is nothing to tune, or why
/// the model does not compile.
pub fn tune_cpu(
    graph: Graph,
    request: &TuneRequest,
    measure: &mut dyn FnMut(&Path) -> Option<u64>,
    progress: &mut dyn FnMut(usize),
) -> Result<CpuTuning, ModelError> {
    let backend = backend(request.options.processor)?;
    let key = backend.processor().key();
    let (log, mut file) = open(request.log, std::slice::from_ref(&key))?;
    let options = Options { offload: Offload::None, ..request.options };
    let layers = layers(graph, &options, &backend, request.layer)?;
    let found: Vec<MeasuredLayer> = layers.iter().map(|layer| layer.found.clone()).collect();
    let folder = tempfile::tempdir().map_err(TuneError::Write)?;
    let path = folder.path().join("layer.twa");
    let measured = MeasuredRequest {
        layers: &found,
        config: &key,
        known: &log.records,
        seed: request.seed,
        trials: request.trials,
        time: request.time,
    };
    let mut time = |at: usize, decisions: &Decisions| {
        let CpuLayer { graph, found } = &layers[at];
        let tuned = backend.clone().with_records(chosen(&found.workload, decisions));
        let split = partition(graph, options.config, Offload::None);
        let artifact = compile(graph, &split, options.config, &tuned, &[]).ok()?;
        // Code without these decisions says nothing about them.
        if !tuned.replay().refused.is_empty() {
            return None;
        }
        artifact.write(&path).ok()?;
        measure(&path)
    };
    let report = tune_measured(&measured, &mut time, &mut |record| file.write(record), progress)?;
    let layers = found.into_iter().map(|layer| (layer.name, layer.places)).collect();
    Ok(CpuTuning { layers, report, skipped: log.skipped })
}

/// The code generator for a processor by its name, or for this machine.
fn backend(processor: Option<&str>) -> Result<LlvmBackend, CompileError> {
    let Some(name) = processor else { return Ok(LlvmBackend::new()?) };
    let wrong = |e: &dyn std::fmt::Display| BackendError::Toolchain { backend: "cpu", message: e.to_string() };
    Ok(LlvmBackend::for_processor(Processor::named(name).map_err(|e| wrong(&e))?))
}

/// Records with only this choice.
fn chosen(workload: &Workload, decisions: &Decisions) -> Records {
    let hash = || workload.hash.clone();
    let outcome = Outcome::Fastest { ns: 0 };
    let (layer, near, text, decisions) = (hash(), hash(), String::new(), decisions.clone());
    let mut records = Records::default();
    records.add(&[Record { schema: SCHEMA, config: String::new(), layer, near, text, decisions, outcome }]);
    records
}

/// Returns the different layers with a choice, or only the one that contains the node `only`.
fn layers(
    graph: Graph,
    options: &Options,
    backend: &LlvmBackend,
    only: Option<&str>,
) -> Result<Vec<CpuLayer>, ModelError> {
    let (graph, split) = partitioned(graph, options, &mut |_, _| {})?;
    let mut found: Vec<CpuLayer> = Vec::new();
    let mut names = Vec::new();
    for region in split.regions.iter().filter(|region| matches!(region.code, Code::Cpu)) {
        let cut = graph.cut(&region.nodes).map_err(|e| CompileError::from(Box::new(e)))?;
        let (part, _) = passes::run(cut.graph, &cpu_passes(opt_level(options.level)), passes::Options::default())?;
        let list: Vec<NodeId> = part.nodes().map(|(id, _)| id).collect();
        for layer in backend.layers(&part, &list) {
            let name = layer.nodes.last().map_or("", |id| &part.node(*id).name).to_string();
            names.push(name.clone());
            if only.is_some_and(|only| layer.nodes.iter().all(|id| part.node(*id).name != only)) {
                continue;
            }
            if let Some(known) = found.iter_mut().find(|known| known.found.workload == layer.workload) {
                known.found.places += 1;
                continue;
            }
            let alone = part.cut(&layer.nodes).map_err(|e| CompileError::from(Box::new(e)))?.graph;
            let nodes: Vec<NodeId> = alone.nodes().map(|(id, _)| id).collect();
            // A layer that computes something else without its neighbors cannot be measured by itself.
            if backend.layers(&alone, &nodes).iter().all(|own| own.workload != layer.workload) {
                continue;
            }
            let (workload, space, current) = (layer.workload, layer.space, layer.decisions);
            let measured = MeasuredLayer { name, places: 1, workload, space, current };
            found.push(CpuLayer { graph: alone, found: measured });
        }
    }
    match (names.is_empty(), only) {
        (true, _) => Err(TuneError::NothingOnCpu.into()),
        (false, Some(only)) if found.is_empty() => {
            Err(TuneError::NoCpuLayer { layer: only.into(), there: names }.into())
        }
        _ => Ok(found),
    }
}

/// Runs an artifact with made-up inputs several times, and returns the median nanoseconds of its steps, without outliers.
///
/// # Errors
/// The artifact does not run.
pub fn measured_ns(artifact: Artifact) -> Result<u64, SessionError> {
    let inputs = made_up(&artifact.manifest.input_values());
    let mut session = Session::new(artifact, Registry::global(), None)?;
    session.run(&inputs)?;
    let mut times: Vec<f64> = Vec::new();
    while times.len() < RUNS[0] || (times.len() < RUNS[1] && times.iter().sum::<f64>() < SECONDS) {
        let (_, report) = session.run(&inputs)?;
        times.push(report.steps.iter().map(|step| step.wall_s).sum());
    }
    Ok((without_outliers(times) * 1e9).round() as u64)
}

/// The median of the times that are not far above the median of all: those were interrupted.
fn without_outliers(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    let median = |times: &[f64]| times.get(times.len() / 2).copied().unwrap_or(0.0);
    let most = 1.5 * median(&times);
    times.retain(|time| *time <= most);
    median(&times)
}

#[cfg(test)]
mod tests {
    use tilewright_compiler::frontend::Sizes;
    use tilewright_hw::config::HwConfig;

    use super::*;
    use crate::model::build::{build_traced, import};
    use crate::model::plans::Tuned;
    use crate::model::zoo;

    #[test]
    fn interrupted_runs_do_not_count() {
        assert_eq!(without_outliers(vec![1.0, 9.0, 1.2, 1.1, 7.0]), 1.1);
        assert_eq!(without_outliers(vec![]), 0.0);
    }

    /// Code without a candidate's decisions must not be measured in its place. Each measurement here is faster than the
    /// one before it, so the last candidate that is measured wins.
    #[test]
    fn only_code_with_the_decisions_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        let config = HwConfig::load("1x16x16").unwrap();
        let network = zoo::find("lenet").unwrap().extract(folder.path()).unwrap();
        let graph = || import(&network, Sizes::default()).unwrap();
        for seed in 0..2 {
            let log = folder.path().join(seed.to_string());
            let options = Options { offload: Offload::None, ..Options::new(&config) };
            let trials = Some(30);
            let request = TuneRequest { options, log: &log, seed, threads: 1, trials, time: None, layer: None };
            let mut ns = 1e12;
            let mut measure = |_: &Path| {
                ns *= 0.9;
                Some(ns as u64)
            };
            let tuning = tune_cpu(graph(), &request, &mut measure, &mut |_| {}).unwrap();
            let loaded = Tuned::read(&log).unwrap().load(&config, None).unwrap();
            let built = build_traced(graph(), &Options { records: loaded.get(), ..options }, &mut |_, _| {}).unwrap();
            assert!(built.replay.refused.is_empty(), "seed {seed}: {:?}", built.replay);
            assert!(built.replay.used >= tuning.layers.len(), "seed {seed}: {:?}", built.replay);
        }
    }
}
