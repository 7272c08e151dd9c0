//! The core as an AXI peripheral, Verilated: what a driver that reaches it by registers and a buffer of memory is tried on.
//!
//! Registers are read and written over AXI4-Lite, and the buffer answers over AXI4, each when it likes: requests and data wait
//! for as long as chance has it, answers to fetch and load come in any order between the two, data of a write are taken before
//! or after their address. What the protocol asks of the core is looked at in each cycle: that what it offers stands until it is
//! taken, that bursts are those of the configuration and stay inside 4 KiB and inside the buffer, that the last beat is marked.
//! Each wrong is an error of the access in which it was seen.

mod sys;

use crate::verilate::{self, Flags, Progress, Recipe, default_cache_dir, tool_error};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use sys::{Bench, Setting};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{DeviceError, memory_range};
use tilewright_hw::host::Registers;
use tilewright_hw::isa::config_package;
use tilewright_hw::peripheral::Peripheral;
use tilewright_hw::rtl::{PERIPHERAL, SOURCES};

/// Clock cycles in a second, by which waiting times become cycles.
const CLOCK_HZ: f64 = 100e6;

/// How the peripheral's surroundings are.
#[derive(Debug, Clone, Default)]
pub struct AxiOptions {
    /// Where the buffer begins on the bus.
    pub buffer_addr: u64,
    /// Its bytes.
    pub buffer_bytes: u64,
    /// How many of its bytes answer without an error; all where `None`.
    pub answering_bytes: Option<u64>,
    /// In how many of sixteen cycles something on the memory's bus waits that could pass; at 16 nothing passes. Where it is
    /// not 0, answers come later and accesses to registers are slower by chance, too.
    pub pressure: u32,
    /// What chance begins with.
    pub seed: u64,
    /// Where builds are kept; [`default_cache_dir`] where `None`.
    pub cache_dir: Option<PathBuf>,
}

/// What passed on the memory's bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Traffic {
    /// Bursts that were read.
    pub read_bursts: u64,
    /// Bursts that were written.
    pub write_bursts: u64,
    /// Cycles in which the core offered something that was not taken, one for each channel.
    pub held: u64,
    /// Beats of a read that came between those of another.
    pub interleaved: u64,
    /// Beats of a write that were taken before its address.
    pub early: u64,
    /// Bursts that were answered with an error.
    pub errors: u64,
}

/// The Verilated peripheral with its buffer.
pub struct Axi {
    bench: Bench,
    buffer_addr: u64,
    /// The next interrupt is let through.
    enabled: bool,
}

impl Axi {
    /// Builds the design, with its assertions, where it is not in the cache, and resets it.
    ///
    /// # Errors
    /// [`DeviceError::Tool`]: Verilator or the C++ compiler is missing or fails, or the cache cannot be written.
    pub fn new(config: &HwConfig, options: &AxiOptions, progress: &dyn Fn(Progress)) -> Result<Axi, DeviceError> {
        Axi::of_sources(config, SOURCES, options, progress)
    }

    fn of_sources(
        config: &HwConfig,
        sources: &[(&str, &str)],
        options: &AxiOptions,
        progress: &dyn Fn(Progress),
    ) -> Result<Axi, DeviceError> {
        let cache = match &options.cache_dir {
            Some(dir) => dir.clone(),
            None => default_cache_dir()?,
        };
        let recipe = Recipe {
            kind: "axi",
            top: PERIPHERAL,
            class: "Vtw_axi",
            // The name and the file's comments are not hardware.
            package: Some(("tw_cfg_pkg.sv", config_package(&HwConfig { name: String::new(), ..config.clone() }))),
            sources: sources.to_vec(),
            bench: None,
            shim: include_str!("axi/shim.cpp"),
            header: None,
            defines: vec![("TW_BUS_BYTES", config.bus_bytes()), ("TW_MAX_BURST_BEATS", config.max_burst_beats)],
            flags: Flags { assertions: true, ..Flags::default() },
            long_runs: false,
            verilator: None,
        };
        let library = verilate::library(&recipe, &cache, progress, &|_| Ok(()))?;
        let setting = Setting {
            from: options.buffer_addr,
            bytes: options.buffer_bytes,
            answering: options.answering_bytes.unwrap_or(options.buffer_bytes).min(options.buffer_bytes),
            pressure: options.pressure,
            seed: options.seed,
        };
        let bench = Bench::new(&library, &setting).map_err(|reason| {
            let remedy = "remove it from the cache, so that it is built again";
            tool_error(&library.display().to_string(), reason, remedy)
        })?;
        Ok(Axi { bench, buffer_addr: options.buffer_addr, enabled: false })
    }

    /// Changes [`AxiOptions::pressure`].
    pub fn set_pressure(&mut self, pressure: u32) {
        self.bench.set_pressure(pressure);
    }

    /// Clock cycles since the reset.
    pub fn cycles(&self) -> u64 {
        self.bench.cycles()
    }

    /// What passed on the memory's bus since the reset.
    pub fn traffic(&self) -> Traffic {
        self.bench.traffic()
    }

    /// Whether nothing is under way on the memory's bus.
    pub fn is_idle(&self) -> bool {
        self.bench.is_idle()
    }

    /// The bytes of the buffer from `at` on.
    fn bytes(&mut self, at: u64, len: usize) -> io::Result<&mut [u8]> {
        let range = memory_range(at, len as u64, self.buffer_bytes())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
        Ok(&mut self.bench.buffer()[range])
    }
}

impl Registers for Axi {
    type Error = io::Error;

    fn read_reg(&mut self, addr: u32) -> io::Result<u32> {
        self.bench.read_reg(addr).map_err(io::Error::other)
    }

    fn write_reg(&mut self, addr: u32, value: u32) -> io::Result<()> {
        self.bench.write_reg(addr, value).map_err(io::Error::other)
    }
}

impl Peripheral for Axi {
    fn name(&self) -> &str {
        "the Verilated peripheral"
    }

    fn buffer_addr(&self) -> u64 {
        self.buffer_addr
    }

    fn buffer_bytes(&self) -> u64 {
        self.bench.buffer_bytes()
    }

    fn read_buffer(&mut self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        bytes.copy_from_slice(self.bytes(at, bytes.len())?);
        Ok(())
    }

    fn write_buffer(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.bytes(at, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    fn enable_interrupt(&mut self) -> io::Result<()> {
        self.enabled = true;
        Ok(())
    }

    fn wait_for_interrupt(&mut self, timeout: Duration) -> io::Result<bool> {
        let cycles = (timeout.as_secs_f64() * CLOCK_HZ) as u64;
        let came = self.bench.run(cycles).map_err(io::Error::other)? && self.enabled;
        // As an operating system does, the next one is kept until it is asked for.
        self.enabled &= !came;
        Ok(came)
    }

    fn now(&self) -> Duration {
        Duration::from_secs_f64(self.cycles() as f64 / CLOCK_HZ)
    }
}

#[cfg(test)]
mod tests;
