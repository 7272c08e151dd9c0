//! The configuration of a board and its clock.

use super::load::BOARDS;
use super::{Board, Host, Memory};
use crate::config::{self, HostSection, HwConfig};
use crate::flow::FlowError;
use crate::link::UART_BYTE_BITS;

impl Board {
    /// The configuration that the board has unless another is asked for, as `--hw` takes it: a preset's name, or the
    /// path of a file of the board's folder.
    pub fn default_hw(&self) -> String {
        match &self.folder {
            Some(folder) if self.hw.ends_with(".toml") => folder.join(&self.hw).display().to_string(),
            _ => self.hw.clone(),
        }
    }

    /// Reads that configuration, with the board's clock, what its file says of the machine around, and the DRAM model
    /// of its memory, unless the configuration has figures of its own for it.
    ///
    /// # Errors
    /// [`FlowError::Board`], with the configuration's violations.
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

    /// The machine around the accelerator, where a configuration says `host`: the clock is the one that the board's
    /// part makes, and the rate is that of a link through which tensors come to memory on the board.
    fn around(&self, host: &HostSection, mhz: f64) -> Result<HostSection, toml::de::Error> {
        let mut around = HostSection { clock_mhz: mhz, ..host.clone() };
        if let (Host::Uart { baud, .. }, false) = (&self.host, self.memory == Memory::Host {}) {
            around.transfer_mb_per_s = f64::from(*baud) / f64::from(UART_BYTE_BITS) / 1e6;
        }
        if self.target.is_empty() {
            return Ok(around);
        }
        let mut table = toml::Table::try_from(&around).map_err(serde::de::Error::custom)?;
        table.extend(self.target.clone());
        table.try_into()
    }

    /// The clock that its part makes where one of so many MHz is wanted: as near below as it comes.
    ///
    /// # Errors
    /// [`FlowError::Board`] where it makes none.
    pub fn clock_mhz(&self, wanted: f64) -> Result<f64, FlowError> {
        let bad = |reason| FlowError::Board { file: self.file(), reason };
        self.family.clock(self.clock.mhz, wanted).map(|clock| clock.mhz).map_err(bad)
    }

    /// Clock cycles of a bit of its link, as [`Host::clocks_per_bit`], where a clock of so many MHz is wanted: of the
    /// one that its part makes.
    ///
    /// # Errors
    /// [`FlowError::Board`] where it makes none, or the line's speed does not go with the one that it makes.
    pub fn clocks_per_bit(&self, wanted: f64) -> Result<u32, FlowError> {
        let bad = |what| FlowError::Board { file: self.file(), reason: format!("host.{what}") };
        self.host.clocks_per_bit(self.clock_mhz(wanted)?).map_err(bad)
    }
}
