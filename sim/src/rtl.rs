//! Runs the Verilated design as a `Device`.
//!
//! The library is built once per configuration and kept in a cache directory. A run takes a few foreign calls of many
//! cycles each. Commands are queued here and run one after the other.

mod build;
mod sys;
mod training;

pub use crate::verilate::{Compiler, Progress, Verilator, default_cache_dir, find_tools};

use crate::dram::Dram;
use crate::span;
use crate::verilate::{self, Flags};
use std::path::{Path, PathBuf};
use sys::{Bench, RunEnd};
use tilewright_hw::config::{DramSection, HwConfig, Mem};
use tilewright_hw::device::queue::{DEFAULT_CYCLE_LIMIT, Queue};
use tilewright_hw::device::{Base, Command, DeviceError, RunReport};
use tilewright_hw::host::{Registers, retired_macs};
use tilewright_hw::interrupt::Interrupted;
use tilewright_hw::isa::Unit;
use tilewright_hw::regs::{self, UnitState};

/// Cycles within which a soft reset must finish, and cycles between two polls of its state. All bursts in flight end
/// first.
const RESET_CYCLES: u64 = 1 << 24;
const RESET_STEP: u64 = 16;

/// Options for building and running the design.
#[derive(Debug, Clone, Default)]
pub struct RtlOptions {
    /// Timing of the memory; `None` takes the configuration's.
    pub dram: Option<DramSection>,
    /// FST file to write waves to. Needs its own build and runs slowly.
    pub waves: Option<PathBuf>,
    /// Folder for builds; `None` for [`default_cache_dir`].
    pub cache_dir: Option<PathBuf>,
    /// Checks the design's assertions. Needs its own build.
    pub assertions: bool,
    /// Makes requests wait at random until the memory takes them, so cycle counts match no model. Needs its own build.
    pub stalls: bool,
    /// Reports when instructions started and retired. A few percent slower.
    pub spans: bool,
    /// Path of the Verilator that builds the design; `None` for the one on PATH.
    pub verilator: Option<PathBuf>,
}

fn fault(reason: String) -> DeviceError {
    DeviceError::Tool {
        tool: "the Verilated design".into(),
        reason,
        remedy: "this is a bug in the design; report it with the program".into(),
    }
}

/// The Verilated design.
pub struct Rtl {
    config: HwConfig,
    bench: Bench,
    /// Whether runs record when instructions start and retire.
    spans: bool,
    bases: Vec<Base>,
    queue: Queue,
}

impl Rtl {
    /// Builds the design if needed and resets it. Memory is zeroed.
    ///
    /// # Errors
    /// [`DeviceError::Tool`] if Verilator or the C++ compiler is missing or fails, the cache cannot be written, or the
    /// library belongs to another configuration.
    pub fn new(config: HwConfig, memory_bytes: u64, options: &RtlOptions) -> Result<Rtl, DeviceError> {
        Rtl::with_progress(config, memory_bytes, options, &|_| {})
    }

    /// Does the same as [`Rtl::new`] and reports the progress of the build.
    ///
    /// # Errors
    /// The same as [`Rtl::new`].
    pub fn with_progress(
        config: HwConfig,
        memory_bytes: u64,
        options: &RtlOptions,
        progress: &dyn Fn(Progress),
    ) -> Result<Rtl, DeviceError> {
        let cache = match &options.cache_dir {
            Some(dir) => dir.clone(),
            None => default_cache_dir()?,
        };
        let flags = Flags { waves: options.waves.is_some(), assertions: options.assertions, stalls: options.stalls };
        let train = |library: &Path| {
            let options = RtlOptions::default();
            training::train(&mut Rtl::with_library(config.clone(), training::MEMORY_BYTES, library, &options)?)
        };
        let library =
            verilate::library(&build::recipe(&config, flags, options.verilator.clone()), &cache, progress, &train)?;
        let rtl = Rtl::with_library(config, memory_bytes, &library, options)?;
        if verilate::is_fast_build(flags) && !rtl.has_direct_edges() {
            progress(Progress::SlowEdges);
        }
        Ok(rtl)
    }

    /// Loads the design from a library that is already built.
    fn with_library(
        config: HwConfig,
        memory_bytes: u64,
        library: &Path,
        options: &RtlOptions,
    ) -> Result<Rtl, DeviceError> {
        let dram = Dram::new(options.dram.unwrap_or(config.dram), memory_bytes, config.bus_bytes());
        let failed = |reason: String| DeviceError::Tool {
            tool: library.display().to_string(),
            reason,
            remedy: "remove it from the cache to rebuild it".into(),
        };
        let mut bench = Bench::new(library, memory_bytes, dram, options.waves.as_deref()).map_err(&failed)?;
        let Ok(hash) = bench.read_wide(regs::CONFIG_HASH_LO);
        if bench.read_reg(regs::ID) != regs::ID_VALUE || hash != config.hash() {
            return Err(failed(format!("it has configuration hash {hash:016x}, not {:016x}", config.hash())));
        }
        let bases = vec![Base::default(); config.bases as usize];
        let mut rtl = Rtl { config, bench, spans: options.spans, bases, queue: Queue::default() };
        rtl.set_up();
        Ok(rtl)
    }

    fn write_base(&mut self, index: usize, base: Base) {
        let Ok(()) = Registers::write_base(&mut self.bench, index, base);
        self.bases[index] = base;
    }

    fn entries(&mut self, mem: Mem, entry: u32, count: u32) -> Vec<u8> {
        // Loads address the rows of a param entry separately, but the design stores the entry as one.
        let size = self.config.entry_bytes(mem);
        let rows = self.config.rows_of_entry(mem);
        let (first, end) = (entry / rows, (entry + count).div_ceil(rows));
        let bytes = self.bench.read_entries(mem as u32, first, end - first, size * rows);
        let skip = ((entry - first * rows) * size) as usize;
        bytes[skip..skip + (count * size) as usize].to_vec()
    }

    fn run_command(&mut self, command: &Command) -> Result<RunReport, DeviceError> {
        for index in 0..self.bases.len() {
            let base = command.bases.get(index).copied().unwrap_or_default();
            if self.bases[index] != base {
                self.write_base(index, base);
            }
        }
        self.bench.reset_dram();
        self.bench.take_bytes();
        let Ok(()) = self.bench.start(command);
        let limit = command.cycle_limit.unwrap_or(DEFAULT_CYCLE_LIMIT);
        self.bench.record(self.spans);
        let end = self.bench.run(limit);
        self.bench.record(false);
        match end {
            RunEnd::Stopped => {}
            RunEnd::Limit => {
                self.soft_reset()?;
                return Err(DeviceError::CycleLimit { limit });
            }
            RunEnd::Interrupted => {
                self.soft_reset()?;
                return Err(Interrupted.into());
            }
            RunEnd::Failed(reason) => {
                self.reset();
                return Err(fault(reason));
            }
        }
        let report = self.report(command);
        if report.trap.is_some() {
            self.soft_reset()?;
        }
        Ok(report)
    }

    /// Resets the design through its control register, like a host, which keeps the base registers. It works during a
    /// run, too; the run's bursts end first.
    fn soft_reset(&mut self) -> Result<(), DeviceError> {
        self.bench.write_reg(regs::CONTROL, regs::CONTROL_RESET);
        for _ in 0..RESET_CYCLES / RESET_STEP {
            if let RunEnd::Failed(reason) = self.bench.run_whole(RESET_STEP) {
                self.reset();
                return Err(fault(reason));
            }
            if self.bench.read_reg(regs::STATUS) & 1 == 0 {
                self.bench.write_reg(regs::CONTROL, regs::CONTROL_IRQ_ENABLE);
                return Ok(());
            }
        }
        self.reset();
        Err(fault(format!("it did not finish a reset within {RESET_CYCLES} cycles")))
    }

    /// Resets the design through its reset pin, which also clears the base registers.
    fn reset(&mut self) {
        self.bench.reset();
        self.set_up();
    }

    /// Sets up the registers after a reset: empty base regions, and the interrupt enabled.
    fn set_up(&mut self) {
        for index in 0..self.bases.len() {
            self.write_base(index, Base::default());
        }
        self.bench.write_reg(regs::CONTROL, regs::CONTROL_IRQ_ENABLE);
    }

    fn report(&mut self, command: &Command) -> RunReport {
        let bytes = self.bench.take_bytes();
        let Ok(report) = self.bench.report(&self.config);
        let event = |&event: &u64| (Unit::ALL[(event >> 1 & 3) as usize], event >> 3, event & 1 == 1);
        let mut spans = span::spans(self.bench.events().iter().map(event));
        for of in spans.chunk_by_mut(|a, b| a.unit == b.unit) {
            let unit = of[0].unit as u32;
            for (span, shares) in of.iter_mut().zip(self.bench.shares(unit)) {
                span.states.copy_from_slice(&shares[..UnitState::ALL.len()]);
            }
        }
        span::leave_out(&mut spans, report.trap);
        let memory = self.bench.memory();
        let stream = command.stream();
        let end = memory.len().min(stream.end as usize);
        let stream = memory.get(stream.start as usize..end).unwrap_or_default();
        let macs = retired_macs(stream, report.retired[1], &self.config);
        RunReport { macs, bytes: Some(bytes), spans, ..report }
    }

    /// Writes the profile of an instrumented library.
    fn dump_profile(&mut self) -> Result<(), DeviceError> {
        self.bench.dump_profile().map_err(|reason| DeviceError::Tool {
            tool: "the instrumented design".into(),
            reason,
            remedy: "clear the cache directory".into(),
        })
    }

    /// Ignores writes by the host.
    fn host_wrote(&mut self, _range: std::ops::Range<usize>) {}

    /// Returns whether a cycle is a single call of the model's function for clock edges. Otherwise, the model finds out
    /// itself which clocks rose, which is slower: in builds with assertions or waves, and with Verilator versions that
    /// name that function differently.
    pub fn has_direct_edges(&self) -> bool {
        self.bench.has_direct_edges()
    }

    /// Returns device memory.
    pub fn memory(&self) -> &[u8] {
        self.bench.memory()
    }

    /// Returns device memory for the host to fill.
    pub fn memory_mut(&mut self) -> &mut [u8] {
        self.bench.memory_mut()
    }
}

crate::queue::device!(Rtl, "rtl");

#[cfg(test)]
mod tests;
