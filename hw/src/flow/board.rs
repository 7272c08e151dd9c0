//! Boards, as their `board.toml` describes them.
//!
//! `load.rs` reads and `check.rs` checks them; `config.rs` and `dram.rs` derive the configuration of a board.

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
pub use host::HostLink;
pub(super) use ports::ports;

/// The most LEDs that a shell drives.
pub const LEDS: u32 = 4;

/// A board with its part, its links and its memory.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// The folder's name.
    #[serde(skip)]
    pub name: String,
    /// The folder; `None` for boards that are compiled in.
    #[serde(skip)]
    folder: Option<PathBuf>,
    /// The name to show.
    pub title: String,
    /// The family of its part.
    pub family: Family,
    /// The name of the part.
    pub device: String,
    /// The part's package.
    pub package: String,
    /// The part's speed grade; empty if its name has it.
    #[serde(default)]
    pub speed: String,
    /// The default configuration: a preset, or a file in the folder.
    pub hw: String,
    /// The clock of shell and core, MHz.
    pub core_mhz: f64,
    /// The router's default seed.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// The name of the board in openFPGALoader; empty if it does not know the board.
    #[serde(default)]
    pub flash: String,
    /// The level of its pins, volts.
    #[serde(default = "io_volts")]
    pub io_volts: f64,
    /// The clock input.
    pub clock: ClockPin,
    /// The link to the host.
    pub host: HostLink,
    /// Links of other kinds that can replace `host`.
    #[serde(default)]
    pub hosts: Vec<HostLink>,
    /// The core's memory.
    pub memory: CoreMemory,
    /// Its LEDs.
    #[serde(default)]
    pub leds: Leds,
    /// Overrides of the configuration's `[host]` section, by its keys.
    #[serde(default)]
    target: toml::Table,
}

/// The clock input from an oscillator.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockPin {
    /// The pin.
    pub pin: String,
    /// Its frequency, MHz.
    pub mhz: f64,
}

/// The core's memory.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum CoreMemory {
    /// In the host, behind the link. The braces make serde reject unknown keys.
    Host {},
    /// Block RAM of the part.
    Block {
        /// Size, KiB.
        kib: u32,
    },
    /// Single-port RAM of an iCE40 UltraPlus.
    Spram {
        /// Size, KiB.
        kib: u32,
    },
    /// An SDR SDRAM chip.
    Sdram(Box<Sdram>),
    /// The processor's memory.
    Processor {},
}

impl CoreMemory {
    /// Where it is, in words.
    pub fn place(&self) -> &'static str {
        match self {
            CoreMemory::Host {} => "in the host, behind the link",
            CoreMemory::Block { .. } => "in block RAM",
            CoreMemory::Spram { .. } => "in single-port RAM",
            CoreMemory::Sdram(_) => "in the board's SDRAM",
            CoreMemory::Processor {} => "in the processor's memory",
        }
    }
}

/// LEDs, in this order: a command runs, the core trapped, the link refused a frame, a slow blink. A board can have
/// fewer.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leds {
    /// The pins.
    pub pins: Vec<String>,
    /// Whether an LED is on when its pin is low.
    #[serde(default)]
    pub active_low: bool,
    /// The level of these pins, volts, if it is not the board's.
    pub volts: Option<f64>,
}

/// Allowed levels of pins, volts.
const VOLTS: [f64; 5] = [3.3, 2.5, 1.8, 1.5, 1.2];

fn io_volts() -> f64 {
    VOLTS[0]
}

impl Board {
    /// Returns the level of a port of the top module, volts.
    pub(super) fn volts(&self, port: &str) -> f64 {
        self.leds.volts.filter(|_| port.starts_with("led[")).unwrap_or(self.io_volts)
    }

    /// Returns its part with package and speed grade; `None` if the family has no such part.
    pub(super) fn chip(&self) -> Option<Chip<'_>> {
        let part = self.family.part(&self.device)?;
        Some(Chip { part, package: &self.package, speed: &self.speed })
    }

    /// Iterates over its links, each with its key in the file.
    fn all_hosts(&self) -> impl Iterator<Item = (String, &HostLink)> {
        let others = self.hosts.iter().enumerate().map(|(at, host)| (format!("hosts[{at}]"), host));
        std::iter::once(("host".to_string(), &self.host)).chain(others)
    }
}

/// The default of [`Board::seed`].
fn first_seed() -> u64 {
    1
}

#[cfg(test)]
mod tests;
