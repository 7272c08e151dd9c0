//! Times this machine's CPU.

use std::time::Instant;

use tilewright_runtime::artifact::Artifact;
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::{RunReport, Session, SessionError};
use tilewright_runtime::tensor::Tensor;

use super::{BenchRequest, Figures, Frame, LayerTime, Runs, Spread, Stream};
use crate::examine::layers::{self, Layer};

/// Runs the whole model on the host.
pub(super) fn processor(artifact: &Artifact, inputs: &[Tensor], request: &BenchRequest) -> Result<Figures, String> {
    let mut session = Session::new(artifact.clone(), Registry::global(), None).map_err(|e| e.to_string())?;
    let Timed { outputs, reports, calls_ms, stream } =
        timed(&mut session, inputs, request.runs()).map_err(|e| e.to_string())?;
    let layers = layers::layers(artifact, &[], None);
    let wall_ms = Spread::of(calls_ms);
    Ok(Figures {
        latency_ms: wall_ms,
        frame: Frame { host_ms: wall_ms.median, ..Frame::default() },
        stream,
        simulated: false,
        is_board: false,
        on_target: None,
        stream_on_target: None,
        cycles: None,
        utilization: None,
        array_macs: 0,
        offloaded: Some(0.0),
        bytes: None,
        energy_mj: None,
        wall_ms,
        layers: layers.iter().map(|layer| on_host(artifact, &layers, layer, &reports)).collect(),
        outputs,
        agrees: true,
    })
}

/// Measured runs.
pub(crate) struct Timed {
    pub outputs: Vec<Tensor>,
    /// Times of each step.
    pub reports: Vec<RunReport>,
    /// Milliseconds from each call to its return.
    pub calls_ms: Vec<f64>,
    /// Throughput of all runs, one after another.
    pub stream: Option<Stream>,
}

/// Warms up, then runs and measures.
///
/// # Errors
/// Errors of the session.
pub(crate) fn timed(session: &mut Session, inputs: &[Tensor], runs: Runs) -> Result<Timed, SessionError> {
    let mut timed = Timed { outputs: Vec::new(), reports: Vec::new(), calls_ms: Vec::new(), stream: None };
    for _ in 0..runs.warm_up {
        session.run(inputs)?;
    }
    let runs = runs.measured.max(1);
    let begun = Instant::now();
    for _ in 0..runs {
        let started = Instant::now();
        let (outputs, report) = session.run(inputs)?;
        timed.calls_ms.push(started.elapsed().as_secs_f64() * 1e3);
        timed.outputs = outputs;
        timed.reports.push(report);
    }
    timed.stream = Stream::measured(runs, begun.elapsed().as_secs_f64() * 1e3);
    Ok(timed)
}

/// Milliseconds of a layer on the CPU or a GPU: its share of its step.
pub(crate) fn time_on_host(all: &[Layer], layer: &Layer, reports: &[RunReport]) -> Spread {
    let Some(step) = layer.step else { return Spread::default() };
    let share = layer.share(all);
    Spread::of(reports.iter().filter_map(|report| Some(report.steps.get(step)?.wall_s * 1e3 * share)).collect())
}

/// Figures of a layer that the CPU or a GPU computed.
pub(super) fn on_host(artifact: &Artifact, all: &[Layer], layer: &Layer, reports: &[RunReport]) -> LayerTime {
    LayerTime { latency_ms: Some(time_on_host(all, layer, reports)), ..untimed(artifact, layer) }
}

/// A layer without figures of a run.
pub(super) fn untimed(artifact: &Artifact, layer: &Layer) -> LayerTime {
    LayerTime {
        name: layer.name.clone(),
        ops: layer.operators(),
        nodes: layer.nodes.iter().map(|node| artifact.manifest.nodes[*node].name.clone()).collect(),
        place: layer.place,
        latency_ms: None,
        host_ms: layer.host_ns.map(|ns| ns as f64 / 1e6),
        macs: layer.macs,
        cycles: None,
        utilization: None,
        bytes: None,
    }
}
