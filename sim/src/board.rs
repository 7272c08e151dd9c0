//! A board without hardware: the Verilated design of a whole board, including its pins, reached through a byte stream.
//!
//! The other end of the link acts like a serial port or an SPI master, cycle by cycle. Time passes only while the
//! caller waits for bytes or, over SPI, sends them, so a program takes the same cycles on every run.

pub mod sdram;
mod sys;

use crate::verilate::{self, Flags, Progress, Recipe, default_cache_dir, tool_error};
use sdram::SdramChip;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use sys::Bench;
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::DeviceError;
use tilewright_hw::flow::FlowError;
use tilewright_hw::flow::board::{Board, CoreMemory, HostLink};
use tilewright_hw::flow::design;
use tilewright_hw::flow::sdram::Sdram;
use tilewright_hw::isa::config_package;
use tilewright_hw::link::{ByteStream, SpiBytes, SpiMaster};
use tilewright_hw::rtl::SOURCES;

/// The pins of a link and its speed, in clock cycles of the design per bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPins {
    /// `uart_rx` and `uart_tx`.
    Uart {
        /// Clock cycles per bit.
        clocks_per_bit: u32,
    },
    /// `spi_cs_n`, `spi_sck`, `spi_mosi` and `spi_miso`; the other end is the master.
    Spi {
        /// Clock cycles per period of `spi_sck`.
        clocks_per_bit: u32,
    },
}

impl LinkPins {
    fn clocks_per_bit(self) -> u32 {
        match self {
            LinkPins::Uart { clocks_per_bit } | LinkPins::Spi { clocks_per_bit } => clocks_per_bit,
        }
    }
}

/// A design with a link. Its top module has the ports `clk`, those of the link, and those of the SDRAM, if any.
#[derive(Debug, Clone)]
pub struct BoardDesign {
    /// Verilog sources as name and text: packages first, then the rest, headers included.
    pub files: Vec<(String, String)>,
    /// The top module.
    pub top: String,
    /// The link.
    pub link: LinkPins,
    /// Clock frequency in Hz, to convert timeouts into cycles.
    pub clock_hz: f64,
    /// The board's SDRAM chip, if any. It is simulated with the design and checks how it is used.
    pub sdram: Option<Sdram>,
}

impl BoardDesign {
    /// Builds a design from a shell's Verilog and the core of a configuration, without a board. The bit rate is 3
    /// Mbaud.
    pub fn of_shell(config: &HwConfig, shell: &str, top: &str, link: LinkPins) -> BoardDesign {
        let mut files = vec![("tw_cfg_pkg.sv".to_string(), config_package(config))];
        files.extend(SOURCES.iter().map(|(name, text)| (name.to_string(), text.to_string())));
        files.push(("tw_shell.v".into(), shell.into()));
        BoardDesign { files, top: top.into(), link, clock_hz: f64::from(link.clocks_per_bit()) * 3e6, sdram: None }
    }

    /// Builds the whole design of a board, including its top module, around a shell's Verilog, for a clock of `mhz`.
    ///
    /// # Errors
    /// - [`FlowError::Unfit`] if the part cannot make this clock, or the board's host is a processor
    /// - [`FlowError::Board`] if the link does not work with this clock
    pub fn of_board(board: &Board, config: &HwConfig, shell: &str, mhz: f64) -> Result<BoardDesign, FlowError> {
        let design::Sources { files, mhz: made } = design::simulated(board, config, shell, mhz)?;
        let files = files.into_iter().map(|file| (file.name, file.text)).collect();
        let clocks_per_bit = board.clocks_per_bit(mhz)?;
        let link = match board.host {
            HostLink::Uart { .. } | HostLink::Processor { .. } => LinkPins::Uart { clocks_per_bit },
            HostLink::Spi { .. } => LinkPins::Spi { clocks_per_bit },
        };
        let sdram = match &board.memory {
            CoreMemory::Sdram(chip) => Some((**chip).clone()),
            _ => None,
        };
        Ok(BoardDesign { files, top: design::TOP.into(), link, clock_hz: made * 1e6, sdram })
    }

    /// Returns the board's SDRAM chip in its power-up state, if it has one.
    pub fn chip(&self) -> Option<SdramChip> {
        self.sdram.as_ref().map(|chip| SdramChip::new(chip, self.clock_hz / 1e6))
    }

    /// Returns macros that tell the bench which ports exist.
    fn defines(&self) -> Vec<(&'static str, u32)> {
        let pins = self.sdram.as_ref().map(|chip| &chip.pins);
        let all = [
            ("TW_SPI", matches!(self.link, LinkPins::Spi { .. })),
            ("TW_SDRAM", pins.is_some()),
            ("TW_SDRAM_CKE", pins.is_some_and(|pins| pins.cke.is_some())),
            ("TW_SDRAM_CS", pins.is_some_and(|pins| pins.cs.is_some())),
            ("TW_SDRAM_MASKS", pins.is_some_and(|pins| !pins.dqm.is_empty())),
        ];
        all.into_iter().filter(|(_, is)| *is).map(|(name, _)| (name, 1)).collect()
    }
}

/// A simulated board: a byte stream, and an SDRAM chip whose contents can be read and changed from outside.
pub trait SimulatedBoard: ByteStream {
    /// Returns the SDRAM chip, if there is one.
    fn sdram_mut(&mut self) -> Option<&mut SdramChip>;
}

/// A Verilated board.
pub struct VirtualBoard {
    pins: Pins,
    /// Over SPI, the bytes received so far.
    spi: Option<SpiBytes>,
}

/// The design and its clock.
struct Pins {
    bench: Bench,
    clock_hz: f64,
}

impl SpiMaster for Pins {
    fn exchange(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.bench.exchange(bytes).map_err(io::Error::other)
    }

    fn now(&self) -> Duration {
        Duration::from_secs_f64(self.bench.cycles() as f64 / self.clock_hz)
    }
}

impl VirtualBoard {
    /// Builds the design, unless it is cached, and powers it on. `None` as `cache_dir` selects [`default_cache_dir`].
    ///
    /// # Errors
    /// [`DeviceError::Tool`] if Verilator or the C++ compiler is missing or fails, or if the cache cannot be written.
    pub fn new(
        design: &BoardDesign,
        cache_dir: Option<PathBuf>,
        progress: &dyn Fn(Progress),
    ) -> Result<VirtualBoard, DeviceError> {
        let cache = match cache_dir {
            Some(dir) => dir,
            None => default_cache_dir()?,
        };
        let recipe = Recipe {
            kind: "board",
            top: &design.top,
            class: "Vtw_board",
            package: None,
            sources: design.files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect(),
            bench: None,
            shim: include_str!("board/shim.cpp"),
            header: None,
            defines: design.defines(),
            flags: Flags::default(),
            long_runs: false,
            verilator: None,
        };
        let library = verilate::library(&recipe, &cache, progress, &|_| Ok(()))?;
        let bench = Bench::new(&library, design.link.clocks_per_bit(), design.chip()).map_err(|reason| {
            let remedy = "remove it from the cache to rebuild it";
            tool_error(&library.display().to_string(), reason, remedy)
        })?;
        let spi = matches!(design.link, LinkPins::Spi { .. }).then(SpiBytes::default);
        Ok(VirtualBoard { pins: Pins { bench, clock_hz: design.clock_hz }, spi })
    }

    /// Returns the clock cycles since power-on.
    pub fn cycles(&self) -> u64 {
        self.pins.bench.cycles()
    }
}

impl SimulatedBoard for VirtualBoard {
    fn sdram_mut(&mut self) -> Option<&mut SdramChip> {
        self.pins.bench.chip.as_deref_mut().map(|chip| chip.socket.chip_mut())
    }
}

/// Raw access to the SPI pins: the caller keeps the bytes that arrive.
impl SpiMaster for VirtualBoard {
    fn exchange(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.pins.exchange(bytes)
    }

    fn now(&self) -> Duration {
        self.pins.now()
    }
}

impl ByteStream for VirtualBoard {
    fn name(&self) -> &str {
        "the virtual board"
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.spi {
            Some(spi) => spi.send(&mut self.pins, bytes),
            None => {
                self.pins.bench.send(bytes);
                Ok(())
            }
        }
    }

    fn receive(&mut self, bytes: &mut [u8], timeout: Duration) -> io::Result<usize> {
        match &mut self.spi {
            Some(spi) => spi.receive(&mut self.pins, bytes, timeout),
            None => {
                let cycles = (timeout.as_secs_f64() * self.pins.clock_hz) as u64;
                self.pins.bench.run(cycles, bytes).map_err(io::Error::other)
            }
        }
    }

    fn now(&self) -> Duration {
        self.pins.now()
    }

    fn clear(&mut self) -> io::Result<()> {
        match &mut self.spi {
            Some(spi) => spi.clear(),
            None => self.pins.bench.clear(),
        }
        Ok(())
    }
}
