//! Boards: a folder each, with what the flow and the driver need to know of it.

mod check;
mod config;
mod dram;
mod host;
mod load;
mod ports;

use super::family::{Chip, Family};
use super::sdram::Sdram;
use serde::Deserialize;
use std::path::PathBuf;

pub use check::legal_mhz;
pub use host::Host;
pub(super) use ports::ports;

/// The most lamps of a shell.
pub const LEDS: u32 = 4;

/// A board.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// The folder's name.
    #[serde(skip)]
    pub name: String,
    /// The folder, unless the board comes along.
    #[serde(skip)]
    folder: Option<PathBuf>,
    /// The name for people.
    pub title: String,
    /// The family of its part.
    pub family: Family,
    /// The part, as the family's tools name it.
    pub device: String,
    /// The part's package.
    pub package: String,
    /// The part's speed grade, where the family has any.
    #[serde(default)]
    pub speed: String,
    /// The configuration that it has unless another is asked for: a preset, or a file of the folder.
    pub hw: String,
    /// The clock of shell and core, MHz.
    pub core_mhz: f64,
    /// Where place and route begins, unless it is told to elsewhere.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// What openFPGALoader calls it.
    #[serde(default)]
    pub flash: String,
    /// The levels of its pins, volts, but for those that have others.
    #[serde(default = "io_volts")]
    pub io_volts: f64,
    /// Where the clock comes in.
    pub clock: ClockPin,
    /// How the host reaches it.
    pub host: Host,
    /// Other ways, of other kinds, that a design may have in its place.
    #[serde(default)]
    pub hosts: Vec<Host>,
    /// Where the core's memory is.
    pub memory: Memory,
    /// Its lamps.
    #[serde(default)]
    pub leds: Leds,
    /// What of the machine around the accelerator is otherwise than the configuration says: keys of a configuration's
    /// `[host]`.
    #[serde(default)]
    target: toml::Table,
}

/// An oscillator.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockPin {
    /// The pin.
    pub pin: String,
    /// Its frequency, MHz.
    pub mhz: f64,
}

/// Where the core's memory is.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Memory {
    /// At the host, behind the link. (With braces, so that keys which it has not are refused.)
    Host {},
    /// In block RAM of the part.
    Block {
        /// Its size.
        kib: u32,
    },
    /// In iCE40 UltraPlus's single-port RAM.
    Spram {
        /// Its size.
        kib: u32,
    },
    /// A chip of SDR SDRAM.
    Sdram(Box<Sdram>),
    /// The processor's.
    Processor {},
}

/// Lamps: work, trap, error of the link, as far as there are so many.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leds {
    /// Their pins.
    pub pins: Vec<String>,
    /// Whether they light when the pin is low.
    #[serde(default)]
    pub active_low: bool,
    /// The levels of their pins, volts, where they are not the board's.
    pub volts: Option<f64>,
}

/// The levels that a part's pins may have, volts.
const VOLTS: [f64; 5] = [3.3, 2.5, 1.8, 1.5, 1.2];

fn io_volts() -> f64 {
    VOLTS[0]
}

impl Board {
    /// The levels of a port of the top module, volts.
    pub(super) fn volts(&self, port: &str) -> f64 {
        self.leds.volts.filter(|_| port.starts_with("led[")).unwrap_or(self.io_volts)
    }

    /// Its part, in its package; `None` if the family has no such part.
    pub(super) fn chip(&self) -> Option<Chip<'_>> {
        let part = self.family.part(&self.device)?;
        Some(Chip { part, package: &self.package, speed: &self.speed })
    }

    /// The hosts that it may have, each with its key in the file.
    fn all_hosts(&self) -> impl Iterator<Item = (String, &Host)> {
        let others = self.hosts.iter().enumerate().map(|(at, host)| (format!("hosts[{at}]"), host));
        std::iter::once(("host".to_string(), &self.host)).chain(others)
    }
}

/// The seed of a board that names none.
fn first_seed() -> u64 {
    1
}

#[cfg(test)]
mod tests;
