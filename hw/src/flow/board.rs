//! Boards: a folder each, with what the flow and the driver need to know of it.

mod dram;

use super::FlowError;
use super::design::Form;
use super::family::{self, Family};
use super::reach::Reach;
use super::sdram::Sdram;
use super::timing::ECP5_SPEEDS;
use super::zynq;
use crate::config::{self, HostSection, HwConfig};
use crate::link::{SPI_CLOCKS, UART_BYTE_BITS, UART_CLOCKS};
use include_dir::{Dir, include_dir};
use serde::Deserialize;
use std::path::{Path, PathBuf};

static BOARDS: Dir = include_dir!("$CARGO_MANIFEST_DIR/boards");
const FILE: &str = "board.toml";

/// By how much of its baud rate a shell's serial line may be off: at the end of a byte's ten bits that is a fifth of a bit, which
/// leaves the other end as much for its own clock.
const MOST_OFF: f64 = 0.02;

/// The most lamps of a shell.
pub const LEDS: u32 = 4;

/// A clock in MHz that can be asked for.
///
/// # Errors
/// What to give instead.
pub fn legal_mhz(mhz: f64) -> Result<f64, String> {
    if (1.0..=1000.0).contains(&mhz) { Ok(mhz) } else { Err(format!("{mhz}; give MHz from 1 to 1000")) }
}

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
    /// What of the machine around the accelerator is otherwise than the configuration says: keys of a configuration's `[host]`.
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

/// The link to the host, with pins as seen from the part.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Host {
    /// A serial port.
    Uart {
        /// Bytes come in.
        rx: String,
        /// Bytes go out.
        tx: String,
        /// Bits a second.
        baud: u32,
        /// The way to the computer.
        reach: Reach,
    },
    /// SPI, of which the host is the master.
    Spi {
        /// Chip select, low while the host speaks.
        cs: String,
        /// Clock.
        sck: String,
        /// From the host.
        mosi: String,
        /// To the host.
        miso: String,
        /// The way to the computer.
        reach: Reach,
    },
    /// The processor on the same chip, whose peripheral the core is.
    Processor {
        /// Where the registers are in its address space.
        registers: u64,
        /// The interrupt of the core, as device trees number it.
        interrupt: u32,
        /// The port through which the core reaches memory, as the vendor's tool names it.
        port: String,
        /// The processor's block, as the vendor's tool names it.
        block: String,
        /// The board, as the names of the vendor's board files have it.
        board_file: String,
    },
}

impl Host {
    /// Its kind in board files.
    pub fn kind(&self) -> &'static str {
        match self {
            Host::Uart { .. } => "uart",
            Host::Spi { .. } => "spi",
            Host::Processor { .. } => "processor",
        }
    }

    /// Clock cycles of a bit with a shell whose clock has so many MHz: the least that there may be where the host chooses them; 0
    /// where there are no bits.
    ///
    /// # Errors
    /// What is wrong with a serial line's speed at that clock; the text begins with its key.
    pub fn clocks_per_bit(&self, mhz: f64) -> Result<u32, String> {
        let baud = match self {
            Host::Uart { baud, .. } => *baud,
            Host::Spi { .. } => return Ok(SPI_CLOCKS),
            Host::Processor { .. } => return Ok(0),
        };
        let exact = mhz * 1e6 / f64::from(baud);
        let clocks = exact.round();
        if !(f64::from(UART_CLOCKS)..f64::from(u32::MAX)).contains(&clocks) {
            return Err(if exact > 1.0 && baud > 0 && clocks < f64::from(u32::MAX) {
                format!(
                    "baud is {baud}, and a bit of it has fewer than {UART_CLOCKS} cycles of the clock, {mhz:.2} MHz; lower it"
                )
            } else {
                format!(
                    "baud is {baud}, and no line of that speed can be made with a clock of {mhz:.2} MHz; give another"
                )
            });
        }
        let off = (exact / clocks - 1.0).abs();
        if off > MOST_OFF {
            let least = exact.floor().max(f64::from(UART_CLOCKS));
            let multiple = |clocks: f64| clocks * f64::from(baud) / 1e6;
            return Err(format!(
                "baud is {baud}, and a bit of it has {exact:.2} cycles of the clock, {mhz:.2} MHz: with {clocks} the line is {:.1} % off, \
                 of which {:.0} % are borne; take another baud, or a clock near {:.2} or {:.2} MHz",
                100.0 * off,
                100.0 * MOST_OFF,
                multiple(least),
                multiple(least + 1.0),
            ));
        }
        Ok(clocks as u32)
    }

    /// How a host names a board with the shell at so many MHz, with the port that only it knows as PORT.
    pub fn device(&self, mhz: f64) -> String {
        match self {
            Host::Uart { baud, .. } => format!("serial:PORT@{baud}"),
            Host::Spi { .. } => format!("spi:PORT@{}", (mhz * 1e6 / f64::from(SPI_CLOCKS)) as u64),
            Host::Processor { .. } => "uio".into(),
        }
    }
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

fn check_volts(key: &str, volts: f64) -> Result<(), String> {
    let legal = VOLTS.contains(&volts);
    legal.then_some(()).ok_or_else(|| format!("{key} is {volts}; pins have 3.3, 2.5, 1.8, 1.5 or 1.2"))
}

impl Board {
    /// The names of the boards that come along, in order.
    pub fn names() -> Vec<String> {
        let mut names: Vec<String> = BOARDS.dirs().map(|dir| dir.path().display().to_string()).collect();
        names.sort();
        names
    }

    /// Reads a board by its name, or a folder, or its file, by a path with a separator in it, or `.` or `..`.
    ///
    /// # Errors
    /// [`FlowError::UnknownBoard`], [`FlowError::Board`], [`FlowError::Io`].
    pub fn load(name_or_path: &str) -> Result<Board, FlowError> {
        // What could be a name is one, whatever lies here.
        let is_path = name_or_path.contains(std::path::MAIN_SEPARATOR) || matches!(name_or_path, "." | "..");
        if is_path {
            let given = Path::new(name_or_path);
            let folder = if given.ends_with(FILE) { given.parent().unwrap_or(given) } else { given };
            let file = folder.join(FILE);
            let text = std::fs::read_to_string(&file).map_err(|error| FlowError::io(&file, &error))?;
            // `.` and `..` have the name of what they stand for.
            let whole = std::fs::canonicalize(folder).map_err(|error| FlowError::io(&file, &error))?;
            let Some(name) = whole.file_name().map(|name| name.to_string_lossy().into_owned()) else {
                let reason = "the root of the file system gives a board no name; put it into a folder".into();
                return Err(FlowError::Board { file: file.display().to_string(), reason });
            };
            let board = Board::parse(&name, &file.display().to_string(), &text)?;
            return Ok(Board { folder: Some(folder.into()), ..board });
        }
        let file = format!("{name_or_path}/{FILE}");
        match BOARDS.get_file(&file).and_then(|file| file.contents_utf8()) {
            Some(text) => Board::parse(name_or_path, &file, text),
            None => Err(FlowError::UnknownBoard { name: name_or_path.into(), boards: Board::names() }),
        }
    }

    /// Reads a board's text; `file` names it in errors.
    ///
    /// # Errors
    /// [`FlowError::Board`].
    pub fn parse(name: &str, file: &str, text: &str) -> Result<Board, FlowError> {
        let bad = |reason: String| FlowError::Board { file: file.into(), reason };
        let board: Board = toml::from_str(text).map_err(|error| bad(error.to_string()))?;
        let values: toml::Table = toml::from_str(text).map_err(|error| bad(error.to_string()))?;
        check_text("", &toml::Value::Table(values)).map_err(bad)?;
        let board = Board { name: name.into(), ..board };
        for (key, mhz) in [("core_mhz", board.core_mhz), ("clock.mhz", board.clock.mhz)] {
            legal_mhz(mhz).map_err(|what| bad(format!("{key} is {what}")))?;
        }
        check_volts("io_volts", board.io_volts).map_err(bad)?;
        board.leds.volts.map_or(Ok(()), |volts| check_volts("leds.volts", volts)).map_err(bad)?;
        board.family.check_part(&board).map_err(bad)?;
        board.check_speed().map_err(bad)?;
        if board.leds.pins.len() > LEDS as usize {
            let given = board.leds.pins.len();
            return Err(bad(format!("leds.pins has {given} pins, and a shell has {LEDS} lamps; leave the others out")));
        }
        if let Memory::Sdram(chip) = &board.memory {
            chip.check().map_err(bad)?;
            if board.family.sdram_pins(chip, Form::Part).is_none() {
                let family = board.family.name();
                return Err(bad(format!(
                    "memory.kind is sdram, whose pins are known for ecp5 alone, not for {family}"
                )));
            }
        }
        if let Memory::Block { kib } | Memory::Spram { kib } = board.memory {
            let in_spram = matches!(board.memory, Memory::Spram { .. });
            board.family.check_memory(&board, kib, in_spram).map_err(bad)?;
        }
        let (_, mhz) = board.family.clock(&board, board.core_mhz).map_err(|what| bad(format!("core_mhz: {what}")))?;
        let mut kinds = Vec::new();
        for (key, host) in board.all_hosts() {
            board.check_host(&key, host, mhz).map_err(bad)?;
            if kinds.contains(&host.kind()) {
                return Err(bad(format!(
                    "{key}.kind is {}, and so is another host's; give each kind once",
                    host.kind()
                )));
            }
            kinds.push(host.kind());
        }
        Ok(board)
    }

    /// Says what is wrong with its part's speed grade.
    fn check_speed(&self) -> Result<(), String> {
        let (speed, family) = (&self.speed, self.family.name());
        match self.family {
            Family::Ecp5 => {
                let speeds = ECP5_SPEEDS.map(|(speed, _)| speed);
                let unknown = || format!("speed is {speed:?}; of {family} there are {}", speeds.join(", "));
                speeds.contains(&speed.as_str()).then_some(()).ok_or_else(unknown)
            }
            _ if speed.is_empty() => Ok(()),
            _ => Err(format!("speed is {speed:?}, and {family} has no grades beside its parts' names; leave it out")),
        }
    }

    /// The levels of a port of the top module, volts.
    pub(super) fn volts(&self, port: &str) -> f64 {
        self.leds.volts.filter(|_| port.starts_with("led[")).unwrap_or(self.io_volts)
    }

    /// The hosts that it may have, each with its key in the file.
    fn all_hosts(&self) -> impl Iterator<Item = (String, &Host)> {
        let others = self.hosts.iter().enumerate().map(|(at, host)| (format!("hosts[{at}]"), host));
        std::iter::once(("host".to_string(), &self.host)).chain(others)
    }

    /// Says what is wrong with one of its hosts, where the core's clock has so many MHz.
    fn check_host(&self, key: &str, host: &Host, mhz: f64) -> Result<(), String> {
        host.clocks_per_bit(mhz).map_err(|what| format!("{key}.{what}"))?;
        if let Some(reach) = host.reach() {
            reach.check(host.pins()).map_err(|what| format!("{key}.reach.{what}"))?;
        }
        if let Host::Processor { port, .. } = host
            && let Some(wanted) = zynq::memory_port(self.family).filter(|wanted| wanted != port)
        {
            return Err(format!("{key}.port is {port}; the scripts for {} join {wanted} alone", self.family.name()));
        }
        if self.family.has_processor() != matches!(host, Host::Processor { .. }) {
            return Err(format!(
                "{key}.kind is processor exactly where the part has one, and {} has {}",
                self.device,
                if self.family.has_processor() { "one" } else { "none" }
            ));
        }
        let mut ports = family::ports(&Board { host: host.clone(), ..self.clone() });
        let legal = |pin: &str| !pin.is_empty() && pin.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if let Some((port, pin)) = ports.iter().find(|(_, pin)| !self.family.has_processor() && !legal(pin)) {
            return Err(format!(
                "pin {pin:?} of {port} is no name of a pin; give one of letters and digits, as the part's package has it"
            ));
        }
        ports.sort_by(|a, b| a.1.cmp(&b.1));
        match ports.windows(2).find(|pair| pair[0].1 == pair[1].1) {
            Some(pair) => Err(format!("pin {} is named for both {} and {}", pair[0].1, pair[0].0, pair[1].0)),
            None => Ok(()),
        }
    }

    /// What names its file in errors.
    fn file(&self) -> String {
        self.folder.as_ref().unwrap_or(&PathBuf::from(&self.name)).join(FILE).display().to_string()
    }

    /// The same board with the host of a kind among those that it may have.
    ///
    /// # Errors
    /// [`FlowError::Board`], which names the kinds that there are.
    pub fn with_host(&self, kind: &str) -> Result<Board, FlowError> {
        let found = self.all_hosts().find(|(_, host)| host.kind() == kind);
        let Some((_, host)) = found else {
            let kinds: Vec<&str> = self.all_hosts().map(|(_, host)| host.kind()).collect();
            let reason = format!("it has no host of kind {kind}; there are {}", kinds.join(", "));
            return Err(FlowError::Board { file: self.file(), reason });
        };
        let others = self.all_hosts().filter(|(_, other)| other.kind() != kind).map(|(_, other)| other.clone());
        Ok(Board { host: host.clone(), hosts: others.collect(), ..self.clone() })
    }

    /// The configuration that the board has unless another is asked for, as `--hw` takes it: a preset's name, or the path of a file
    /// of the board's folder.
    pub fn default_hw(&self) -> String {
        match &self.folder {
            Some(folder) if self.hw.ends_with(".toml") => folder.join(&self.hw).display().to_string(),
            _ => self.hw.clone(),
        }
    }

    /// Reads that configuration, with the board's clock, what its file says of the machine around, and the DRAM model of its memory,
    /// unless the configuration has figures of its own for it.
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

    /// The machine around the accelerator, where a configuration says `host`: the clock is the one that the board's part makes, and the
    /// rate is that of a link through which tensors come to memory on the board.
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
        self.family.clock(self, wanted).map(|(_, mhz)| mhz).map_err(bad)
    }

    /// Clock cycles of a bit of its link, as [`Host::clocks_per_bit`], where a clock of so many MHz is wanted: of the one that its part
    /// makes.
    ///
    /// # Errors
    /// [`FlowError::Board`] where it makes none, or the line's speed does not go with the one that it makes.
    pub fn clocks_per_bit(&self, wanted: f64) -> Result<u32, FlowError> {
        let bad = |what| FlowError::Board { file: self.file(), reason: format!("host.{what}") };
        self.host.clocks_per_bit(self.clock_mhz(wanted)?).map_err(bad)
    }
}

/// The seed of a board that names none.
fn first_seed() -> u64 {
    1
}

/// Refuses text that would end the line or the comment of a source that it is written into.
fn check_text(key: &str, value: &toml::Value) -> Result<(), String> {
    let inner = |name: &str| if key.is_empty() { name.to_string() } else { format!("{key}.{name}") };
    match value {
        toml::Value::String(text) if text.chars().any(char::is_control) || text.contains("*/") => {
            Err(format!("{key} is {text:?}; a text has neither control characters nor the end of a comment"))
        }
        toml::Value::Array(values) => values.iter().try_for_each(|value| check_text(key, value)),
        toml::Value::Table(table) => table.iter().try_for_each(|(name, value)| check_text(&inner(name), value)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
