//! Why a loop program has no CUDA C.

/// What the generator refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// The program is not well-formed.
    #[error("the loop program is not well-formed: {0}")]
    Program(String),
    /// The loops are bound in a way that threads cannot follow.
    #[error("threads cannot run the loop program: {0}")]
    Bound(String),
    /// More than a GPU has.
    #[error("the loop program needs {0}")]
    Size(String),
}
