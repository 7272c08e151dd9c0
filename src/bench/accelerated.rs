//! Accelerators: exact cycles at the configuration's clock from one run, and this machine's share of the work measured.

use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{Artifact, Place};
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::{RunReport, Session};
use tilewright_runtime::tensor::Tensor;

use super::frame::{self, Border};
use super::{Asked, BenchError, Column, Figures, Frame, LayerTime, Request, Spread, plain};
use crate::devices::{self, DeviceKind, Extras};
use crate::layers::{self, Layer};
use crate::trace;

/// A device on a configuration. What keeps it from running is told in its place of the table.
pub(super) fn column(
    asked: &Asked,
    config: &HwConfig,
    artifact: &Artifact,
    inputs: &[Tensor],
    request: &Request,
    (cpu, many): (&Figures, bool),
) -> Result<Column, BenchError> {
    let name = if many { format!("{}@{}", asked.name, config.name) } else { asked.name.clone() };
    let programs = trace::programs(config, artifact)?;
    let figures = asked.kind.clone().and_then(|kind| {
        let measured = run(kind, config, artifact, inputs, request)?;
        let layers = layers::layers(artifact, &programs, measured.exact.as_ref().or(measured.reports.first()));
        Ok(figures(kind, config, artifact, measured, &layers, cpu))
    });
    Ok(Column { name, device: asked.name.clone(), hw: Some(config.clone()), figures })
}

/// What was run.
struct Measured {
    /// A run with cycles, instruction by instruction.
    exact: Option<RunReport>,
    /// Runs whose seconds count.
    reports: Vec<RunReport>,
    outputs: Vec<Tensor>,
}

/// Cycles depend on no value and are the same in every run, so that simulators of time run once; what this machine does is
/// timed with the functional simulator in their place.
fn run(
    kind: DeviceKind,
    config: &HwConfig,
    artifact: &Artifact,
    inputs: &[Tensor],
    request: &Request,
) -> Result<Measured, String> {
    let session = |kind: DeviceKind, spans: bool| -> Result<Session, String> {
        let extras = Extras { spans, ..Extras::default() };
        let device = devices::open(kind, config, extras, &|_| {}).map_err(|e| e.to_string())?;
        Session::new(artifact.clone(), &Registry::new(), device).map_err(|e| e.to_string())
    };
    let timed = |kind: DeviceKind| plain::timed(&mut session(kind, false)?, inputs, request);
    match kind {
        DeviceKind::Csim | DeviceKind::Rtl => {
            let (outputs, exact) = session(kind, true)?.run(inputs).map_err(|e| e.to_string())?;
            let reports = timed(DeviceKind::Fsim)?.reports;
            Ok(Measured { exact: Some(exact), reports, outputs })
        }
        _ => {
            let plain::Timed { outputs, reports, .. } = timed(kind)?;
            Ok(Measured { exact: None, reports, outputs })
        }
    }
}

fn figures(
    kind: DeviceKind,
    config: &HwConfig,
    artifact: &Artifact,
    measured: Measured,
    layers: &[Layer],
    cpu: &Figures,
) -> Figures {
    let Measured { exact, reports, outputs } = measured;
    let border = Border::of(artifact);
    let first = exact.as_ref().or(reports.first());
    let cycles = first.and_then(RunReport::cycles);
    let ms_of = |cycles: u64| cycles as f64 / config.host.clock_mhz / 1e3;
    let of_places = |report: &RunReport, place: Place| -> (f64, f64) {
        let steps = report.steps.iter().filter(|step| step.place == place);
        steps.fold((0.0, 0.0), |sum, step| (sum.0 + step.wall_s * 1e3, sum.1 + step.convert_s * 1e3))
    };
    // Without a clock of its own a device's time is this machine's; a board's is what is left beside its cycles.
    let frames: Vec<Frame> = reports
        .iter()
        .map(|report| {
            let ((host_ms, _), (wall, convert_ms)) = (of_places(report, Place::Cpu), of_places(report, Place::Accel));
            let accel_ms = cycles.map_or(wall - convert_ms, ms_of);
            let frame = Frame { accel_ms, host_ms, convert_ms, ..Frame::default() };
            match kind {
                DeviceKind::Board(_) if cycles.is_some() => {
                    Frame { transfer_ms: (wall - convert_ms - accel_ms).max(0.0), ..frame }
                }
                _ if cycles.is_some() => {
                    Frame { launch_ms: border.launch_ms(config), transfer_ms: border.transfer_ms(config), ..frame }
                }
                _ => frame,
            }
        })
        .collect();
    let median = |part: fn(&Frame) -> f64| Spread::of(frames.iter().map(part).collect()).median;
    let frame = Frame {
        accel_ms: median(|f| f.accel_ms),
        launch_ms: median(|f| f.launch_ms),
        host_ms: median(|f| f.host_ms),
        convert_ms: median(|f| f.convert_ms),
        transfer_ms: median(|f| f.transfer_ms),
    };
    let steps = || first.into_iter().flat_map(|report| &report.steps).filter(|step| step.place == Place::Accel);
    let bytes = steps().map(|step| step.bytes).try_fold((0, 0), |sum, b| b.map(|b| (sum.0 + b.0, sum.1 + b.1)));
    let bytes = bytes.filter(|_| border.programs > 0);
    let array_macs = steps().map(|step| step.macs).sum();
    let energy = config.energy.as_ref().zip(cycles).zip(bytes);
    let macs = artifact.manifest.offloaded_macs();
    let wall = |report: &RunReport| report.wall_s() * 1e3;
    Figures {
        latency_ms: Spread::of(frames.iter().map(Frame::latency_ms).collect()),
        frame,
        simulated: cycles.is_none() && border.programs > 0,
        on_target: cycles
            .or((border.programs == 0).then_some(0))
            .and_then(|cycles| frame::on_target(artifact, layers, config, ms_of(cycles))),
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
                    // A view of another tensor: nothing is left to do.
                    LayerTime { latency_ms: cycles.map(|_| Spread::default()), ..plain::untimed(artifact, layer) }
                }
                None => plain::on_host(artifact, layers, layer, &reports),
            })
            .collect(),
        agrees: super::agree(&outputs, &cpu.outputs),
        outputs,
    }
}
