//! The interrupt of a UIO device: writing 1 to its file enables the next one, reading returns the number of those that
//! came.

use std::fs::File;
use std::io;
use std::time::Duration;

/// An interrupt that a file delivers.
#[derive(Debug)]
pub(super) struct Interrupt(pub File);

impl Interrupt {
    /// Enables the next interrupt.
    pub fn enable(&mut self) -> io::Result<()> {
        io::Write::write_all(&mut self.0, &1u32.to_ne_bytes())
    }

    /// Waits for an interrupt. Returns whether it came within `timeout`.
    #[cfg(unix)]
    pub fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let begun = std::time::Instant::now();
        let ready = loop {
            let left = timeout.saturating_sub(begun.elapsed());
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&left)) {
                Err(rustix::io::Errno::INTR) => {}
                other => break other? > 0,
            }
        };
        if ready {
            io::Read::read_exact(&mut self.0, &mut [0; 4])?;
        }
        Ok(ready)
    }

    /// Interrupts are not available on this system.
    #[cfg(not(unix))]
    pub fn wait(&mut self, _timeout: Duration) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
