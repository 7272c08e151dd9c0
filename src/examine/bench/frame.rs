//! What one input takes from its arrival to its answer, in parts that are told apart.

use tilewright_compiler::cost::{Analytic, CostOracle};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{AccelStep, Artifact, Place, Step, StepKind, ValueId};
use tilewright_runtime::session::RunReport;

use super::stream::{On, Segment};
use crate::examine::layers::Layer;

/// Milliseconds of one input, part by part.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Frame {
    /// In the accelerator.
    pub accel_ms: f64,
    /// Starting its programs and seeing their ends.
    pub launch_ms: f64,
    /// In operators that the host computes, and in the call around them.
    pub host_ms: f64,
    /// Turning tensors into the accelerator's layout and back.
    pub convert_ms: f64,
    /// Bringing tensors to the accelerator's memory and back.
    pub transfer_ms: f64,
}

impl Frame {
    /// Of all steps together.
    pub fn of(steps: &[StepTime]) -> Frame {
        steps.iter().fold(Frame::default(), |sum, StepTime { frame, .. }| Frame {
            accel_ms: sum.accel_ms + frame.accel_ms,
            launch_ms: sum.launch_ms + frame.launch_ms,
            host_ms: sum.host_ms + frame.host_ms,
            convert_ms: sum.convert_ms + frame.convert_ms,
            transfer_ms: sum.transfer_ms + frame.transfer_ms,
        })
    }

    /// All parts one after the other.
    pub fn latency_ms(&self) -> f64 {
        self.on_host_ms() + self.on_accel_ms()
    }

    fn on_host_ms(&self) -> f64 {
        self.host_ms + self.convert_ms + self.transfer_ms
    }

    fn on_accel_ms(&self) -> f64 {
        self.accel_ms + self.launch_ms
    }
}

/// A step of an input's way.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepTime {
    /// What it takes.
    pub frame: Frame,
    /// Milliseconds of its conversions and transfers that lie before its program.
    pub before_ms: f64,
}

/// The way of an input in the order in which it goes.
pub fn segments(steps: &[StepTime]) -> Vec<Segment> {
    let mut way = Vec::new();
    for StepTime { frame, before_ms } in steps {
        way.push(Segment { on: On::Host, ms: *before_ms });
        way.push(Segment { on: On::Accel, ms: frame.on_accel_ms() });
        way.push(Segment { on: On::Host, ms: frame.on_host_ms() - before_ms });
    }
    way.retain(|part| part.ms > 0.0);
    way
}

/// Bytes that cross the border between host and accelerator on one side of a program: of the tensors, and as they lie in
/// device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Border {
    dense: u64,
    device: u64,
}

impl Border {
    /// Before a program and behind it.
    fn sides(artifact: &Artifact, step: &Step, accel: &AccelStep) -> [Border; 2] {
        let bytes = |id: &ValueId| artifact.manifest.values[id.0 as usize].bytes() as u64;
        let program = &accel.program;
        [(&step.inputs, &program.inputs), (&step.outputs, &program.outputs)].map(|(values, bindings)| Border {
            dense: values.iter().map(bytes).sum(),
            device: bindings.iter().map(|binding| binding.bytes).sum(),
        })
    }
}

/// What a run took on this machine beside its accelerator: host and conversions as they were measured, the accelerator by its
/// cycles, launches and transfers by the model of the configuration's host. Of a board, `is_board`, transfers are what its
/// steps took beside cycles and conversions; a device without cycles has its time on this machine's clock.
pub fn here(artifact: &Artifact, config: &HwConfig, report: &RunReport, is_board: bool) -> Vec<StepTime> {
    let mut times = Vec::new();
    for (step, taken) in artifact.manifest.steps.iter().zip(&report.steps) {
        let StepKind::Accel(accel) = &step.kind else {
            times.push(StepTime { frame: Frame { host_ms: taken.wall_s * 1e3, ..Frame::default() }, before_ms: 0.0 });
            continue;
        };
        let [into, back] = Border::sides(artifact, step, accel);
        let [convert_ms, back_ms] = [taken.convert_s, taken.convert_back_s].map(|s| s * 1e3);
        let rest_ms = taken.wall_s * 1e3 - convert_ms;
        let accel_ms = taken.cycles.map_or(rest_ms, |cycles| ms_of(config, cycles));
        let (launch_ms, transfer_ms) = match taken.cycles {
            None => (0.0, 0.0),
            Some(_) if is_board => (0.0, (rest_ms - accel_ms).max(0.0)),
            Some(_) => (config.host.launch_us / 1e3, Analytic { config }.transfer_us(into.device + back.device) / 1e3),
        };
        let share = into.device as f64 / (into.device + back.device).max(1) as f64;
        let frame = Frame { accel_ms, launch_ms, host_ms: 0.0, convert_ms, transfer_ms };
        times.push(StepTime { frame, before_ms: convert_ms - back_ms + share * transfer_ms });
    }
    times
}

/// What an input takes on the configuration's target host beside the accelerator, all but the cycles of `report` by the host's
/// model; none where a size or the cycles of a program are not known.
pub fn on_target(
    artifact: &Artifact,
    layers: &[Layer],
    config: &HwConfig,
    report: Option<&RunReport>,
) -> Option<Vec<StepTime>> {
    let model = Analytic { config };
    let time = |(number, step): (usize, &Step)| {
        let StepKind::Accel(accel) = &step.kind else {
            let of_step = layers.iter().filter(|layer| layer.place == Place::Cpu && layer.step == Some(number));
            let of_step = of_step.filter(|layer| !layer.nodes.is_empty());
            let ns = of_step.map(|layer| layer.host_ns).sum::<Option<u64>>()?;
            return Some(StepTime { frame: Frame { host_ms: ns as f64 / 1e6, ..Frame::default() }, before_ms: 0.0 });
        };
        let sides = Border::sides(artifact, step, accel);
        let [convert_ms, back_ms] = sides.map(|side| model.convert_us(side.dense) / 1e3);
        let [transfer_ms, fetch_ms] = sides.map(|side| model.transfer_us(side.device) / 1e3);
        let frame = Frame {
            accel_ms: ms_of(config, report?.steps.get(number)?.cycles?),
            launch_ms: model.launch_ns() as f64 / 1e6,
            host_ms: 0.0,
            convert_ms: convert_ms + back_ms,
            transfer_ms: transfer_ms + fetch_ms,
        };
        Some(StepTime { frame, before_ms: convert_ms + transfer_ms })
    };
    artifact.manifest.steps.iter().enumerate().map(time).collect()
}

/// Milliseconds of cycles at the configuration's clock.
pub(super) fn ms_of(config: &HwConfig, cycles: u64) -> f64 {
    cycles as f64 / config.host.clock_mhz / 1e3
}

/// Milliseconds of the whole model on the target host of the configuration that the artifact was compiled for, by its model;
/// the artifact is one without an accelerator.
pub fn host_alone_ms(artifact: &Artifact) -> Option<f64> {
    let layers = crate::examine::layers::layers(artifact, &[], None);
    let all = layers.iter().filter(|layer| layer.step.is_some() && !layer.nodes.is_empty());
    let all = all.map(|layer| layer.host_ns).sum::<Option<u64>>();
    all.map(|ns| ns as f64 / 1e6)
}
