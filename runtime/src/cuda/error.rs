//! Why there is no GPU, or why an operation on it failed.

/// Why there is no GPU, or why an operation on it failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CudaError {
    /// A required part is missing.
    #[error("device cuda is not available: {reason}; {remedy}")]
    Unavailable {
        /// What is missing.
        reason: String,
        /// What to do.
        remedy: String,
    },
    /// The compiler rejected the code.
    #[error("NVRTC rejected the generated code: {log}")]
    Compile {
        /// The compiler's log.
        log: String,
    },
    /// The artifact's code does not fit the step that calls it.
    #[error("the artifact's CUDA code is damaged: {0}; compile the model again")]
    Damaged(String),
    /// The driver reported an error.
    #[error("{what} failed: {reason}")]
    Driver {
        /// The operation.
        what: String,
        /// The driver's error.
        reason: String,
    },
}
