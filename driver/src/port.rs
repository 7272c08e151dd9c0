//! Connections between boards and this machine.

use crate::link::{DEFAULT_BAUD, DEFAULT_HZ, LinkDevice, LinkError, LinkOptions, SerialPort, SpiPort};
use crate::peripheral::{Names, PeripheralDevice, PeripheralError, PeripheralOptions, Uio};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Device, DeviceError};
use tilewright_hw::host;
use tilewright_hw::link::ByteStream;

use std::path::Path;

/// How a board is connected to this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoardPort {
    /// A serial port.
    Serial {
        /// Its device file.
        path: String,
        /// Bits per second.
        baud: u32,
    },
    /// An SPI port; this machine is the master.
    Spi {
        /// Its device file.
        path: String,
        /// Its maximum clock.
        hz: u32,
    },
    /// No link: the core is a peripheral of the processor that this program runs on.
    Uio(Names),
}

/// A text that names no port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name} is not a valid port; give serial:PATH or serial:PATH@BAUD (the bit rate of the board's bitstream), \
     spi:PATH or spi:PATH@HZ, or uio, uio:NAME or uio:NAME@BUFFER"
)]
pub struct PortError {
    /// The text.
    pub name: String,
}

impl std::str::FromStr for BoardPort {
    type Err = PortError;

    fn from_str(name: &str) -> Result<BoardPort, PortError> {
        let (kind, text) = name.split_once(':').unwrap_or((name, ""));
        let of = |default| path_and_number(text, default);
        let port = match kind {
            "serial" => of(DEFAULT_BAUD).map(|(path, baud)| BoardPort::Serial { path, baud }),
            "spi" => of(DEFAULT_HZ).map(|(path, hz)| BoardPort::Spi { path, hz }),
            "uio" => names(name, text).map(BoardPort::Uio),
            _ => None,
        };
        port.ok_or_else(|| PortError { name: name.to_string() })
    }
}

/// `PATH` or `PATH@NUMBER`.
fn path_and_number(text: &str, default: u32) -> Option<(String, u32)> {
    let (path, number) = match text.rsplit_once('@') {
        Some((path, number)) => (path, number.parse().ok().filter(|number| *number > 0)?),
        None => (text, default),
    };
    (!path.is_empty()).then(|| (path.into(), number))
}

/// `uio`, `uio:NAME` or `uio:NAME@BUFFER`.
fn names(whole: &str, text: &str) -> Option<Names> {
    if whole == "uio" {
        return Some(Names::default());
    }
    let (uio, buffer) = text.split_once('@').unwrap_or((text, text));
    (!uio.is_empty() && !buffer.is_empty()).then(|| Names { uio: uio.into(), buffer: buffer.into() })
}

impl std::fmt::Display for BoardPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, path, number, default) = match self {
            BoardPort::Serial { path, baud } => ("serial", path, *baud, DEFAULT_BAUD),
            BoardPort::Spi { path, hz } => ("spi", path, *hz, DEFAULT_HZ),
            BoardPort::Uio(names) => return write!(f, "{names}"),
        };
        write!(f, "{kind}:{path}")?;
        if number == default { Ok(()) } else { write!(f, "@{number}") }
    }
}

/// An opened board.
pub enum Board {
    /// Connected by a link.
    Link(Box<LinkDevice<Box<dyn ByteStream>>>),
    /// A peripheral of this processor.
    Peripheral(Box<PeripheralDevice<Uio>>),
}

impl Board {
    /// Opens a board and checks its configuration. A board that is silent or sends garbage is asked again for a while.
    /// `told` receives a text at the start, and an empty one at the end.
    ///
    /// # Errors
    /// The link's or the peripheral's error, which says what to do.
    pub fn open(port: &BoardPort, config: &HwConfig, told: &dyn Fn(&str)) -> Result<Board, DeviceError> {
        told(&format!("{port}: looking for the board"));
        let opened = Board::ask(port, config);
        told("");
        opened
    }

    fn ask(port: &BoardPort, config: &HwConfig) -> Result<Board, DeviceError> {
        let options = LinkOptions::default();
        let link =
            |stream| LinkDevice::open(stream, config.clone(), options).map(|device| Board::Link(Box::new(device)));
        Ok(match port {
            BoardPort::Serial { path, baud } => link(serial(path, *baud)?)?,
            BoardPort::Spi { path, hz } => link(spi(path, *hz)?)?,
            BoardPort::Uio(names) => Board::Peripheral(Box::new(peripheral(names, config)?)),
        })
    }

    /// Identity of the board's core.
    pub fn core(&self) -> host::Identity {
        match self {
            Board::Link(device) => device.identity().core,
            Board::Peripheral(device) => device.identity(),
        }
    }

    /// The board as a device.
    pub fn device_mut(&mut self) -> &mut dyn Device {
        match self {
            Board::Link(device) => device.as_mut(),
            Board::Peripheral(device) => device.as_mut(),
        }
    }

    /// Converts the board to a device that aborts commands without a limit of their own after `limit` cycles.
    pub fn into_device(self, limit: Option<u64>) -> Box<dyn Device> {
        match self {
            Board::Link(device) => Box::new(device.with_cycle_limit(limit)),
            Board::Peripheral(device) => Box::new(device.with_cycle_limit(limit)),
        }
    }
}

fn serial(path: &str, baud: u32) -> Result<Box<dyn ByteStream>, LinkError> {
    Ok(Box::new(SerialPort::open(path, baud)?))
}

fn spi(path: &str, hz: u32) -> Result<Box<dyn ByteStream>, LinkError> {
    Ok(Box::new(SpiPort::open(path, hz)?))
}

fn peripheral(names: &Names, config: &HwConfig) -> Result<PeripheralDevice<Uio>, PeripheralError> {
    PeripheralDevice::open(Uio::open(Path::new("/"), names)?, config.clone(), PeripheralOptions::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_with_their_speed() {
        let parsed = |name: &str| name.parse::<BoardPort>().map(|port| port.to_string());
        for (name, kept) in [
            ("serial:/dev/ttyUSB1", "serial:/dev/ttyUSB1"),
            ("serial:/dev/ttyUSB1@115200", "serial:/dev/ttyUSB1@115200"),
            ("serial:COM3@3000000", "serial:COM3"),
            ("spi:/dev/spidev0.1", "spi:/dev/spidev0.1"),
            ("spi:/dev/spidev0.1@5000000", "spi:/dev/spidev0.1@5000000"),
            ("uio", "uio:tilewright"),
            ("uio:uio3", "uio:uio3"),
            ("uio:uio3@udmabuf0", "uio:uio3@udmabuf0"),
        ] {
            assert_eq!(parsed(name).as_deref(), Ok(kept));
        }
        let wrong = ["serial:", "serial", "serial:@9600", "serial:/dev/ttyUSB1@fast", "serial:/dev/ttyUSB1@0"];
        for wrong in wrong.into_iter().chain(["spi:", "spi:/dev/spidev0.0@1MHz", "uio:", "uio:@udmabuf0", "uio:uio3@"])
        {
            assert_eq!(parsed(wrong), Err(PortError { name: wrong.into() }), "{wrong}");
        }
    }
}
