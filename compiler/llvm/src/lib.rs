//! CPU code generation: compiles loop programs to object code through LLVM.
//!
//! [`LlvmBackend`] takes nodes of a graph, fuses element-wise nodes into the node before them, lowers and schedules
//! each group ([`schedule`]), and emits position-independent objects: one, or one for each function if shapes share code.
//! An object imports only what the runtime's loader provides.

mod aside;
mod backend;
mod cache;
mod constants;
mod emit;
mod error;
mod run;
mod schedule;
mod shared;
mod target;
#[cfg(test)]
mod tests;

pub use aside::finish;
pub use backend::{LlvmBackend, TunedLayer, compile_functions};
pub use emit::emit;
pub use error::EmitError;
pub use run::{RunError, Runner};
pub use schedule::schedule;
pub use target::{Architecture, Known, Processor, known};
