//! What can go wrong while code is generated.

use inkwell::builder::BuilderError;
use inkwell::support::LLVMString;
use thiserror::Error;

/// An error of code generation; [`crate::LlvmBackend`] adds which function it was.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum EmitError {
    /// LLVM refused an instruction, the module or the target.
    #[error("LLVM: {0}")]
    Llvm(String),
    /// The loop program has something that CPU code cannot have.
    #[error("{0}")]
    Program(String),
}

impl From<BuilderError> for EmitError {
    fn from(e: BuilderError) -> EmitError {
        EmitError::Llvm(e.to_string())
    }
}

impl From<LLVMString> for EmitError {
    fn from(e: LLVMString) -> EmitError {
        EmitError::Llvm(e.to_string())
    }
}
