//! Tilewright's simulators, each behind [`tilewright_hw::device::Device`].
//!
//! [`functional`] executes the meaning of a stream, [`cycle`] its time too, [`dram`] is the memory behind the bus, and [`rtl`] runs the
//! design itself, Verilated; [`board`] a whole
//! board with its shell, [`axi`] the core as a peripheral of a processor. [`netlist`] simulates what synthesis and routing made of a
//! board's design.

mod access;
pub mod axi;
pub mod board;
pub mod cycle;
pub mod dram;
mod explain;
pub mod functional;
pub mod netlist;
mod queue;
pub mod random;
pub mod rtl;
mod span;
mod verilate;

pub use cycle::{Csim, CsimOptions};
pub use explain::explain;
pub use functional::{Fsim, Kernel, Step, Stepper};
pub use rtl::{Rtl, RtlOptions};
