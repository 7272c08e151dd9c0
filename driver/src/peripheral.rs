//! The core as a peripheral of the processor that the program runs on, as in a Zynq.
//!
//! [`PeripheralDevice`] is such a core as a [`tilewright_hw::device::Device`], whatever carries its accesses
//! ([`tilewright_hw::peripheral::Peripheral`]). [`Uio`] is what Linux lets a program have of one: registers and interrupt
//! through UIO, memory through the u-dma-buf module; [`find`] looks where they are.

mod cache;
mod device;
mod error;
mod find;
mod interrupt;
#[cfg(all(test, unix))]
mod tests;
mod uio;

pub use device::{Interrupts, PeripheralDevice, PeripheralOptions};
pub use error::{Fault, Kind, PeripheralError};
pub use find::{Buffer, Found, Names, find};
pub use uio::Uio;
