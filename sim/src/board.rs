//! A board without hardware: the Verilated design of a whole board, whose serial line is a stream of bytes.
//!
//! The other end of the line sends and receives as a serial port does, cycle by cycle, and time passes only while somebody
//! waits for bytes, so that a program takes the same cycles each time.

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
use tilewright_hw::flow::sdram::Sdram;
use tilewright_hw::isa::config_package;
use tilewright_hw::link::ByteStream;
use tilewright_hw::rtl::SOURCES;

/// A design with a serial line: its top module has the ports `clk`, `uart_rx` and `uart_tx`, and those of an SDRAM where there is
/// one (in a netlist with data pins of both directions, otherwise with a shell's ports).
#[derive(Debug, Clone)]
pub struct BoardDesign {
    /// Verilog sources, packages first, and headers: name and text.
    pub files: Vec<(String, String)>,
    /// The top module.
    pub top: String,
    /// Clock cycles of a bit, as the other end of the line sends and reads them.
    pub clocks_per_bit: u32,
    /// Clock cycles in a second, by which waiting times become cycles.
    pub clock_hz: f64,
    /// Whether it is a netlist, whose simulator would take longer to optimise than to run.
    pub is_netlist: bool,
    /// The chip of SDRAM beside it, which is simulated with it and checks what is done to it.
    pub sdram: Option<Sdram>,
}

impl BoardDesign {
    /// A shell's Verilog around the core of a configuration. Bits have the rate of 3 Mbaud.
    pub fn of_shell(config: &HwConfig, shell: &str, top: &str, clocks_per_bit: u32) -> BoardDesign {
        let mut files = vec![("tw_cfg_pkg.sv".to_string(), config_package(config))];
        files.extend(SOURCES.iter().map(|(name, text)| (name.to_string(), text.to_string())));
        files.push(("tw_shell.v".into(), shell.into()));
        BoardDesign {
            files,
            top: top.into(),
            clocks_per_bit,
            clock_hz: f64::from(clocks_per_bit) * 3e6,
            is_netlist: false,
            sdram: None,
        }
    }

    /// What the bench is told: which ports of an SDRAM there are.
    fn defines(&self) -> Vec<(&'static str, u32)> {
        let Some(chip) = &self.sdram else { return Vec::new() };
        let all =
            [("TW_SDRAM", true), ("TW_SDRAM_MASKS", chip.geometry().has_masks), ("TW_SDRAM_PINS", self.is_netlist)];
        all.into_iter().filter(|(_, is)| *is).map(|(name, _)| (name, 1)).collect()
    }

    /// The same with a chip of SDRAM, at a clock in MHz.
    pub fn with_sdram(self, chip: Sdram, mhz: f64) -> BoardDesign {
        BoardDesign { sdram: Some(chip), clock_hz: mhz * 1e6, ..self }
    }
}

/// A board without hardware.
pub struct VirtualBoard {
    bench: Bench,
    clock_hz: f64,
}

impl VirtualBoard {
    /// Builds the design where it is not in the cache, which is [`default_cache_dir`] where none is given, and powers it on.
    ///
    /// # Errors
    /// [`DeviceError::Tool`]: Verilator or the C++ compiler is missing or fails, or the cache cannot be written.
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
            flags: Flags { short: design.is_netlist, ..Flags::default() },
            trained: false,
        };
        let library = verilate::library(&recipe, &cache, progress, &|_| Ok(()))?;
        let chip = design.sdram.as_ref().map(|chip| SdramChip::new(chip, design.clock_hz / 1e6));
        let bench = Bench::new(&library, design.clocks_per_bit, chip).map_err(|reason| {
            let remedy = "remove it from the cache, so that it is built again";
            tool_error(&library.display().to_string(), reason, remedy)
        })?;
        Ok(VirtualBoard { bench, clock_hz: design.clock_hz })
    }

    /// Clock cycles since power-on.
    pub fn cycles(&self) -> u64 {
        self.bench.cycles()
    }

    /// The chip of SDRAM, where there is one.
    pub fn sdram_mut(&mut self) -> Option<&mut SdramChip> {
        self.bench.chip.as_deref_mut().map(|chip| &mut chip.model)
    }
}

impl ByteStream for VirtualBoard {
    fn name(&self) -> &str {
        "the virtual board"
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bench.send(bytes);
        Ok(())
    }

    fn receive(&mut self, bytes: &mut [u8], timeout: Duration) -> io::Result<usize> {
        self.bench.run((timeout.as_secs_f64() * self.clock_hz) as u64, bytes).map_err(io::Error::other)
    }

    fn now(&self) -> Duration {
        Duration::from_secs_f64(self.cycles() as f64 / self.clock_hz)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.bench.clear();
        Ok(())
    }
}
