//! What a link's bytes go over: a serial port, SPI, or a simulated board's pins.

use std::io;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Bytes both ways at once, in order.
pub trait ByteStream: Send {
    /// What messages call it: a port's path.
    fn name(&self) -> &str;

    /// Sends all bytes.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::TimedOut`] where the other side takes none for long.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Receives some bytes, at least one unless none came within `timeout`, which then is what this tells.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::UnexpectedEof`] where the other side is gone.
    fn receive(&mut self, bytes: &mut [u8], timeout: Duration) -> io::Result<usize>;

    /// Forgets what has come and was not received yet.
    ///
    /// # Errors
    /// The system's.
    fn clear(&mut self) -> io::Result<()>;

    /// Time since some moment, on the clock that timeouts are measured by: a simulated board's is that of its cycles.
    fn now(&self) -> Duration {
        since_start()
    }
}

/// Time since this was first asked.
pub(super) fn since_start() -> Duration {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGUN.elapsed()
}

impl<S: ByteStream + ?Sized> ByteStream for Box<S> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        (**self).send(bytes)
    }

    fn receive(&mut self, bytes: &mut [u8], timeout: Duration) -> io::Result<usize> {
        (**self).receive(bytes, timeout)
    }

    fn now(&self) -> Duration {
        (**self).now()
    }

    fn clear(&mut self) -> io::Result<()> {
        (**self).clear()
    }
}
