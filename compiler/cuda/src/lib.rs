//! C code generation: translates loop programs to CUDA C for GPUs, and to C99 for any processor ([`C99Backend`]).
//!
//! [`CudaBackend`] takes nodes of a graph, fuses element-wise nodes into the node before them, lowers each group, binds
//! its loops to blocks and threads ([`schedule`]), and writes a kernel for each nest ([`emit`]). The text is compiled
//! where it runs. Products are described in addition to their kernels, so that a library can compute them where one is
//! installed.

mod backend;
mod c99;
mod emit;
mod error;
mod library;
mod schedule;
#[cfg(test)]
mod tests;

pub use backend::{CudaBackend, Precision};
pub use c99::{C99_TARGET, C99Backend};
pub use emit::{FunctionKernels, PRELUDE, emit, emit_c};
pub use error::EmitError;
pub use schedule::schedule;
