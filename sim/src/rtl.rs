//! The Verilated design behind the `Device` contract.
//!
//! The library is built once for each configuration and kept in a cache directory; a run is a few foreign calls, each of
//! many cycles. Commands queue here and run one after the other.

mod build;
mod sys;
mod training;

pub use crate::verilate::{Compiler, Progress, Verilator, default_cache_dir, find_tools};

use crate::dram::Dram;
use crate::span;
use crate::verilate::{self, Flags};
use std::path::{Path, PathBuf};
use sys::{Bench, End};
use tilewright_hw::config::{DramSection, HwConfig, Mem};
use tilewright_hw::device::queue::{DEFAULT_CYCLE_LIMIT, Queue};
use tilewright_hw::device::{Base, Command, DeviceError, RunReport};
use tilewright_hw::host::{Registers, retired_macs};
use tilewright_hw::isa::Unit;
use tilewright_hw::regs::{self, UnitState};

/// Cycles within which a soft reset must be done, and after how many each the host looks. Every burst under way ends first.
const RESET_CYCLES: u64 = 1 << 24;
const RESET_STEP: u64 = 16;

/// How to build and run the design.
#[derive(Debug, Clone, Default)]
pub struct RtlOptions {
    /// The memory's timing; the configuration's where `None`.
    pub dram: Option<DramSection>,
    /// Waves go to this FST file; needs a build of its own and is slow.
    pub waves: Option<PathBuf>,
    /// Where builds are kept; [`default_cache_dir`] where `None`.
    pub cache_dir: Option<PathBuf>,
    /// The design's assertions are checked; a build of its own.
    pub assertions: bool,
    /// Requests wait at random until the memory takes them, so cycles are nobody's; a build of its own.
    pub stalls: bool,
    /// Reports tell when instructions started and retired; slower by a few per cent.
    pub spans: bool,
    /// The Verilator that builds the design; the one on PATH where `None`.
    pub verilator: Option<PathBuf>,
}

fn fault(reason: String) -> DeviceError {
    DeviceError::Tool {
        tool: "the Verilated design".into(),
        reason,
        remedy: "this is a fault of the design; report it with the program".into(),
    }
}

/// The Verilated design.
pub struct Rtl {
    config: HwConfig,
    bench: Bench,
    /// Runs keep when instructions started and retired.
    spans: bool,
    bases: Vec<Base>,
    queue: Queue,
}

impl Rtl {
    /// Builds the design where needed and resets it; memory is zeroed.
    ///
    /// # Errors
    /// [`DeviceError::Tool`]: Verilator or the C++ compiler is missing or fails, the cache cannot be written, or the
    /// library is of another configuration.
    pub fn new(config: HwConfig, memory_bytes: u64, options: &RtlOptions) -> Result<Rtl, DeviceError> {
        Rtl::with_progress(config, memory_bytes, options, &|_| {})
    }

    /// As [`Rtl::new`], and tells how the build goes on.
    ///
    /// # Errors
    /// As [`Rtl::new`].
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

    /// The design of a library that is built.
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
            remedy: "remove it from the cache, so that it is built again".into(),
        };
        let mut bench = Bench::new(library, memory_bytes, dram, options.waves.as_deref()).map_err(&failed)?;
        let Ok(hash) = bench.read_wide(regs::CONFIG_HASH_LO);
        if bench.read_reg(regs::ID) != regs::ID_VALUE || hash != config.hash() {
            return Err(failed(format!("it shows configuration hash {hash:016x}, not {:016x}", config.hash())));
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
        // Loads address the rows of a param entry, the design holds it as one.
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
            End::Stopped => {}
            End::Limit => {
                self.soft_reset()?;
                return Err(DeviceError::CycleLimit { limit });
            }
            End::Failed(reason) => {
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

    /// Resets the design as a host can, by its register, which keeps the bases: in the middle of a run too, whose bursts end
    /// first.
    fn soft_reset(&mut self) -> Result<(), DeviceError> {
        self.bench.write_reg(regs::CONTROL, regs::CONTROL_RESET);
        for _ in 0..RESET_CYCLES / RESET_STEP {
            if let End::Failed(reason) = self.bench.run(RESET_STEP) {
                self.reset();
                return Err(fault(reason));
            }
            if self.bench.read_reg(regs::STATUS) & 1 == 0 {
                self.bench.write_reg(regs::CONTROL, regs::CONTROL_IRQ_ENABLE);
                return Ok(());
            }
        }
        self.reset();
        Err(fault(format!("it is not reset {RESET_CYCLES} cycles after the host asked for it")))
    }

    /// Resets the design as its pins do, which clears the base registers too.
    fn reset(&mut self) {
        self.bench.reset();
        self.set_up();
    }

    /// What the host writes after a reset: bases that nothing fits in, and that it wants the interrupt.
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

    /// Writes the profile of a library that was built to be trained.
    fn dump_profile(&mut self) -> Result<(), DeviceError> {
        self.bench.dump_profile().map_err(|reason| DeviceError::Tool {
            tool: "the instrumented design".into(),
            reason,
            remedy: "clear the cache directory".into(),
        })
    }

    /// The host wrote these bytes; nobody asks.
    fn host_wrote(&mut self, _range: std::ops::Range<usize>) {}

    /// Whether a cycle is one call of the model's function for what follows a clock edge. Without it, in assertions' and waves'
    /// builds and where a version of Verilator names that function otherwise, the model finds out which clocks rose.
    pub fn has_direct_edges(&self) -> bool {
        self.bench.has_direct_edges()
    }

    /// Device memory.
    pub fn memory(&self) -> &[u8] {
        self.bench.memory()
    }

    /// Device memory, to be filled by the host.
    pub fn memory_mut(&mut self) -> &mut [u8] {
        self.bench.memory_mut()
    }
}

crate::queue::device!(Rtl, "rtl");

#[cfg(test)]
mod tests;
