//! Boards behind a link: `tilewright_hw::link`'s frames over a stream of bytes.
//!
//! [`LinkDevice`] is a board as a [`tilewright_hw::device::Device`], [`SerialPort`] and [`SpiPort`] the streams of real ports. What
//! arrives is [`frames`]' to understand; [`session`] keeps register accesses and the core's memory apart.

mod device;
mod error;
pub mod frames;
mod memory;
mod pty;
mod replay;
mod serial;
mod session;
mod spi;
#[cfg(test)]
mod tests;

pub use device::LinkDevice;
pub use error::{Fault, LinkError, PortKind};
pub use pty::Pty;
pub use serial::{DEFAULT_BAUD, SerialPort};
pub use session::{Hello, Identity, LinkOptions};
pub use spi::{DEFAULT_HZ, SpiPort};
