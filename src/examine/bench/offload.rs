//! Compares the ways to offload: everything that the accelerator can compute, only what is faster there, or nothing.

use tilewright_compiler::graph::Graph;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{Artifact, Place};
use tilewright_runtime::tensor::Tensor;

use super::request::build;
use super::{Asked, BenchError, BenchRequest, Figures, LayerTime, Stream, accelerated};
use crate::model::Offload;

/// A way to offload, as in `--offload`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffloadChoice {
    /// Everything that the accelerator can compute.
    All,
    /// Only what is faster there.
    Auto,
    /// Nothing.
    None,
}

impl OffloadChoice {
    /// Its name in `--offload`.
    pub fn name(self) -> &'static str {
        match self {
            OffloadChoice::All => "all",
            OffloadChoice::Auto => "auto",
            OffloadChoice::None => "none",
        }
    }
}

/// Figures of a way to offload, by the cycle model.
#[derive(Debug, Clone, PartialEq)]
pub struct OffloadRow {
    /// The configuration.
    pub hw: String,
    /// The way to offload.
    pub choice: OffloadChoice,
    /// Number of the model's layers on the accelerator, and of all; without steps that compilation added.
    pub layers: (usize, usize),
    /// The fraction of multiply-accumulates there.
    pub offloaded: Option<f64>,
    /// Milliseconds of an input with this machine's CPU as the host; none if the cycle model could not run.
    pub latency_ms: Option<f64>,
    /// Throughput of a stream of inputs with that host.
    pub stream: Option<Stream>,
    /// Milliseconds of an input on the configuration's target host.
    pub target_ms: Option<f64>,
    /// Why there are no figures.
    pub missing: Option<String>,
}

/// The ways that are compiled and run; figures of the other way are those of the CPU.
pub(super) const COMPILED: [(OffloadChoice, Offload); 2] =
    [(OffloadChoice::All, Offload::All), (OffloadChoice::Auto, Offload::Auto)];

/// All ways on one configuration; `piece` is called when each of [`COMPILED`] begins.
pub(super) fn rows(
    graph: &Graph,
    config: &HwConfig,
    built: Result<&Artifact, &str>,
    inputs: &[Tensor],
    request: &BenchRequest,
    (cpu, host_ms): (&Figures, Option<f64>),
    piece: &dyn Fn(&str),
) -> Result<Vec<OffloadRow>, BenchError> {
    let csim = Asked { name: "csim".into(), kind: Ok(crate::device::DeviceKind::CSIM) };
    let mut rows = Vec::new();
    for (choice, offload) in COMPILED {
        piece(&format!("--offload {} on {}", choice.name(), config.name));
        let other;
        let artifact = if offload == request.offload {
            built
        } else {
            other = build(graph, config, offload, request).map_err(|reason| reason.to_string());
            other.as_ref().map_err(String::as_str)
        };
        let column = accelerated::column(&csim, config, artifact, inputs, request, (cpu, false), &|_| {})?;
        let missing = column.figures.as_ref().err().cloned();
        let found = column.figures.ok();
        rows.push(OffloadRow {
            hw: config.name.clone(),
            choice,
            layers: found.as_ref().map_or((0, 0), |f| counted(&f.layers)),
            offloaded: artifact.ok().and_then(|artifact| artifact.manifest.offloaded_share()),
            latency_ms: found.as_ref().map(|f| f.latency_ms.median),
            stream: found.as_ref().and_then(|f| f.stream),
            target_ms: found.as_ref().and_then(|f| f.on_target).map(|frame| frame.latency_ms()),
            missing,
        });
    }
    rows.push(OffloadRow {
        hw: config.name.clone(),
        choice: OffloadChoice::None,
        layers: counted(&cpu.layers),
        offloaded: Some(0.0),
        latency_ms: Some(cpu.latency_ms.median),
        stream: cpu.stream,
        target_ms: host_ms,
        missing: None,
    });
    Ok(rows)
}

/// Number of the model's layers on the accelerator, and of all.
fn counted(layers: &[LayerTime]) -> (usize, usize) {
    let of_model = || layers.iter().filter(|layer| !layer.nodes.is_empty());
    (of_model().filter(|layer| layer.place == Place::Accel).count(), of_model().count())
}
