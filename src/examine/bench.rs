//! Compares a model's time on several devices, end to end and layer by layer.
//!
//! Accelerator times are exact cycles at the configuration's clock. Times of this machine's CPU are measured; those of
//! the configuration's target host are modeled. `docs/compare.md` says where each figure comes from.

mod accelerated;
mod agree;
mod csv;
mod device;
mod frame;
mod json;
mod names;
mod offload;
mod plain;
mod request;
mod rows;
mod spread;
mod stream;
mod text;

pub(crate) use accelerated::with_cycles;
pub use device::{Column, Figures, LayerTime};
pub use frame::{Frame, StepTime, here, host_alone_ms, on_target, segments};
pub use names::Asked;
pub use offload::{OffloadChoice, OffloadRow};
pub(crate) use plain::{time_on_host, timed};
pub use request::{BenchError, BenchRequest, Runs};
pub use rows::{LayerRow, rows};
pub use spread::Spread;
pub use stream::{How, IN_FLIGHT, On, Segment, Stream};

use tilewright_compiler::graph::Graph;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::Artifact;
use tilewright_runtime::tensor::Tensor;
use tilewright_runtime::threads::Threads;

use crate::model::{self, Fallback, Offload, Precision};
use agree::agree;
use request::build;

/// Result of a comparison.
#[derive(Debug, Clone)]
pub struct Bench {
    /// The model's name.
    pub model: String,
    /// Multiply-accumulates of one run.
    pub macs: u64,
    /// Threads of the CPU thread pool.
    pub threads: usize,
    /// Warm-up runs.
    pub warm_up: usize,
    /// Measured runs.
    pub repetitions: usize,
    /// Optimization level.
    pub level: u8,
    /// Float width in a GPU's memory.
    pub precision: Precision,
    /// The devices, including missing ones.
    pub columns: Vec<Column>,
    /// The target hosts of the configurations, with their modeled times of the whole model.
    pub hosts: Vec<TargetHost>,
    /// Milliseconds of the whole model on this machine's CPU.
    pub cpu_ms: f64,
    /// Figures of each way to offload.
    pub offload: Vec<OffloadRow>,
}

/// A target host that runs the whole model alone.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetHost {
    /// The configuration that declares it.
    pub hw: String,
    /// Its name.
    pub target: String,
    /// Modeled milliseconds of the whole model; none if a size is not known.
    pub latency_ms: Option<f64>,
}

/// Compiles and measures. `told` receives the current activity, the number of pieces done and their total.
///
/// # Errors
/// [`BenchError`]. A missing device, or a configuration for which the model does not compile, is not an error: its
/// column contains the reason.
pub fn bench(
    graph: &Graph,
    inputs: &[Tensor],
    request: &BenchRequest,
    told: &(dyn Fn(&str, usize, usize) + Sync),
) -> Result<Bench, BenchError> {
    twice("device", request.devices.iter().map(|asked| &asked.name))?;
    twice("configuration", request.configs.iter().map(|config| &config.name))?;
    let threads = Threads::new(request.threads);
    let threads = threads.map_err(|e| BenchError::Threads { threads: request.threads, reason: e.to_string() })?;
    threads.install(|| on_threads(graph, inputs, request, told))
}

fn on_threads(
    graph: &Graph,
    inputs: &[Tensor],
    request: &BenchRequest,
    told: &(dyn Fn(&str, usize, usize) + Sync),
) -> Result<Bench, BenchError> {
    let first = request.configs.first().cloned().unwrap_or_default();
    let accelerators = request.devices.iter().filter(|asked| asked.is_accelerator()).count();
    let of_a_config = if request.compare_offload { offload::COMPILED.len() } else { 0 } + 1 + accelerators;
    let on_gpus = request.devices.iter().filter(|asked| asked.is_gpu()).count();
    let pieces = 1 + on_gpus + if accelerators > 0 { request.configs.len() * of_a_config } else { 0 };
    let done = std::cell::Cell::new(0);
    // Reports each piece when it begins, so all earlier ones are done.
    let piece = |what: &str| told(what, done.replace(done.get() + 1), pieces);
    piece("cpu");
    // Speed-ups are relative to the CPU, so it is always measured.
    let alone = build(graph, &first, Offload::None, request)?;
    let cpu = plain::processor(&alone, inputs, request).map_err(BenchError::Processor)?;
    let mut bench = Bench {
        model: alone.manifest.model.clone(),
        macs: alone.manifest.macs(),
        threads: request.threads,
        warm_up: request.warm_up,
        repetitions: request.repetitions,
        level: request.level,
        precision: request.precision,
        columns: Vec::new(),
        hosts: Vec::new(),
        cpu_ms: cpu.latency_ms.median,
        offload: Vec::new(),
    };
    let mut built: Vec<Result<Artifact, String>> = Vec::new();
    for config in request.configs.iter().filter(|_| accelerators > 0) {
        piece(&format!("compiling for {}", config.name));
        built.push(build(graph, config, request.offload, request).map_err(|reason| reason.to_string()));
    }
    for asked in request.devices {
        if asked.is_gpu() {
            piece("cuda");
            let figures = on_gpu(graph, &first, inputs, request)
                .map(|gpu| Figures { agrees: agree(&gpu.outputs, &cpu.outputs, request.precision), ..gpu });
            bench.columns.push(Column { name: asked.name.clone(), device: asked.name.clone(), hw: None, figures });
            continue;
        }
        if !asked.is_accelerator() {
            bench.columns.push(Column::beside(asked, &cpu));
            continue;
        }
        for (config, artifact) in request.configs.iter().zip(&built) {
            piece(&format!("{} on {}", asked.name, config.name));
            let many = request.configs.len() > 1;
            let building = |what: &str| match what {
                "" => {}
                _ => told(&format!("{} on {}: {what}", asked.name, config.name), done.get() - 1, pieces),
            };
            let artifact = artifact.as_ref().map_err(String::as_str);
            let column = accelerated::column(asked, config, artifact, inputs, request, (&cpu, many), &building)?;
            bench.columns.push(column);
        }
    }
    for (at, config) in request.configs.iter().enumerate() {
        // The host's own time comes from the model compiled without offloading, for this configuration's host.
        let latency_ms = match built.get(at) {
            _ if at == 0 => frame::host_alone_ms(&alone),
            Some(Ok(built)) if request.offload == Offload::None => frame::host_alone_ms(built),
            _ => {
                let alone = build(graph, config, Offload::None, request);
                alone.ok().and_then(|alone| frame::host_alone_ms(&alone))
            }
        };
        bench.hosts.push(TargetHost { hw: config.name.clone(), target: config.host.target.clone(), latency_ms });
        if let Some(built) = built.get(at).filter(|_| request.compare_offload) {
            let built = built.as_ref().map_err(String::as_str);
            bench.offload.extend(offload::rows(graph, config, built, inputs, request, (&cpu, latency_ms), &piece)?);
        }
    }
    Ok(bench)
}

/// Fails if a name occurs twice.
fn twice<'a>(what: &'static str, names: impl Iterator<Item = &'a String>) -> Result<(), BenchError> {
    let mut seen = std::collections::HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(BenchError::Twice { what, name: name.clone() });
        }
    }
    Ok(())
}

/// Runs the whole model on this machine's GPU; the error says why not.
fn on_gpu(graph: &Graph, config: &HwConfig, inputs: &[Tensor], request: &BenchRequest) -> Result<Figures, String> {
    tilewright_runtime::cuda::available().map_err(|missing| missing.to_string())?;
    let fallback = Fallback::Cuda(request.precision);
    let options =
        model::Options { offload: Offload::None, fallback, level: request.level, ..model::Options::new(config) };
    let artifact = model::build(graph.clone(), &options, &mut |_, _| {}).map_err(|error| error.to_string())?;
    plain::processor(&artifact, inputs, request)
}
