//! Figures of a device.

use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::Place;
use tilewright_runtime::tensor::Tensor;

use super::names::Asked;
use super::{Frame, Spread, Stream};

/// A device of the comparison.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name in results: the device's, with the suffix `@CONFIGURATION` if there are several configurations.
    pub name: String,
    /// The device's name.
    pub device: String,
    /// The configuration of an accelerator.
    pub hw: Option<HwConfig>,
    /// Its figures, or the reason why there are none.
    pub figures: Result<Figures, String>,
}

impl Column {
    /// The column of the CPU, or of a device that this program does not have.
    pub(super) fn beside(asked: &Asked, cpu: &Figures) -> Column {
        let figures = asked.kind.clone().map(|_| cpu.clone());
        Column { name: asked.name.clone(), device: asked.name.clone(), hw: None, figures }
    }
}

/// Figures of a device.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Time of one input from arrival to answer.
    pub latency_ms: Spread,
    /// The same in parts; medians.
    pub frame: Frame,
    /// Throughput of a stream of inputs; none if nothing takes time.
    pub stream: Option<Stream>,
    /// Whether the accelerator's part is simulation time of this machine, not the hardware's time.
    pub simulated: bool,
    /// Whether it is a board, for which transfers are measured.
    pub is_board: bool,
    /// The parts with the configuration's target host, modeled.
    pub on_target: Option<Frame>,
    /// Throughput of a stream of inputs with that host.
    pub stream_on_target: Option<Stream>,
    /// Cycles of the accelerator.
    pub cycles: Option<u64>,
    /// The fraction of the array's time that the network's multiply-accumulates fill.
    pub utilization: Option<f64>,
    /// Multiply-accumulates that the accelerator performed, including padding.
    pub array_macs: u64,
    /// The fraction of the network's multiply-accumulates that it performed.
    pub offloaded: Option<f64>,
    /// Bytes read and written over the accelerator's bus.
    pub bytes: Option<(u64, u64)>,
    /// Millijoules of the accelerator and its memory, if the configuration has coefficients.
    pub energy_mj: Option<f64>,
    /// Milliseconds per run on this machine.
    pub wall_ms: Spread,
    /// The layers.
    pub layers: Vec<LayerTime>,
    /// The computed outputs.
    pub outputs: Vec<Tensor>,
    /// Whether the outputs equal the CPU's: integers exactly, floats up to the order of summation.
    pub agrees: bool,
}

/// Figures of a layer.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerTime {
    /// Name of its first node, or of its step if compilation added it.
    pub name: String,
    /// Its operators.
    pub ops: String,
    /// Names of its nodes; none if compilation added it.
    pub nodes: Vec<String>,
    /// Where it ran.
    pub place: Place,
    /// Milliseconds; none if the device is untimed.
    pub latency_ms: Option<Spread>,
    /// Modeled milliseconds on the configuration's target host.
    pub host_ms: Option<f64>,
    /// Multiply-accumulates of the network.
    pub macs: u64,
    /// Cycles of the accelerator.
    pub cycles: Option<u64>,
    /// The fraction of the array's time that they fill.
    pub utilization: Option<f64>,
    /// Bytes that it reads from and writes to device memory.
    pub bytes: Option<(u64, u64)>,
}
