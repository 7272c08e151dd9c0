//! GPU code generation: translates loop programs to CUDA C.
//!
//! [`CudaBackend`] takes nodes of a graph, fuses element-wise nodes into the node before them, lowers each group, binds
//! its loops to blocks and threads ([`schedule`]), and writes a kernel for each nest ([`emit`]). The text is compiled
//! where it runs. Products are described in addition to their kernels, so that a library can compute them where one is
//! installed.

mod backend;
mod emit;
mod error;
mod library;
mod schedule;
#[cfg(test)]
mod tests;

pub use backend::{CudaBackend, Precision};
pub use emit::{FunctionKernels, PRELUDE, emit};
pub use error::EmitError;
pub use schedule::schedule;
