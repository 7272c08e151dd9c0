//! Serial ports as byte streams.

use super::error::{Fault, LinkError, PortKind};
use std::io;
use std::time::Duration;
use tilewright_hw::link::ByteStream;

/// Default bits per second: what most boards' folders specify.
pub const DEFAULT_BAUD: u32 = 3_000_000;

/// How long a port can accept no bytes before sending fails.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// A serial port, or a pseudo-terminal.
#[derive(Debug)]
pub struct SerialPort {
    pub(super) path: String,
    pub(super) port: Box<dyn serialport::SerialPort>,
}

impl SerialPort {
    /// Opens a port for this program only, with 8 data bits, no parity and one stop bit.
    ///
    /// # Errors
    /// [`Fault::NoFile`], [`Fault::Denied`], [`Fault::Open`].
    pub fn open(path: &str, baud: u32) -> Result<SerialPort, LinkError> {
        let error = |fault| LinkError { port: path.into(), fault };
        if let Err(reason) = std::fs::metadata(path)
            && reason.kind() == io::ErrorKind::NotFound
            && cfg!(unix)
        {
            return Err(error(Fault::NoFile { kind: PortKind::Serial, there_are: ports() }));
        }
        match serialport::new(path, baud).timeout(SEND_TIMEOUT).open() {
            Ok(port) => Ok(SerialPort { path: path.into(), port }),
            Err(_) if is_something_else(path) => {
                Err(error(Fault::Open { kind: PortKind::Serial, reason: "it is not a serial port".into() }))
            }
            Err(reason) => Err(error(fault(&reason))),
        }
    }
}

/// The existing ports, without those that every PC seems to have.
fn ports() -> Vec<String> {
    let usual = |name: &String| !name.contains("ttyS");
    let mut names: Vec<String> = serialport::available_ports()
        .unwrap_or_default()
        .into_iter()
        .map(|port| port.port_name)
        .filter(usual)
        .collect();
    names.sort();
    names
}

/// Whether a file that cannot be opened as a port is of another kind.
#[cfg(unix)]
fn is_something_else(path: &str) -> bool {
    use rustix::fs::{Mode, OFlags, open};
    // Does not wait for a carrier, as opening a port can.
    let file = open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty());
    file.is_ok_and(|file| !rustix::termios::isatty(&file))
}

#[cfg(not(unix))]
fn is_something_else(_path: &str) -> bool {
    false
}

fn fault(error: &serialport::Error) -> Fault {
    match error.kind() {
        serialport::ErrorKind::Io(io::ErrorKind::PermissionDenied) => Fault::Denied { kind: PortKind::Serial },
        _ => Fault::Open { kind: PortKind::Serial, reason: error.to_string() },
    }
}

impl ByteStream for SerialPort {
    fn name(&self) -> &str {
        &self.path
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.port.set_timeout(SEND_TIMEOUT)?;
        self.port.write_all(bytes)
    }

    fn receive(&mut self, bytes: &mut [u8], timeout: Duration) -> io::Result<usize> {
        self.port.set_timeout(timeout)?;
        match self.port.read(bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(0),
            other => other,
        }
    }

    fn clear(&mut self) -> io::Result<()> {
        Ok(self.port.clear(serialport::ClearBuffer::All)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = SerialPort::open("/dev/no-such-port", DEFAULT_BAUD).unwrap_err();
        assert!(matches!(error.fault, Fault::NoFile { .. }));
        let text = error.to_string();
        assert!(text.starts_with("/dev/no-such-port: there is no such device file; plug the board in"), "{text}");
    }

    #[test]
    fn what_may_not_be_opened_or_is_no_port_is_told_apart() {
        let denied = serialport::Error::new(serialport::ErrorKind::Io(io::ErrorKind::PermissionDenied), "no");
        assert_eq!(fault(&denied), Fault::Denied { kind: PortKind::Serial });
        let error = SerialPort::open("/dev/null", DEFAULT_BAUD).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("/dev/null: cannot be opened: it is not a serial port;"), "{text}");
    }
}
