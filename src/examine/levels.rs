//! Measures the effect of an optimization level on a model.

use std::path::Path;

use tilewright_hw::config::HwConfig;
use tilewright_hw::device::Device;
use tilewright_hw::isa::INSN_BYTES;
use tilewright_runtime::artifact::{Artifact, StepKind};
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::{Session, SessionError};

use crate::model::inference::{made_up, run};
use crate::model::{self, ModelError, Offload, Options, Sizes};

/// Why a level has no figures.
#[derive(Debug, thiserror::Error)]
pub enum LevelError {
    /// The model does not compile.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model does not run.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A program cannot be decoded.
    #[error("instruction {index} of step {step} does not decode; this is a bug in the compiler")]
    Decode {
        /// The step.
        step: String,
        /// Index of the instruction.
        index: usize,
    },
}

/// Figures of a model at one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// Nodes of the graph after the passes, without constants.
    pub nodes: usize,
    /// Programs of the accelerator and functions of the CPU.
    pub steps: usize,
    /// Instructions of all programs.
    pub instructions: usize,
    /// Bytes that loads, stores and fetches of one run move.
    pub dram_bytes: u64,
    /// Cycles of one run; none if the device is untimed.
    pub cycles: Option<u64>,
    /// Least seconds of a run with nothing offloaded.
    pub cpu_s: f64,
}

/// Compiles a model at a level and runs it with random inputs, once on the device and `repeats` times on the CPU.
///
/// # Errors
/// [`LevelError`].
pub fn figures(
    file: &Path,
    config: &HwConfig,
    level: u8,
    device: Option<Box<dyn Device>>,
    repeats: usize,
) -> Result<Figures, LevelError> {
    let compiled = |offload: bool| -> Result<Artifact, LevelError> {
        let graph = model::import(file, Sizes::default())?;
        Ok(model::build(
            graph,
            &Options { offload: Offload::all_if(offload), level, ..Options::new(config) },
            &mut |_, _| {},
        )?)
    };
    let artifact = compiled(true)?;
    let manifest = artifact.manifest.clone();
    let (mut instructions, mut dram_bytes) = (0, 0);
    for step in &manifest.steps {
        let StepKind::Accel(accel) = &step.kind else { continue };
        let mut program = accel.program.clone();
        program.stream = artifact.blob(accel.stream).to_vec();
        let decode = |(index, _)| LevelError::Decode { step: step.name.clone(), index };
        let summary = program.summary(config).map_err(decode)?;
        instructions += program.stream.len() / INSN_BYTES;
        dram_bytes += summary.load_bytes + summary.store_bytes + program.stream.len() as u64;
    }
    let inputs = [made_up(&manifest.input_values())];
    let cycles = match device {
        Some(device) => run(&mut Session::new(artifact, Registry::global(), Some(device))?, &inputs, |_| {})?.cycles(),
        None => None,
    };
    let mut session = Session::new(compiled(false)?, Registry::global(), None)?;
    let mut cpu_s = f64::INFINITY;
    for _ in 0..repeats.max(1) {
        cpu_s = cpu_s.min(run(&mut session, &inputs, |_| {})?.wall_s());
    }
    let (nodes, steps) = (manifest.nodes.len(), manifest.steps.len());
    Ok(Figures { nodes, steps, instructions, dram_bytes, cycles, cpu_s })
}
