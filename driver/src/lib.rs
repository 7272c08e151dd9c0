//! Tilewright's driver: device memory, and instruction streams built just in time.
//!
//! [`Builder`] turns instructions in program order into an [`AccelProgram`]. It shares micro-op kernels, loads those
//! that are not resident, and derives dependency tokens from what the instructions touch. [`Recording`] changes the
//! order of the instructions. [`Loaded`] puts a program into a device's memory and runs it. [`link`] connects to boards
//! over a serial port or SPI, [`peripheral`] to the core as a peripheral of this processor, and [`port`] to either, by
//! the name that `--device` accepts.

pub mod access;
mod affine;
mod builder;
mod by_entry;
mod cache;
mod conflicts;
mod error;
pub mod link;
mod memory;
mod order;
pub mod peripheral;
pub mod port;
mod program;
pub mod race;
mod recording;
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
pub use order::{Order, Search};
pub use program::{AccelProgram, Binding, MemoryRegion, RegionId, Role, Section, Summary};
pub use recording::Recording;
pub use run::{Loaded, place, run_program};
pub use set::EntrySet;
