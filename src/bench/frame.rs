//! What one input takes from its arrival to its answer, in parts that are told apart.

use tilewright_compiler::cost::{Analytic, CostOracle};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{Artifact, Place, StepKind};

use crate::layers::Layer;

/// Milliseconds of one input, part by part.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Frame {
    /// In the accelerator.
    pub accel_ms: f64,
    /// Starting its programs and seeing their ends.
    pub launch_ms: f64,
    /// In operators that the host computes.
    pub host_ms: f64,
    /// Turning tensors into the accelerator's layout and back.
    pub convert_ms: f64,
    /// Bringing tensors to the accelerator's memory and back.
    pub transfer_ms: f64,
}

impl Frame {
    /// All parts one after the other.
    pub fn latency_ms(&self) -> f64 {
        self.accel_ms + self.launch_ms + self.host_ms + self.convert_ms + self.transfer_ms
    }

    /// Between two answers of a stream, where the host computes its part of one input beside the accelerator's of the next:
    /// the busier of both.
    pub fn interval_ms(&self) -> f64 {
        (self.accel_ms + self.launch_ms).max(self.host_ms + self.convert_ms + self.transfer_ms)
    }
}

/// Bytes that cross the border between host and accelerator in one run: of the tensors, and as they lie in device memory;
/// and the programs that are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Border {
    /// Bytes of dense tensors.
    pub dense: u64,
    /// Bytes in device memory.
    pub device: u64,
    /// Programs.
    pub programs: u64,
}

impl Border {
    /// Of a compiled model.
    pub fn of(artifact: &Artifact) -> Border {
        let manifest = &artifact.manifest;
        let mut border = Border::default();
        for step in &manifest.steps {
            let StepKind::Accel(accel) = &step.kind else { continue };
            let values = step.inputs.iter().chain(&step.outputs);
            border.dense += values.map(|id| manifest.values[id.0 as usize].bytes() as u64).sum::<u64>();
            let bindings = accel.program.inputs.iter().chain(&accel.program.outputs);
            border.device += bindings.map(|binding| binding.bytes).sum::<u64>();
            border.programs += 1;
        }
        border
    }

    /// Milliseconds to start the programs, by the model of the configuration's host.
    pub fn launch_ms(&self, config: &HwConfig) -> f64 {
        self.programs as f64 * config.host.launch_us / 1e3
    }

    /// Milliseconds to bring the tensors to the accelerator's memory and back, by the same model.
    pub fn transfer_ms(&self, config: &HwConfig) -> f64 {
        Analytic { config }.transfer_us(self.device) / 1e3
    }
}

/// What an input takes on the configuration's target host beside the accelerator, all but `accel_ms` by the host's model;
/// none where a size is not known.
pub fn on_target(artifact: &Artifact, layers: &[Layer], config: &HwConfig, accel_ms: f64) -> Option<Frame> {
    let border = Border::of(artifact);
    let on_host = layers.iter().filter(|layer| layer.place == Place::Cpu && layer.step.is_some());
    let host_ns = on_host.map(|layer| layer.host_ns).sum::<Option<u64>>()?;
    Some(Frame {
        accel_ms,
        launch_ms: Analytic { config }.launch_ns() as f64 * border.programs as f64 / 1e6,
        host_ms: host_ns as f64 / 1e6,
        convert_ms: Analytic { config }.convert_us(border.dense) / 1e3,
        transfer_ms: border.transfer_ms(config),
    })
}

/// Milliseconds of the whole model on the target host of the configuration that the artifact was compiled for, by its model.
pub fn host_alone_ms(artifact: &Artifact) -> Option<f64> {
    let layers = crate::layers::layers(artifact, &[], None);
    let all = layers.iter().filter(|layer| layer.step.is_some()).map(|layer| layer.host_ns).sum::<Option<u64>>();
    all.map(|ns| ns as f64 / 1e6)
}
