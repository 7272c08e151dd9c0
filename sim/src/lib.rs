//! Tilewright's simulators, each behind [`tilewright_hw::device::Device`].
//!
//! [`functional`] executes the meaning of a stream, [`cycle`] its time too, [`dram`] is the memory behind the bus, and [`rtl`] runs the
//! design itself, Verilated.

mod access;
pub mod cycle;
pub mod dram;
mod explain;
pub mod functional;
mod queue;
pub mod random;
pub mod rtl;
mod span;

pub use cycle::{Csim, CsimOptions};
pub use explain::explain;
pub use functional::{Fsim, Kernel, Step, Stepper};
pub use rtl::{Rtl, RtlOptions};
