//! The transport of a link's bytes: a serial port, SPI, or a simulated board's pins.

use std::io;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// An ordered stream of bytes in both directions.
pub trait ByteStream: Send {
    /// Name in messages, such as a port's path.
    fn name(&self) -> &str;

    /// Sends all bytes.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::TimedOut`] if the other side accepts no bytes for long.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Receives at least one byte and returns how many; 0 if none came within `timeout`.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::UnexpectedEof`] if the other side is gone.
    fn receive(&mut self, bytes: &mut [u8], timeout: Duration) -> io::Result<usize>;

    /// Discards bytes that arrived but were not received yet.
    ///
    /// # Errors
    /// The system's.
    fn clear(&mut self) -> io::Result<()>;

    /// Time since an arbitrary start, on the clock that measures timeouts; a simulated board counts its cycles.
    fn now(&self) -> Duration {
        since_start()
    }
}

/// Time since the first call of this function.
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
