//! Latency of one input from arrival to answer, divided into parts.

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
    /// Starting its programs and waiting for their ends.
    pub launch_ms: f64,
    /// In operators on the host, and in the call around them.
    pub host_ms: f64,
    /// Converting tensors to and from the accelerator's layout.
    pub convert_ms: f64,
    /// Moving tensors to and from the accelerator's memory.
    pub transfer_ms: f64,
}

impl Frame {
    /// The sum over all steps.
    pub fn of(steps: &[StepTime]) -> Frame {
        steps.iter().fold(Frame::default(), |sum, StepTime { frame, .. }| Frame {
            accel_ms: sum.accel_ms + frame.accel_ms,
            launch_ms: sum.launch_ms + frame.launch_ms,
            host_ms: sum.host_ms + frame.host_ms,
            convert_ms: sum.convert_ms + frame.convert_ms,
            transfer_ms: sum.transfer_ms + frame.transfer_ms,
        })
    }

    /// The sum of all parts.
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

/// Time of one step of an input.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepTime {
    /// Its parts.
    pub frame: Frame,
    /// Milliseconds of conversions and transfers before its program.
    pub before_ms: f64,
}

/// The segments of an input on host and accelerator, in order.
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

/// Bytes that cross the border between host and accelerator on one side of a program: of the plain tensors, and in the
/// device's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Border {
    dense: u64,
    device: u64,
}

impl Border {
    /// The borders before and after a program.
    fn sides(artifact: &Artifact, step: &Step, accel: &AccelStep) -> [Border; 2] {
        let bytes = |id: &ValueId| artifact.manifest.values[id.0 as usize].bytes() as u64;
        let program = &accel.program;
        [(&step.inputs, &program.inputs), (&step.outputs, &program.outputs)].map(|(values, bindings)| Border {
            dense: values.iter().map(bytes).sum(),
            device: bindings.iter().map(|binding| binding.bytes).sum(),
        })
    }
}

/// Times of a run with this machine as the host. Host and conversions are measured, the accelerator's time comes from
/// its cycles, launches and transfers from the model of the configuration's host. For a board (`is_board`), transfers
/// are the rest of a step's time after cycles and conversions. For a device without cycles, the accelerator's time is
/// measured on this machine.
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

/// Times of an input with the configuration's target host: the cycles of `report`, and everything else modeled. None if
/// a size or the cycles of a program are not known.
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

/// Converts cycles to milliseconds at the configuration's clock.
pub(super) fn ms_of(config: &HwConfig, cycles: u64) -> f64 {
    cycles as f64 / config.host.clock_mhz / 1e3
}

/// Modeled milliseconds of the whole model on the target host. The artifact must be compiled without an accelerator,
/// for the configuration with that host.
pub fn host_alone_ms(artifact: &Artifact) -> Option<f64> {
    let layers = crate::examine::layers::layers(artifact, &[], None);
    let all = layers.iter().filter(|layer| layer.step.is_some() && !layer.nodes.is_empty());
    let all = all.map(|layer| layer.host_ns).sum::<Option<u64>>();
    all.map(|ns| ns as f64 / 1e6)
}
