//! A device's figures.

use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::Place;
use tilewright_runtime::tensor::Tensor;

use super::names::Asked;
use super::{Frame, Spread, Stream};

/// A device of the comparison.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name in results: the device's, with `@CONFIGURATION` behind it where there are several configurations.
    pub name: String,
    /// The device's name.
    pub device: String,
    /// The configuration of an accelerator.
    pub hw: Option<HwConfig>,
    /// Its figures, or why there are none.
    pub figures: Result<Figures, String>,
}

impl Column {
    /// The processor's column, or that of a device which this program does not have.
    pub(super) fn beside(asked: &Asked, cpu: &Figures) -> Column {
        let figures = asked.kind.clone().map(|_| cpu.clone());
        Column { name: asked.name.clone(), device: asked.name.clone(), hw: None, figures }
    }
}

/// What a device took.
#[derive(Debug, Clone)]
pub struct Figures {
    /// One input from its arrival to its answer.
    pub latency_ms: Spread,
    /// The same, part by part; medians.
    pub frame: Frame,
    /// A stream of inputs; none where nothing takes time.
    pub stream: Option<Stream>,
    /// Whether the accelerator's part is this machine's time, simulating, and not hardware's.
    pub simulated: bool,
    /// Whether it is a board, whose transfers are measured.
    pub is_board: bool,
    /// The same beside the configuration's target host, by its model.
    pub on_target: Option<Frame>,
    /// A stream of inputs there.
    pub stream_on_target: Option<Stream>,
    /// Cycles of the accelerator.
    pub cycles: Option<u64>,
    /// The share of the array's time that the network's multiply-accumulates fill.
    pub utilization: Option<f64>,
    /// Multiply-accumulates that the accelerator did, padding included.
    pub array_macs: u64,
    /// The share of the network's multiply-accumulates that it did.
    pub offloaded: Option<f64>,
    /// Bytes that the accelerator's bus carried, read and written.
    pub bytes: Option<(u64, u64)>,
    /// Millijoules of the accelerator and its memory, where the configuration states coefficients.
    pub energy_mj: Option<f64>,
    /// Milliseconds of this machine for a run.
    pub wall_ms: Spread,
    /// The layers.
    pub layers: Vec<LayerTime>,
    /// What it computed.
    pub outputs: Vec<Tensor>,
    /// Whether that equals what the processor computed: integers exactly, floats up to the order of their sums.
    pub agrees: bool,
}

/// What a layer took.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerTime {
    /// The name of its first node, or of its step where compilation added it.
    pub name: String,
    /// Its operators.
    pub ops: String,
    /// Names of its nodes; none of what compilation added.
    pub nodes: Vec<String>,
    /// Where it ran.
    pub place: Place,
    /// Milliseconds; none where the device knows no time.
    pub latency_ms: Option<Spread>,
    /// Milliseconds on the configuration's target host, by its model.
    pub host_ms: Option<f64>,
    /// Multiply-accumulates of the network.
    pub macs: u64,
    /// Cycles of the accelerator.
    pub cycles: Option<u64>,
    /// The share of the array's time that they fill.
    pub utilization: Option<f64>,
    /// Bytes that it read from device memory and wrote there.
    pub bytes: Option<(u64, u64)>,
}
