//! Profiles a run, as data and as one offline HTML page: where each node runs, the time of each layer, when each unit
//! works or waits and why, the use of scratchpads, and the memory traffic of each tensor.

pub mod compare;
mod json;
mod network;
mod occupancy;
pub mod page;
mod perfetto;
mod timeline;
mod traffic;

use tilewright_compiler::graph::Graph;
use tilewright_driver::trace::Stream;
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::DeviceError;
use tilewright_hw::isa::Insn;
use tilewright_runtime::artifact::{Artifact, StepKind};
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::{RunReport, Session, SessionError, StepReport};
use tilewright_runtime::tensor::Tensor;

pub use network::{Network, Node};
pub use occupancy::Occupancy;
pub use perfetto::perfetto;
pub use timeline::{Timeline, UnitRow};
pub use traffic::Moved;

use crate::device::{self, DeviceKind, Extras};
use crate::examine::bench::{self, Frame, How, Runs, Spread, StepTime};
use crate::examine::layers::{Layer, layers};
use crate::examine::trace::{self, UnknownInsn};
use crate::model::plans::Tuned;
use crate::model::{self, ModelError, Offload};

/// What to profile, and how.
#[derive(Debug, Clone, Copy)]
pub struct ProfileRequest<'a> {
    /// The accelerator.
    pub config: &'a HwConfig,
    /// A device with exact cycles: the cycle model or the RTL.
    pub device: DeviceKind,
    /// What the accelerator computes.
    pub offload: Offload,
    /// Optimization level, 0 to 3.
    pub level: u8,
    /// Warm-up and measured runs on this machine.
    pub runs: Runs,
    /// File for the design's signals.
    pub waves: Option<&'a std::path::Path>,
    /// Which plans of layers that were found earlier to use.
    pub tuned: &'a Tuned,
}

/// Why a profile could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The model does not compile.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A compiled program contains an instruction that its configuration does not support.
    #[error(transparent)]
    Program(#[from] UnknownInsn),
    /// The device cannot be opened.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The run failed.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// Result of profiling.
#[derive(Debug)]
pub struct Profile {
    /// The compiled model.
    pub artifact: Artifact,
    /// The programs of its steps.
    pub programs: Vec<Vec<Insn>>,
    /// The run with exact cycles.
    pub report: RunReport,
    /// Measured runs on this machine, with that run's cycles.
    pub timed: Vec<RunReport>,
    /// Number of warm-up and measured runs.
    pub runs: Runs,
    /// Its layers.
    pub layers: Vec<Layer>,
    /// The model's nodes and what they read.
    pub network: Network,
    /// When each unit works and waits.
    pub timeline: Timeline,
    /// Use of the scratchpads over time.
    pub occupancy: Occupancy,
    /// Memory traffic of each tensor.
    pub traffic: Vec<Moved>,
    /// Latency of one input with this machine's CPU as the host, by the medians of its steps; and throughput of a
    /// stream of inputs.
    pub frame: (Frame, Option<bench::Stream>),
    /// The same with the configuration's target host.
    pub on_target: Option<(Frame, Option<bench::Stream>)>,
    /// Modeled milliseconds of the target host without an accelerator.
    pub host_alone_ms: Option<f64>,
}

/// Number of steps that [`profile`] reports as progress.
pub const PIECES: usize = 4;

/// Profiles a model: compiles it, runs it once for exact cycles, and several times with the functional simulator to
/// time this machine. `told` receives the current activity and how many of the [`PIECES`] are done.
///
/// # Errors
/// [`ProfileError`].
pub fn profile(
    graph: &Graph,
    inputs: &[Tensor],
    request: &ProfileRequest,
    told: &dyn Fn(&str, usize),
) -> Result<Profile, ProfileError> {
    let config = request.config;
    told("compiling", 0);
    let records = request.tuned.load(config, None)?;
    let (offload, level, records) = (request.offload, request.level, records.get());
    let options = model::Options { offload, level, records, ..model::Options::new(config) };
    let built = model::build_traced(graph.clone(), &options, &mut |_, _| {})?;
    let artifact = built.artifact;
    let host_alone_ms = match request.offload {
        Offload::None => bench::host_alone_ms(&artifact),
        _ => {
            let alone = model::Options { offload: Offload::None, ..options };
            bench::host_alone_ms(&model::build(graph.clone(), &alone, &mut |_, _| {})?)
        }
    };
    let programs = trace::programs(config, &artifact)?;
    told("running", 1);
    let extras = Extras { spans: true, waves: request.waves, ..Extras::default() };
    let device =
        device::open(request.device, config, extras, &|what| told(if what.is_empty() { "running" } else { what }, 1))?;
    let mut session = Session::new(artifact.clone(), Registry::global(), device)?;
    let (_, report) = session.run(inputs)?;
    drop(session);
    told("timing this machine", 2);
    let in_its_place = device::open(DeviceKind::FSIM, config, Extras::default(), &|_| {})?;
    let mut session = Session::new(artifact.clone(), Registry::global(), in_its_place)?;
    let timed = bench::timed(&mut session, inputs, request.runs)?;
    drop(session);
    let timed: Vec<RunReport> = timed.reports.iter().map(|run| bench::with_cycles(run, &report)).collect();
    told("looking at the run", 3);
    let layers = layers(&artifact, &programs, Some(&report));
    let network = Network::of(&built.graph, &built.nodes, &artifact, &layers);
    let timeline = Timeline::of(&artifact, &programs, &report);
    let occupancy = occupancies(config, &artifact, &report);
    let traffic = traffic::tensors(&artifact, &programs, &report);
    let here = |run: &RunReport| bench::here(&artifact, config, run, false);
    let on_target = bench::on_target(&artifact, &layers, config, Some(&report));
    let replay = |ways: &[Vec<StepTime>], how| {
        bench::Stream::replayed(&ways.iter().map(|steps| bench::segments(steps)).collect::<Vec<_>>(), how)
    };
    let ways: Vec<Vec<StepTime>> = timed.iter().map(here).collect();
    let frame = (Frame::of(&here(&middle(&timed))), replay(&ways, How::Replayed));
    let on_target = on_target.map(|steps| (Frame::of(&steps), replay(&[steps], How::Modeled)));
    Ok(Profile {
        artifact,
        programs,
        report,
        timed,
        runs: request.runs,
        layers,
        network,
        timeline,
        occupancy,
        traffic,
        frame,
        on_target,
        host_alone_ms,
    })
}

/// A run in which each step has the median time of several runs.
fn middle(runs: &[RunReport]) -> RunReport {
    let mut run = runs.first().cloned().unwrap_or_default();
    for (number, step) in run.steps.iter_mut().enumerate() {
        let median =
            |part: fn(&StepReport) -> f64| Spread::of(runs.iter().map(|run| part(&run.steps[number])).collect()).median;
        step.wall_s = median(|step| step.wall_s);
        step.convert_s = median(|step| step.convert_s);
        step.convert_back_s = median(|step| step.convert_back_s);
    }
    run
}

/// Use of the scratchpads while the programs run, one after another.
fn occupancies(config: &HwConfig, artifact: &Artifact, report: &RunReport) -> Occupancy {
    let mut occupancy = occupancy::Events::new(config);
    for (step, taken) in artifact.manifest.steps.iter().zip(&report.steps) {
        let (StepKind::Accel(accel), Some(cycles)) = (&step.kind, taken.cycles) else { continue };
        let mut program = accel.program.clone();
        program.stream = artifact.blob(accel.stream).to_vec();
        program.constants = artifact.blob(accel.constants).to_vec();
        if let Ok(stream) = Stream::new(&program, config) {
            occupancy.command(&stream, &taken.spans, cycles);
        }
    }
    occupancy.sampled()
}
