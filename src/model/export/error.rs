//! Errors of the export.

use tilewright_runtime::loader::LoadError;

/// Why a model was not exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A step runs neither on the CPU nor on the accelerator.
    #[error("step {step} runs neither on the CPU nor on the accelerator; leave out --fallback and --packed")]
    Step {
        /// The step.
        step: String,
    },
    /// A step that repeats or chooses regions.
    #[error(
        "step {step} repeats or chooses a part of the model, for which only artifacts have code; compile it with --emit \
         artifact, so or wasm"
    )]
    Flow {
        /// The step.
        step: String,
    },
    /// An object cannot be read.
    #[error("model {model}: {source}")]
    Object {
        /// The model.
        model: String,
        /// Why not.
        source: LoadError,
    },
    /// An import that exported code does not provide; this is a bug in the code generator.
    #[error("model {model}: the code calls `{import}`, which is not among the imports of exported code")]
    Import {
        /// The model.
        model: String,
        /// The function.
        import: String,
    },
    /// Two regions have functions with the same name, so they cannot be linked.
    #[error("model {model}: two objects have a function `{function}`; export it compiled with --offload none")]
    Twice {
        /// The model.
        model: String,
        /// The function.
        function: String,
    },
    /// The accelerator's programs have no place in its memory.
    #[error("model {model}: {reason}")]
    Accelerator {
        /// The model.
        model: String,
        /// Why not.
        reason: String,
    },
    /// The object with the constants could not be made.
    #[error("model {model}: {reason}")]
    Constants {
        /// The model.
        model: String,
        /// What the code generator says.
        reason: String,
    },
}
