//! Why a model cannot run.

use tilewright_driver::DriverError;
use tilewright_hw::interrupt::Interrupted;

use crate::artifact::ArtifactError;
use crate::cuda::CudaError;
use crate::loader::LoadError;
use crate::tensor::{DType, shape_text};

/// Why a model cannot run.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The artifact is not for this device.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// The object code lacks the function of a CPU step.
    #[error("step {step} calls {function}, which the artifact's object code does not have; compile the model again")]
    NoFunction {
        /// The step.
        step: String,
        /// The function.
        function: String,
    },
    /// A packed step calls a function that is not registered.
    #[error(
        "step {step} calls the function {function}, which is not registered; register it before the model is opened"
    )]
    NotRegistered {
        /// The step.
        step: String,
        /// The function.
        function: String,
    },
    /// The system does not have the memory that a step or a value needs.
    #[error("{what} needs {bytes} bytes, more memory than the system provides; use a smaller model or batch")]
    Memory {
        /// The step or value.
        what: String,
        /// Bytes that it needs.
        bytes: u64,
    },
    /// The object code cannot be loaded.
    #[error("{path}: {source}")]
    Load {
        /// The artifact.
        path: String,
        /// Why.
        source: LoadError,
    },
    /// The object code is for another processor.
    #[error(
        "{path} has code for {target}, but this processor lacks {missing}; compile the model again {}",
        if cfg!(target_arch = "wasm32") { "with --emit wasm" } else { "on this machine, without --cpu-target" }
    )]
    OtherProcessor {
        /// The artifact.
        path: String,
        /// The target that it was compiled for.
        target: String,
        /// The missing instructions.
        missing: String,
    },
    /// Accelerator steps without a device.
    #[error(
        "step {step} runs on an accelerator; give a device with --device, or compile the model with --offload none"
    )]
    NoDevice {
        /// The step.
        step: String,
    },
    /// The wrong number of inputs.
    #[error("{given} inputs given, but the model has {}: {}", names.len(), names.join(", "))]
    InputCount {
        /// Inputs given.
        given: usize,
        /// Names of the model's inputs.
        names: Vec<String>,
    },
    /// An input of the wrong type.
    #[error("input {name} is {found}, but the model expects {wanted}; convert its elements (in NumPy with astype)")]
    InputType {
        /// The input.
        name: String,
        /// Type given.
        found: DType,
        /// Type that the model expects.
        wanted: DType,
    },
    /// An input of the wrong shape.
    #[error("input {name} has shape {}, but the model expects {}", shape_text(found), shape_text(wanted))]
    InputShape {
        /// The input.
        name: String,
        /// Shape given.
        found: Vec<usize>,
        /// Shape that the model expects.
        wanted: Vec<usize>,
    },
    /// An input of another value than the one that the model is compiled for.
    #[error("input {name} is {found}, but the model is compiled for {wanted} alone; compile it for the other value")]
    InputValue {
        /// The input.
        name: String,
        /// Value given.
        found: String,
        /// Value that the model is compiled for.
        wanted: String,
    },
    /// An input whose sizes do not suit those that the model has.
    #[error("input {name} has shape {}, but the model expects {wanted}", shape_text(found))]
    OpenShape {
        /// The input.
        name: String,
        /// Shape given.
        found: Vec<usize>,
        /// Sizes that the model expects; an open size is written as its name.
        wanted: String,
    },
    /// The model is not compiled for these shapes, and cannot be compiled for them here.
    #[error("{model} for inputs of {shapes}: {reason}")]
    Specialize {
        /// The model.
        model: String,
        /// The shapes.
        shapes: String,
        /// Why.
        reason: String,
    },
    /// The run was stopped from outside.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The wrong number of outputs.
    #[error("memory for {given} outputs given, but the model has {}: {}", names.len(), names.join(", "))]
    OutputCount {
        /// Outputs given.
        given: usize,
        /// Names of the model's outputs.
        names: Vec<String>,
    },
    /// Memory for an output that has another type or shape.
    #[error("the memory for output {name} is for {found}, but the model writes {wanted}")]
    Output {
        /// The output.
        name: String,
        /// Type and shape given.
        found: String,
        /// Type and shape that the model writes.
        wanted: String,
    },
    /// A function of the program panicked.
    #[error("a function that the model calls panicked; the program's output has its message")]
    Panicked,
    /// The system provides no more threads.
    #[error("no thread for another frame: {0}")]
    Threads(std::io::Error),
    /// The session is in use.
    #[error(
        "another thread runs this session, or this call is made by a function that it runs; open a session for each"
    )]
    Busy,
    /// The session was closed.
    #[error("this session is closed; open another one")]
    Closed,
    /// The device or the driver rejected a step, or a trap ended it.
    #[error("step {step}: {source}")]
    Accel {
        /// The step.
        step: String,
        /// Why.
        source: DriverError,
    },
    /// A GPU step failed, or there is no GPU.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// A CPU step failed.
    #[error("step {step}: {reason}")]
    Step {
        /// The step.
        step: String,
        /// Why.
        reason: String,
    },
}

impl SessionError {
    /// Whether the inputs or outputs of a run were not what the model has, so that nothing ran.
    pub fn is_of_arguments(&self) -> bool {
        matches!(
            self,
            SessionError::InputCount { .. }
                | SessionError::InputType { .. }
                | SessionError::InputShape { .. }
                | SessionError::InputValue { .. }
                | SessionError::OpenShape { .. }
                | SessionError::Specialize { .. }
                | SessionError::OutputCount { .. }
                | SessionError::Output { .. }
        )
    }
}
