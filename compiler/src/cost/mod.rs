//! What operators take, on the accelerator and on the CPU: what `--offload auto` decides by.

mod cpu;
mod macs;

pub use cpu::PARALLEL_WORK;
pub use macs::macs;

use crate::codegen::accel::{Layer, Planned};
use crate::graph::{Graph, NodeId};
use tilewright_driver::AccelProgram;
use tilewright_hw::HwConfig;

/// Nanoseconds on the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTime {
    /// Nanoseconds.
    pub ns: u64,
    /// Whether they were measured; else they are those of a model.
    pub measured: bool,
}

/// Who knows what operators take.
pub trait CostOracle {
    /// Cycles of a layer on the accelerator, from device memory to device memory.
    fn accel_cycles(&self, layer: &Layer, planned: &Planned) -> u64;

    /// Nanoseconds of the accelerator's cycles.
    fn accel_ns(&self, cycles: u64) -> u64;

    /// The time of some nodes, computed in one go, on the CPU; none where their sizes are not known.
    fn cpu(&self, graph: &Graph, nodes: &[NodeId]) -> Option<CpuTime>;

    /// Nanoseconds to bring a tensor of `dense_bytes` to the accelerator, where it takes `device_bytes`, or back.
    fn border_ns(&self, dense_bytes: u64, device_bytes: u64) -> u64;

    /// Nanoseconds to start a program of the accelerator and to see its end.
    fn launch_ns(&self) -> u64;

    /// Who knows the cycles of whole programs, if anyone does.
    fn clock(&self) -> Option<&dyn Clock> {
        None
    }
}

/// Who knows exactly what programs take.
pub trait Clock {
    /// Cycles from a program's start until its parts are done: part `i` ends before instruction `ends[i]`, and what no part
    /// has belongs to the last. None where the program cannot be run.
    fn cycles(&self, program: &AccelProgram, ends: &[usize]) -> Option<Vec<u64>>;
}

/// The estimates of the search for tiles, and the model of the host that the configuration names: the same on every
/// machine.
#[derive(Debug, Clone, Copy)]
pub struct Analytic<'c> {
    /// The configuration.
    pub config: &'c HwConfig,
}

impl Analytic<'_> {
    /// Microseconds in which the host turns a tensor into the accelerator's layout, or back.
    pub fn convert_us(&self, dense_bytes: u64) -> f64 {
        dense_bytes as f64 / self.config.host.convert_bytes_per_cycle / self.config.host.cpu_clock_mhz
    }

    /// Microseconds in which a tensor comes to the accelerator's memory, or back.
    pub fn transfer_us(&self, device_bytes: u64) -> f64 {
        device_bytes as f64 / self.config.host.transfer_mb_per_s
    }
}

impl CostOracle for Analytic<'_> {
    fn accel_cycles(&self, layer: &Layer, planned: &Planned) -> u64 {
        planned.cycles(layer, self.config)
    }

    fn accel_ns(&self, cycles: u64) -> u64 {
        ns(cycles as f64 / self.config.host.clock_mhz)
    }

    fn cpu(&self, graph: &Graph, nodes: &[NodeId]) -> Option<CpuTime> {
        cpu::us(graph, nodes, &self.config.host).map(|us| CpuTime { ns: ns(us), measured: false })
    }

    fn border_ns(&self, dense_bytes: u64, device_bytes: u64) -> u64 {
        ns(self.convert_us(dense_bytes) + self.transfer_us(device_bytes))
    }

    fn launch_ns(&self) -> u64 {
        ns(self.config.host.launch_us)
    }
}

/// Whole nanoseconds of microseconds; what no clock would show is cut.
fn ns(us: f64) -> u64 {
    (us * 1e3).clamp(0.0, (1u64 << 50) as f64).round() as u64
}
