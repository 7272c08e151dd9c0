//! The core as a peripheral of the processor that runs the program, as on a Zynq.
//!
//! [`PeripheralDevice`] is such a core as a [`tilewright_hw::device::Device`], independent of how its accesses are made
//! ([`tilewright_hw::peripheral::Peripheral`]). [`Uio`] makes them as Linux allows: registers and interrupt through
//! UIO, memory through the u-dma-buf module. [`find`] locates them.

mod cache;
mod device;
mod error;
mod find;
mod interrupt;
#[cfg(all(test, unix))]
mod tests;
mod uio;

pub use device::{Interrupts, PeripheralDevice, PeripheralOptions};
pub use error::{Fault, PeripheralError, SystemDeviceKind};
pub use find::{Buffer, FoundCore, Names, find};
pub use uio::Uio;
