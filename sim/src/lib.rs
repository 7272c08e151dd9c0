//! Tilewright's simulators, each behind [`tilewright_hw::device::Device`].
//!
//! [`functional`] executes the meaning of a stream, [`dram`] is the memory behind the bus.

pub mod functional;

pub use functional::{Fsim, Kernel, Step, Stepper};
