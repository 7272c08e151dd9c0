//! The core as a peripheral of the processor that runs the program ([`crate::rtl::PERIPHERAL`]): the operations that a
//! driver needs, independent of how accesses are made.
//!
//! Registers are 32 bits wide, in a window of [`WINDOW_BYTES`]. The core's bus uses the processor's addresses: a base
//! register holds an offset in the buffer plus the buffer's address. The interrupt is a level, high from the end of a
//! command until [`crate::regs::IRQ_CLEAR`] is written.

use crate::host::Registers;
use crate::regs::ADDR_BITS;
use std::io;
use std::time::Duration;

/// Name of registers and buffer in a board's operating system, if its device tree is the one that the flow writes.
pub const DEFAULT_NAME: &str = "tilewright";

/// Bytes of the register window.
pub const WINDOW_BYTES: u64 = 1 << ADDR_BITS;

/// A core that is a peripheral of the processor that runs the program: registers, an interrupt, and a memory buffer
/// that both can access.
pub trait Peripheral: Registers<Error = io::Error> + Send {
    /// Name in messages.
    fn name(&self) -> &str;

    /// Address of the buffer's first byte on the core's bus.
    fn buffer_addr(&self) -> u64;

    /// Bytes of the buffer.
    fn buffer_bytes(&self) -> u64;

    /// Copies bytes from the buffer, as the core's bus sees them.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::InvalidInput`] if the range passes the buffer's end.
    fn read_buffer(&mut self, at: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Copies bytes to the buffer and makes them visible to the core's bus.
    ///
    /// # Errors
    /// As [`Peripheral::read_buffer`].
    fn write_buffer(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Enables the next interrupt.
    ///
    /// # Errors
    /// The system's.
    fn enable_interrupt(&mut self) -> io::Result<()>;

    /// Waits for an enabled interrupt. Returns whether it came within `timeout`.
    ///
    /// # Errors
    /// The system's.
    fn wait_for_interrupt(&mut self, timeout: Duration) -> io::Result<bool>;

    /// Time since an arbitrary start, on the clock that measures timeouts; a simulated core counts its cycles.
    fn now(&self) -> Duration;
}
