//! What is to be compared.

use tilewright_compiler::graph::Graph;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::Artifact;

use super::names::Asked;
use crate::examine::trace::UnknownInsn;
use crate::model::{self, ModelError, Offload, Precision};

/// What is measured, and how.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The devices, in the order of the table.
    pub devices: &'a [Asked],
    /// The configurations; each accelerator device stands in the table once for each.
    pub configs: &'a [HwConfig],
    /// What the accelerator gets.
    pub offload: Offload,
    /// Level of optimisation, 0 to 3.
    pub level: u8,
    /// How wide floats are in a GPU's memory.
    pub precision: Precision,
    /// Threads of the processor's pool.
    pub threads: usize,
    /// Runs before those that count.
    pub warm_up: usize,
    /// Runs that count.
    pub repetitions: usize,
    /// Whether every way to offload is weighed against the others.
    pub compare_offload: bool,
}

impl Request<'_> {
    /// How often each device runs.
    pub(super) fn runs(&self) -> Runs {
        Runs { warm_up: self.warm_up, measured: self.repetitions }
    }
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The model does not compile.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A compiled program that its configuration does not know.
    #[error(transparent)]
    Program(#[from] UnknownInsn),
    /// Two devices of one name, or two configurations, of which results could not tell one from the other.
    #[error("{what} {name} is given twice, and results go by names; give it once, or another name")]
    Twice {
        /// Device or configuration.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The processor's threads cannot be had.
    #[error("cannot make {threads} threads: {reason}; use fewer with --threads")]
    Threads {
        /// Threads asked for.
        threads: usize,
        /// The system's reason.
        reason: String,
    },
    /// The processor, which every comparison stands on, cannot run the model.
    #[error("this machine's processor cannot run the model: {0}")]
    Processor(String),
}

/// Compiles for a configuration.
pub(super) fn build(graph: &Graph, config: &HwConfig, offload: Offload, level: u8) -> Result<Artifact, ModelError> {
    let options = model::Options { offload, level, ..model::Options::new(config) };
    model::build(graph.clone(), &options, &mut |_, _| {})
}

/// How often something runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runs {
    /// Runs before those that count.
    pub warm_up: usize,
    /// Runs that count.
    pub measured: usize,
}
