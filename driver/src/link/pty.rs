//! Pseudo-terminals: the board's end of a serial port, for programs that simulate a board.

use super::serial::SerialPort;
use std::io;
use tilewright_hw::link::ByteStream;

/// The board's end. A host opens [`Pty::path`] as it opens a serial port.
#[derive(Debug)]
pub struct Pty {
    /// The board's byte stream. Receiving fails while no host has the other end open.
    pub board: SerialPort,
    path: String,
}

impl Pty {
    /// Opens a new pseudo-terminal, whose other end nobody has opened yet.
    ///
    /// # Errors
    /// The system's.
    #[cfg(unix)]
    pub fn open() -> io::Result<Pty> {
        use serialport::SerialPort as _;
        let (board, host) = serialport::TTYPort::pair()?;
        let path = host.name().ok_or(io::ErrorKind::NotFound)?;
        Ok(Pty { board: SerialPort { path: path.clone(), port: Box::new(board) }, path })
    }

    /// Pseudo-terminals are not available on this system.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(unix))]
    pub fn open() -> io::Result<Pty> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The path of the host's end.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The board's end alone.
    pub fn into_stream(self) -> impl ByteStream {
        self.board
    }
}
