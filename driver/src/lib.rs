//! Tilewright's driver: device memory, and instruction streams built just in time.
//!
//! [`Builder`] takes instructions in program order and gives back a [`AccelProgram`]: micro-op kernels are shared and
//! loaded where they are missing, and dependency tokens follow from what the instructions touch. [`Loaded`] puts a
//! program into a device's memory and runs it. [`link`] reaches boards behind a serial port, [`peripheral`] the core beside this
//! processor.

pub mod access;
mod affine;
mod builder;
mod cache;
mod error;
pub mod link;
mod memory;
pub mod peripheral;
mod program;
pub mod race;
mod run;
mod set;
mod tokens;
pub mod trace;
mod uops;

pub use affine::{Dim, Nest, Piece};
pub use builder::Builder;
pub use cache::StreamCache;
pub use error::DriverError;
pub use memory::{ALIGN, Block, DeviceMemory};
pub use program::{AccelProgram, Binding, Region, RegionId, Role, Section, Summary};
pub use run::{Loaded, run_program};
pub use set::EntrySet;
