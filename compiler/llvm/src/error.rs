//! Errors of code generation.

use inkwell::builder::BuilderError;
use inkwell::support::LLVMString;
use thiserror::Error;
use tilewright_hw::interrupt::Interrupted;

/// An error of code generation. [`crate::LlvmBackend`] adds the name of the function.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum EmitError {
    /// LLVM rejected an instruction, the module or the target.
    #[error("LLVM: {0}")]
    Llvm(String),
    /// The loop program uses something that CPU code does not support.
    #[error("{0}")]
    Program(String),
    /// The work was stopped from outside.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
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
