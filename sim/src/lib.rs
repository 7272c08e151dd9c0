//! Tilewright's simulators. Each implements [`tilewright_hw::device::Device`].
//!
//! - [`functional`]: executes a stream's meaning, without time
//! - [`cycle`]: adds exact cycle counts
//! - [`dram`]: models the memory on the bus
//! - [`rtl`]: runs the Verilated design
//! - [`board`]: runs a whole board, the core inside its shell
//! - [`axi`]: runs the core as a peripheral of a processor
//! - [`netlist`]: simulates the netlists that synthesis and routing produce for a board's design
//!
//! WebAssembly has the first three: the others load libraries that a C++ compiler makes.

mod access;
#[cfg(not(target_family = "wasm"))]
pub mod axi;
#[cfg(not(target_family = "wasm"))]
pub mod board;
pub mod cycle;
pub mod dram;
mod explain;
pub mod functional;
#[cfg(not(target_family = "wasm"))]
pub mod netlist;
mod queue;
pub mod random;
#[cfg(not(target_family = "wasm"))]
pub mod rtl;
mod span;
#[cfg(not(target_family = "wasm"))]
mod verilate;

pub use cycle::{Csim, CsimOptions};
pub use explain::explain;
pub use functional::{Fsim, Kernel, StepResult, Stepper};
#[cfg(not(target_family = "wasm"))]
pub use rtl::{Rtl, RtlOptions};
