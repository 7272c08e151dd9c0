//! Tensor expressions, loop programs, schedules, and their lowering to instructions of the accelerator.
//!
//! Nothing here knows models, planning or a code generator for processors, so a program can build instruction streams
//! from `.te` files where the compiler is not.

mod dtype;
pub mod extreme;
mod forms;
pub mod mapping;
pub mod math;
pub mod schedule;
pub mod te;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tir;

pub use dtype::DType;
