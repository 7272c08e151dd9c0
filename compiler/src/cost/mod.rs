//! Costs of operators on the accelerator and on the CPU, which `--offload auto` compares.

mod cpu;
mod macs;
pub mod roofline;

pub use cpu::PARALLEL_WORK;
pub use macs::macs;
pub use roofline::{Roofline, roofline};

use crate::codegen::accel::{Layer, Planned};
use crate::graph::{Graph, NodeId};
use crate::records::{OtherShapes, Records};
use tilewright_driver::{AccelProgram, Order, Recording};
use tilewright_hw::HwConfig;
use tilewright_runtime::artifact::{InsnLayers, LayerEnd};

/// A time on the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTime {
    /// Nanoseconds.
    pub ns: u64,
    /// Whether the time was measured. Otherwise it comes from a model.
    pub measured: bool,
}

/// A source of operator costs.
pub trait CostOracle {
    /// Returns the cycles of a layer on the accelerator, from device memory to device memory.
    fn accel_cycles(&self, layer: &Layer, planned: &Planned) -> u64;

    /// Converts cycles of the accelerator to nanoseconds.
    fn accel_ns(&self, cycles: u64) -> u64;

    /// Returns the time of some nodes on the CPU, computed in one go, or `None` if their sizes are unknown.
    fn cpu(&self, graph: &Graph, nodes: &[NodeId]) -> Option<CpuTime>;

    /// Returns the nanoseconds to bring a tensor of `dense_bytes` to the accelerator, or back. It takes `device_bytes`
    /// there.
    fn border_ns(&self, dense_bytes: u64, device_bytes: u64) -> u64;

    /// Returns the nanoseconds to start a program on the accelerator and to notice its end.
    fn launch_ns(&self) -> u64;

    /// Returns a source of exact cycles for whole programs, if there is one.
    fn clock(&self) -> Option<&dyn Clock> {
        None
    }

    /// Returns plans that were found earlier, if there are any.
    fn records(&self) -> Option<&Records> {
        None
    }

    /// Returns the plans of the same layers at the first shape of the model, if it is compiled for several shapes one
    /// after the other.
    fn other_shapes(&self) -> Option<&OtherShapes> {
        None
    }
}

/// A source of exact cycles for programs.
pub trait Clock {
    /// Returns the cycles from a program's start until each layer and all earlier ones are done, or `None` if the
    /// program cannot run. The last layer is done when the program is.
    fn cycles(&self, program: &AccelProgram, layers: &InsnLayers) -> Option<Vec<u64>>;

    /// Returns the cycles of a whole program in an order, or `None` if it cannot run.
    fn total(&self, recording: &Recording, order: &Order) -> Option<u64> {
        let program = recording.program(order).ok()?;
        let all = LayerEnd { name: String::new(), end: program.insn_count() };
        self.cycles(&program, &InsnLayers::new(&[all], &[]))?.last().copied()
    }
}

/// An oracle with the estimates of the tile search, and the host model of the configuration. Results are the same on
/// every machine.
#[derive(Debug, Clone, Copy)]
pub struct Analytic<'c> {
    /// The configuration.
    pub config: &'c HwConfig,
}

impl Analytic<'_> {
    /// Returns the microseconds in which the host converts a tensor to the accelerator's layout, or back.
    pub fn convert_us(&self, dense_bytes: u64) -> f64 {
        dense_bytes as f64 / self.config.host.convert_bytes_per_cycle / self.config.host.cpu_clock_mhz
    }

    /// Returns the microseconds to transfer a tensor to the accelerator's memory, or back.
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

/// Converts microseconds to whole nanoseconds, clamped to `0..=2^50`.
fn ns(us: f64) -> u64 {
    (us * 1e3).clamp(0.0, (1u64 << 50) as f64).round() as u64
}
