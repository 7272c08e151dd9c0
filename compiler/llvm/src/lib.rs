//! CPU code: loop programs to object code for a processor through LLVM.
//!
//! [`LlvmBackend`] takes nodes of a graph, joins element-wise ones to what they follow, lowers and schedules each group
//! ([`schedule`]), and emits one position-independent object whose imports are those of the runtime's loader.

mod backend;
mod cache;
mod constants;
mod emit;
mod error;
mod schedule;
mod target;
#[cfg(test)]
mod tests;

pub use backend::{LlvmBackend, compile_functions};
pub use emit::emit;
pub use error::EmitError;
pub use schedule::schedule;
pub use target::{Architecture, Processor};
