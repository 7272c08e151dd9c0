//! Errors of CUDA code generation.

/// Why a loop program cannot be translated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// The program is not well-formed.
    #[error("the loop program is not well-formed: {0}")]
    Program(String),
    /// The loops are bound in a way that threads cannot execute.
    #[error("threads cannot run the loop program: {0}")]
    Bound(String),
    /// It needs more than a GPU has.
    #[error("the loop program needs {0}")]
    Size(String),
}
