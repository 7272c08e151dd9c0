//! The core as a peripheral of the processor on which the program runs, as [`crate::rtl::PERIPHERAL`] is: what a driver needs of
//! it, whatever carries its accesses.
//!
//! Registers are 32 bits wide, in a window of [`WINDOW_BYTES`]. The core's bus has the addresses of the processor's: a base
//! register holds a place in the buffer, plus where the buffer begins. The interrupt is a level, high from a command's end until
//! [`crate::regs::IRQ_CLEAR`] is written.

use crate::host::Registers;
use crate::regs::ADDR_BITS;
use std::io;
use std::time::Duration;

/// What a board's operating system calls registers and buffer, where its device tree is the one that the flow writes.
pub const DEFAULT_NAME: &str = "tilewright";

/// Bytes of the registers' window.
pub const WINDOW_BYTES: u64 = 1 << ADDR_BITS;

/// A core that is a peripheral of the processor on which the program runs: registers, an interrupt, and a buffer of memory that
/// both reach.
pub trait Peripheral: Registers<Error = io::Error> + Send {
    /// What messages call it.
    fn name(&self) -> &str;

    /// Where the core's bus has the buffer's first byte.
    fn buffer_addr(&self) -> u64;

    /// Bytes of the buffer.
    fn buffer_bytes(&self) -> u64;

    /// Copies bytes of the buffer, as the core's bus has them.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::InvalidInput`] where they pass the buffer's end.
    fn read_buffer(&mut self, at: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Copies bytes to the buffer, and lets the core's bus see them.
    ///
    /// # Errors
    /// As [`Peripheral::read_buffer`].
    fn write_buffer(&mut self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Lets the next interrupt through.
    ///
    /// # Errors
    /// The system's.
    fn enable_interrupt(&mut self) -> io::Result<()>;

    /// Waits for an interrupt that was let through, and tells whether it came within `timeout`.
    ///
    /// # Errors
    /// The system's.
    fn wait_for_interrupt(&mut self, timeout: Duration) -> io::Result<bool>;

    /// Time since some moment, on the clock that timeouts are measured by: a simulated core's is that of its cycles.
    fn now(&self) -> Duration;
}
