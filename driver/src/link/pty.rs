//! Pseudo-terminals: the board's end of a serial port, for programs that play a board.

use super::serial::SerialPort;
use std::io;
use tilewright_hw::link::ByteStream;

/// The board's end. A host opens [`Pty::path`] as it opens a serial port.
#[derive(Debug)]
pub struct Pty {
    /// The bytes of the board. Receiving is an error while no host has the other end open.
    pub board: SerialPort,
    path: String,
}

impl Pty {
    /// A new pseudo-terminal, which nobody has opened yet.
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

    /// A pseudo-terminal, which this system has not.
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
