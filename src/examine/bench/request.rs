//! The request for a comparison, and its errors.

use tilewright_compiler::graph::Graph;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::Artifact;

use super::names::Asked;
use crate::examine::trace::UnknownInsn;
use crate::model::plans::Tuned;
use crate::model::{self, ModelError, Offload, Precision};

/// What is measured, and how.
#[derive(Debug, Clone)]
pub struct BenchRequest<'a> {
    /// The devices, in the order of the table.
    pub devices: &'a [Asked],
    /// The configurations; each accelerator gets a column per configuration.
    pub configs: &'a [HwConfig],
    /// What the accelerator computes.
    pub offload: Offload,
    /// Optimization level, 0 to 3.
    pub level: u8,
    /// Float width in a GPU's memory.
    pub precision: Precision,
    /// Threads of the CPU thread pool.
    pub threads: usize,
    /// Warm-up runs.
    pub warm_up: usize,
    /// Measured runs.
    pub repetitions: usize,
    /// Whether to compare all ways to offload.
    pub compare_offload: bool,
    /// Which plans of layers that were found earlier to use.
    pub tuned: &'a Tuned,
}

impl BenchRequest<'_> {
    /// Number of runs of each device.
    pub(super) fn runs(&self) -> Runs {
        Runs { warm_up: self.warm_up, measured: self.repetitions }
    }
}

/// Why a comparison failed.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The model does not compile.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A compiled program contains an instruction that its configuration does not support.
    #[error(transparent)]
    Program(#[from] UnknownInsn),
    /// Two devices or two configurations have the same name, so results could not tell them apart.
    #[error("{what} {name} is given twice, but results need unique names; give it once, or under another name")]
    Twice {
        /// Device or configuration.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The threads cannot be created.
    #[error("cannot create {threads} threads: {reason}; use fewer with --threads")]
    Threads {
        /// Number of threads requested.
        threads: usize,
        /// The system's reason.
        reason: String,
    },
    /// The CPU, which every comparison needs, cannot run the model.
    #[error("this machine's CPU cannot run the model: {0}")]
    Processor(String),
}

/// Compiles for a configuration.
pub(super) fn build(
    graph: &Graph,
    config: &HwConfig,
    offload: Offload,
    request: &BenchRequest,
) -> Result<Artifact, ModelError> {
    let (level, records) = (request.level, request.tuned.load(config, None)?);
    let options = model::Options { offload, level, records: records.get(), ..model::Options::new(config) };
    model::build(graph.clone(), &options, &mut |_, _| {})
}

/// Numbers of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runs {
    /// Warm-up runs.
    pub warm_up: usize,
    /// Measured runs.
    pub measured: usize,
}
