//! Boards connected by a link: `tilewright_hw::link`'s frames over a byte stream.
//!
//! [`LinkDevice`] is a board as a [`tilewright_hw::device::Device`]; [`SerialPort`] and [`SpiPort`] are the streams of
//! real ports. [`frames`] parses what arrives; `session` separates register accesses from the core's memory accesses.

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
