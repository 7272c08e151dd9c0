//! SPI ports as byte streams, through Linux's spidev.

use super::error::LinkError;
use std::io;
use std::time::Duration;
use tilewright_hw::link::{ByteStream, SpiBytes};

/// Default clock in Hz: a bit less than an eighth of the slowest core clock in the boards' folders.
pub const DEFAULT_HZ: u32 = 1_000_000;

/// An SPI port with a board as its slave.
#[derive(Debug)]
pub struct SpiPort {
    path: String,
    master: sys::Master,
    bytes: SpiBytes,
}

impl SpiPort {
    /// Opens a port for this program only, in mode 0, with a clock of at most `hz` Hz.
    ///
    /// # Errors
    /// [`super::Fault::NoFile`], [`super::Fault::Denied`], [`super::Fault::Open`].
    pub fn open(path: &str, hz: u32) -> Result<SpiPort, LinkError> {
        let master = sys::open(path, hz).map_err(|fault| LinkError { port: path.into(), fault })?;
        Ok(SpiPort { path: path.into(), master, bytes: SpiBytes::default() })
    }
}

impl ByteStream for SpiPort {
    fn name(&self) -> &str {
        &self.path
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.send(&mut self.master, bytes)
    }

    fn receive(&mut self, bytes: &mut [u8], timeout: Duration) -> io::Result<usize> {
        self.bytes.receive(&mut self.master, bytes, timeout)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.bytes.clear();
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod sys {
    use crate::link::error::{Fault, PortKind};
    use spidev::{SpiModeFlags, Spidev, SpidevOptions, SpidevTransfer};
    use std::fs::{OpenOptions, TryLockError};
    use std::io;
    use tilewright_hw::link::SpiMaster;

    #[derive(Debug)]
    pub(super) struct Master(Spidev);

    pub(super) fn open(path: &str, hz: u32) -> Result<Master, Fault> {
        let kind = PortKind::Spi;
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Fault::NoFile { kind, there_are: ports() },
            io::ErrorKind::PermissionDenied => Fault::Denied { kind },
            _ => Fault::Open { kind, reason: error.to_string() },
        })?;
        // Several programs can open a port, but two hosts would take each other's bytes.
        file.try_lock().map_err(|error| {
            let reason = match error {
                TryLockError::WouldBlock => "another program uses it".into(),
                TryLockError::Error(error) => error.to_string(),
            };
            Fault::Open { kind, reason }
        })?;
        let mut spi = Spidev::new(file);
        let options = SpidevOptions { spi_mode: Some(SpiModeFlags::SPI_MODE_0), ..SpidevOptions::default() };
        spi.configure(&SpidevOptions { bits_per_word: Some(8), max_speed_hz: Some(hz), ..options }).map_err(
            |error| Fault::Open {
                kind,
                reason: format!("it is not a spidev file, or does not support {hz} Hz: {error}"),
            },
        )?;
        Ok(Master(spi))
    }

    /// The existing ports.
    fn ports() -> Vec<String> {
        let files = std::fs::read_dir("/dev").into_iter().flatten().flatten();
        let names = files.filter_map(|file| file.file_name().into_string().ok());
        let mut ports: Vec<String> =
            names.filter(|name| name.starts_with("spidev")).map(|name| format!("/dev/{name}")).collect();
        ports.sort();
        ports
    }

    impl SpiMaster for Master {
        fn exchange(&mut self, bytes: &mut [u8]) -> io::Result<()> {
            let sent = bytes.to_vec();
            self.0.transfer(&mut SpidevTransfer::read_write(&sent, bytes))
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod sys {
    use crate::link::error::{Fault, PortKind};
    use std::io;
    use tilewright_hw::link::SpiMaster;

    #[derive(Debug)]
    pub(super) enum Master {}

    pub(super) fn open(_path: &str, _hz: u32) -> Result<Master, Fault> {
        Err(Fault::Open { kind: PortKind::Spi, reason: "only Linux has spidev".into() })
    }

    impl SpiMaster for Master {
        fn exchange(&mut self, _bytes: &mut [u8]) -> io::Result<()> {
            match *self {}
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::link::Fault;

    #[test]
    fn what_is_no_port_is_named() {
        let error = SpiPort::open("/dev/spidev99.9", DEFAULT_HZ).unwrap_err();
        assert!(matches!(error.fault, Fault::NoFile { .. }));
        let text = error.to_string();
        assert!(text.starts_with("/dev/spidev99.9: there is no such device file; "), "{text}");
        assert!(text.contains("spidev") && !text.contains("serial"), "{text}");
        let error = SpiPort::open("/dev/null", DEFAULT_HZ).unwrap_err().to_string();
        assert!(
            error.starts_with("/dev/null: cannot be opened: it is not a spidev file, or does not support 1000000 Hz"),
            "{error}"
        );
        assert!(error.contains("name an SPI port"), "{error}");
        // A file that another program uses.
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().lock().expect("it is free");
        let error = SpiPort::open(&file.path().display().to_string(), DEFAULT_HZ).unwrap_err().to_string();
        assert!(error.contains("cannot be opened: another program uses it"), "{error}");
    }
}
