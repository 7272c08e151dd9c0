//! The default configuration of a board, and its clock.

use super::load::BOARDS;
use super::{Board, CoreMemory, HostLink};
use crate::config::{self, HostSection, HwConfig};
use crate::flow::FlowError;
use crate::flow::zynq::BUFFER_BYTES;
use crate::link::UART_BYTE_BITS;

impl Board {
    /// Returns the default configuration for `--hw`: a preset's name, or the path of a file in the board's folder.
    pub fn default_hw(&self) -> String {
        match &self.folder {
            Some(folder) if self.hw.ends_with(".toml") => folder.join(&self.hw).display().to_string(),
            _ => self.hw.clone(),
        }
    }

    /// Reads the default configuration.
    ///
    /// Its `host` section gets the board's clock and `[target]`. Its `dram` section becomes the model of the board's
    /// memory, unless the configuration has one of its own.
    ///
    /// # Errors
    /// [`FlowError::Board`] if the configuration cannot be read or is not valid for the board.
    pub fn default_config(&self) -> Result<HwConfig, FlowError> {
        let along = format!("{}/{}", self.name, self.hw);
        let along = BOARDS.get_file(&along).filter(|_| self.folder.is_none()).and_then(|file| file.contents_utf8());
        let bad = |reason| FlowError::Board { file: self.file(), reason };
        let (file, text) = match along {
            Some(text) => (self.hw.clone(), Ok(text.into())),
            None => (self.default_hw(), config::text_of(&self.default_hw())),
        };
        let text = text.map_err(|error| bad(error.to_string()))?;
        let mut config = HwConfig::parse(&file, &text).map_err(|error| bad(error.to_string()))?;
        let has_dram = text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("dram"));
        let mhz = self.clock_mhz(self.core_mhz)?;
        config.host = self.around(&config.host, mhz).map_err(|error| bad(format!("target: {}", error.message())))?;
        if !has_dram {
            config.dram = self.dram(&config, mhz).map_err(bad)?;
        }
        match config.violations()[..] {
            [] => Ok(config),
            [ref first, ..] => Err(bad(format!("target: {first}"))),
        }
    }

    /// Returns the `host` section of the board's configuration: the clock that the part makes, and, if tensors go over
    /// a serial line to memory on the board, the rate of that line.
    fn around(&self, host: &HostSection, mhz: f64) -> Result<HostSection, toml::de::Error> {
        let mut around = HostSection { clock_mhz: mhz, ..host.clone() };
        if let (HostLink::Uart { baud, .. }, false) = (&self.host, self.memory == CoreMemory::Host {}) {
            around.transfer_mb_per_s = f64::from(*baud) / f64::from(UART_BYTE_BITS) / 1e6;
        }
        if self.target.is_empty() {
            return Ok(around);
        }
        let mut table = toml::Table::try_from(&around).map_err(serde::de::Error::custom)?;
        table.extend(self.target.clone());
        table.try_into()
    }

    /// Returns the bytes of device memory that programs and tensors can use on the board: the size of its memory, or, if
    /// the memory is the host's, that of the configuration; at most what the configuration can address.
    pub fn memory_bytes(&self, config: &HwConfig) -> u64 {
        let own = match &self.memory {
            CoreMemory::Host {} => config.memory_bytes(),
            CoreMemory::Block { kib } | CoreMemory::Spram { kib } => u64::from(*kib) << 10,
            CoreMemory::Sdram(chip) => chip.geometry().bytes(),
            CoreMemory::Processor {} => config.memory_bytes().min(BUFFER_BYTES),
        };
        own.min(1 << config.offset_bits)
    }

    /// Returns the clock that the part makes for a wanted clock in MHz: the nearest that is not above it.
    ///
    /// # Errors
    /// [`FlowError::Board`] if the part cannot make a clock near the wanted one.
    pub fn clock_mhz(&self, wanted: f64) -> Result<f64, FlowError> {
        let bad = |reason| FlowError::Board { file: self.file(), reason };
        self.family.clock(self.clock.mhz, wanted).map(|clock| clock.mhz).map_err(bad)
    }

    /// Returns the clock cycles of a bit of its link ([`HostLink::clocks_per_bit`]) at the clock that the part makes
    /// for a wanted one in MHz.
    ///
    /// # Errors
    /// [`FlowError::Board`] if the part cannot make a clock near the wanted one, or the link's rate is not possible at
    /// that clock.
    pub fn clocks_per_bit(&self, wanted: f64) -> Result<u32, FlowError> {
        let bad = |what| FlowError::Board { file: self.file(), reason: format!("host.{what}") };
        self.host.clocks_per_bit(self.clock_mhz(wanted)?).map_err(bad)
    }
}
