//! Measures accelerators: exact cycles from one run, and this machine's part of the work by timing.

use std::time::Instant;

use tilewright_driver::DriverError;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{Artifact, Place, StepKind};
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::{Frames, Pending, RunReport, Session, SessionError};
use tilewright_runtime::tensor::Tensor;

use super::frame::{self, StepTime};
use super::plain::Timed;
use super::stream::{How, IN_FLIGHT, Stream};
use super::{Asked, BenchError, BenchRequest, Column, Figures, Frame, LayerTime, Runs, Spread, plain};
use crate::device::{self, DeviceKind, Extras};
use crate::examine::layers::{self, Layer};
use crate::examine::trace;
use crate::model::Precision;

/// The column of a device on a configuration. If it cannot run, the column contains the reason.
pub(super) fn column(
    asked: &Asked,
    config: &HwConfig,
    artifact: Result<&Artifact, &str>,
    inputs: &[Tensor],
    request: &BenchRequest,
    (cpu, many): (&Figures, bool),
    told: &dyn Fn(&str),
) -> Result<Column, BenchError> {
    let name = if many { format!("{}@{}", asked.name, config.name) } else { asked.name.clone() };
    let figures = match (asked.kind.clone(), artifact) {
        (Err(reason), _) => Err(reason),
        (_, Err(reason)) => Err(reason.to_string()),
        (Ok(kind), Ok(artifact)) => {
            let programs = trace::programs(config, artifact)?;
            run(kind, config, artifact, inputs, request, told).map(|measured| {
                let layers = layers::layers(artifact, &programs, measured.one());
                figures(kind, config, artifact, measured, &layers, cpu)
            })
        }
    };
    Ok(Column { name, device: asked.name.clone(), hw: Some(config.clone()), figures })
}

/// Runs of a device.
struct Measured {
    /// A run with exact cycles per instruction.
    exact: Option<RunReport>,
    /// Measured runs.
    timed: Timed,
    /// Inputs that were computed at the same time.
    overlapped: Option<Stream>,
    outputs: Vec<Tensor>,
}

impl Measured {
    /// Any run, for what is the same in all of them.
    fn one(&self) -> Option<&RunReport> {
        self.exact.as_ref().or(self.timed.reports.first())
    }
}

/// Runs a device. Cycles do not depend on values and are the same in every run, so timed simulators run only once; the
/// time of this machine is measured with the functional simulator in their place.
fn run(
    kind: DeviceKind,
    config: &HwConfig,
    artifact: &Artifact,
    inputs: &[Tensor],
    request: &BenchRequest,
    told: &dyn Fn(&str),
) -> Result<Measured, String> {
    let session = |kind: DeviceKind, spans: bool| -> Result<Session, String> {
        let extras = Extras { spans, ..Extras::default() };
        let device = device::open(kind, config, extras, told).map_err(|e| e.to_string())?;
        Session::new(artifact.clone(), Registry::global(), device).map_err(|e| e.to_string())
    };
    let timed =
        |kind: DeviceKind| plain::timed(&mut session(kind, false)?, inputs, request.runs()).map_err(|e| e.to_string());
    if device::is_exact(kind).map_err(|e| e.to_string())? {
        let (outputs, exact) = session(kind, true)?.run(inputs).map_err(|e| e.to_string())?;
        return Ok(Measured { exact: Some(exact), timed: timed(DeviceKind::FSIM)?, overlapped: None, outputs });
    }
    let mut session = session(kind, false)?;
    let mut timed = plain::timed(&mut session, inputs, request.runs()).map_err(|e| e.to_string())?;
    // A simulator would share the processor with the host's part.
    let overlapped = match kind.port() {
        Some(_) => overlapped(&session, inputs, request.runs(), &timed.outputs)?,
        None => None,
    };
    Ok(Measured { exact: None, outputs: std::mem::take(&mut timed.outputs), timed, overlapped })
}

/// Computes inputs at the same time; none if the device's memory has no room for that.
fn overlapped(session: &Session, inputs: &[Tensor], runs: Runs, expected: &[Tensor]) -> Result<Option<Stream>, String> {
    let frames = match Frames::new(session, IN_FLIGHT) {
        Ok(frames) => frames,
        Err(SessionError::Accel { source: DriverError::DoesNotFit { .. }, .. }) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let compute = |count: usize| {
        let submitted = (0..count).map(|_| frames.submit(inputs.to_vec())).collect::<Result<Vec<_>, _>>()?;
        submitted.into_iter().map(Pending::wait).collect::<Result<Vec<_>, SessionError>>()
    };
    compute(runs.warm_up.min(IN_FLIGHT.get())).map_err(|e| e.to_string())?;
    let begun = Instant::now();
    let found = compute(runs.measured.max(1)).map_err(|e| e.to_string())?;
    let all_ms = begun.elapsed().as_secs_f64() * 1e3;
    if found.iter().any(|(outputs, _)| outputs != expected) {
        return Err("inputs that are computed at the same time give other outputs than one after another".into());
    }
    Ok(Stream::overlapped(found.len(), all_ms))
}

/// A measured run with the cycles of the exact one.
pub(crate) fn with_cycles(timed: &RunReport, exact: &RunReport) -> RunReport {
    let mut report = timed.clone();
    report.steps.iter_mut().zip(&exact.steps).for_each(|(step, exact)| step.cycles = exact.cycles);
    report
}

/// The steps of every measured run, with exact cycles, plus the time of each call outside its steps.
fn ways(is_board: bool, config: &HwConfig, artifact: &Artifact, measured: &Measured) -> Vec<Vec<StepTime>> {
    let runs = measured.timed.reports.iter().zip(&measured.timed.calls_ms);
    let way = |(report, call_ms): (&RunReport, &f64)| {
        let report = measured.exact.as_ref().map_or(report.clone(), |exact| with_cycles(report, exact));
        let mut steps = frame::here(artifact, config, &report, is_board);
        let host_ms = (call_ms - report.wall_s() * 1e3).max(0.0);
        steps.push(StepTime { frame: Frame { host_ms, ..Frame::default() }, before_ms: 0.0 });
        steps
    };
    runs.map(way).collect()
}

fn figures(
    kind: DeviceKind,
    config: &HwConfig,
    artifact: &Artifact,
    measured: Measured,
    layers: &[Layer],
    cpu: &Figures,
) -> Figures {
    let first = measured.one();
    let is_board = kind.port().is_some();
    let ways = ways(is_board, config, artifact, &measured);
    let on_target = frame::on_target(artifact, layers, config, first);
    let Measured { exact, timed, overlapped, outputs } = &measured;
    let Timed { reports, stream, .. } = timed;
    let programs = artifact.manifest.steps.iter().filter(|step| matches!(step.kind, StepKind::Accel(_))).count();
    let cycles = first.and_then(RunReport::cycles);
    let simulated = cycles.is_none() && programs > 0;
    let ms_of = |cycles: u64| frame::ms_of(config, cycles);
    let frames: Vec<Frame> = ways.iter().map(|steps| Frame::of(steps)).collect();
    let median = |part: fn(&Frame) -> f64| Spread::of(frames.iter().map(part).collect()).median;
    let frame = Frame {
        accel_ms: median(|f| f.accel_ms),
        launch_ms: median(|f| f.launch_ms),
        host_ms: median(|f| f.host_ms),
        convert_ms: median(|f| f.convert_ms),
        transfer_ms: median(|f| f.transfer_ms),
    };
    let replay = |ways: &[Vec<StepTime>], how: How| {
        Stream::replayed(&ways.iter().map(|steps| frame::segments(steps)).collect::<Vec<_>>(), how)
    };
    let steps = || first.into_iter().flat_map(|report| &report.steps).filter(|step| step.place == Place::Accel);
    let bytes = steps().map(|step| step.bytes).try_fold((0, 0), |sum, b| b.map(|b| (sum.0 + b.0, sum.1 + b.1)));
    let bytes = bytes.filter(|_| programs > 0);
    let array_macs = steps().map(|step| step.macs).sum();
    let energy = config.energy.as_ref().zip(cycles).zip(bytes);
    let macs = artifact.manifest.offloaded_macs();
    let wall = |report: &RunReport| report.wall_s() * 1e3;
    Figures {
        latency_ms: Spread::of(frames.iter().map(Frame::latency_ms).collect()),
        frame,
        // An untimed simulator uses the host's threads, so the host could not work in parallel with it.
        stream: if simulated { *stream } else { overlapped.or_else(|| replay(&ways, How::Replayed)) },
        simulated,
        is_board,
        on_target: on_target.as_deref().map(Frame::of),
        stream_on_target: on_target.and_then(|steps| replay(&[steps], How::Modeled)),
        cycles,
        utilization: cycles
            .filter(|cycles| *cycles > 0 && macs > 0)
            .map(|cycles| macs as f64 / (cycles * config.macs_per_cycle()) as f64),
        array_macs,
        offloaded: artifact.manifest.offloaded_share(),
        bytes,
        energy_mj: energy.map(|((energy, cycles), b)| energy.millijoules(array_macs, b.0 + b.1, ms_of(cycles))),
        wall_ms: Spread::of(exact.as_ref().map_or_else(|| reports.iter().map(wall).collect(), |run| vec![wall(run)])),
        layers: layers
            .iter()
            .map(|layer| match layer.accel {
                Some(accel) => LayerTime {
                    latency_ms: accel.cycles.map(|cycles| Spread::exactly(ms_of(cycles))),
                    cycles: accel.cycles,
                    utilization: layer.utilization(config.macs_per_cycle()),
                    bytes: Some((accel.read, accel.written)),
                    ..plain::untimed(artifact, layer)
                },
                None if layer.place == Place::Accel => {
                    // A view of another tensor: there is nothing to compute.
                    LayerTime { latency_ms: cycles.map(|_| Spread::default()), ..plain::untimed(artifact, layer) }
                }
                None => plain::on_host(artifact, layers, layer, reports),
            })
            .collect(),
        agrees: super::agree::agree(outputs, &cpu.outputs, Precision::F32),
        outputs: outputs.clone(),
    }
}
