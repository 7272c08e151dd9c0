//! GPU code: loop programs to CUDA C.
//!
//! [`CudaBackend`] takes nodes of a graph, joins element-wise ones to what they follow, lowers each group and binds its loops to
//! blocks and threads ([`schedule`]), and writes a kernel for each nest ([`emit`]). The text is compiled where it runs. Products
//! are described beside their kernels, so that a library computes them where there is one.

mod backend;
mod emit;
mod error;
mod library;
mod schedule;
#[cfg(test)]
mod tests;

pub use backend::{CudaBackend, Precision};
pub use emit::{PRELUDE, Unit, emit};
pub use error::EmitError;
pub use schedule::schedule;
