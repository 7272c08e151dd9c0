//! The core as an AXI peripheral, Verilated. Drivers that reach it through registers and a memory buffer are tested on
//! it.
//!
//! Registers are accessed over AXI4-Lite, and the buffer answers over AXI4, both with random delays: requests and data
//! wait, answers to fetch and load are interleaved, and data of a write are taken before or after their address. The
//! bench checks the core's side of the protocol in each cycle: offers stay valid and unchanged until taken, bursts
//! match the configuration and stay inside 4 KiB and inside the buffer, and the last beat is marked. Each violation is
//! an error of the access during which it happened.

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

/// Clock frequency in Hz, to convert timeouts into cycles.
const CLOCK_HZ: f64 = 100e6;

/// The environment of the peripheral.
#[derive(Debug, Clone, Default)]
pub struct AxiOptions {
    /// Bus address of the buffer.
    pub buffer_addr: u64,
    /// Size of the buffer in bytes.
    pub buffer_bytes: u64,
    /// Number of its bytes that answer without an error; `None` for all.
    pub answering_bytes: Option<u64>,
    /// In how many of sixteen cycles a possible transfer on the memory bus is held back; at 16 nothing transfers. If
    /// not 0, answers and register accesses are randomly delayed, too.
    pub pressure: u32,
    /// Seed of the random delays.
    pub seed: u64,
    /// Folder for builds; `None` for [`default_cache_dir`].
    pub cache_dir: Option<PathBuf>,
}

/// Counts of what passed on the memory bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Traffic {
    /// Bursts read.
    pub read_bursts: u64,
    /// Bursts written.
    pub write_bursts: u64,
    /// Cycles in which an offer of the core was not taken, summed over channels.
    pub held: u64,
    /// Beats of a read that arrived between beats of another read.
    pub interleaved: u64,
    /// Beats of a write taken before its address.
    pub early: u64,
    /// Bursts answered with an error.
    pub errors: u64,
}

/// The Verilated peripheral with its buffer.
pub struct Axi {
    bench: Bench,
    buffer_addr: u64,
    /// Whether the next interrupt is reported.
    enabled: bool,
}

impl Axi {
    /// Builds the design with its assertions, unless it is cached, and resets it.
    ///
    /// # Errors
    /// [`DeviceError::Tool`] if Verilator or the C++ compiler is missing or fails, or if the cache cannot be written.
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
            // The name and the file's comments do not affect the hardware.
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
            let remedy = "remove it from the cache to rebuild it";
            tool_error(&library.display().to_string(), reason, remedy)
        })?;
        Ok(Axi { bench, buffer_addr: options.buffer_addr, enabled: false })
    }

    /// Changes [`AxiOptions::pressure`].
    pub fn set_pressure(&mut self, pressure: u32) {
        self.bench.set_pressure(pressure);
    }

    /// Returns the clock cycles since the reset.
    pub fn cycles(&self) -> u64 {
        self.bench.cycles()
    }

    /// Returns what passed on the memory bus since the reset.
    pub fn traffic(&self) -> Traffic {
        self.bench.traffic()
    }

    /// Returns whether nothing is in flight on the memory bus.
    pub fn is_idle(&self) -> bool {
        self.bench.is_idle()
    }

    /// Returns the bytes of the buffer from `at` on.
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
        // Like an operating system, keep the next interrupt until the caller enables it.
        self.enabled &= !came;
        Ok(came)
    }

    fn now(&self) -> Duration {
        Duration::from_secs_f64(self.cycles() as f64 / CLOCK_HZ)
    }
}

#[cfg(test)]
mod tests;
