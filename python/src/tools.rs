//! What the commands `tune`, `schedule --of`, `zoo`, `synth` and `inspect --targets` do. Functions return JSON text, as
//! those of `examine.rs`.

#[cfg(feature = "llvm")]
use std::path::Path;
use std::path::PathBuf;
#[cfg(feature = "llvm")]
use std::process::Command;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;
use tilewright::device::DeviceKind;
use tilewright::flow::{netlist_check, synth as shells};
use tilewright::message::in_one_line;
use tilewright::model::tuned::{self as tuning, TuneRequest};
use tilewright::model::{CompileRequest, Options, shapes, zoo as networks};
use tilewright::targets::Targets;
use tilewright_compiler::graph::Graph;
use tilewright_hw::flow::board::{Board, legal_mhz};
use tilewright_hw::flow::{FlowError, FlowRequest, steps, synthesize};
use tilewright_runtime::{Artifact, files};

use crate::compile::{OFFLOAD, Source, level, tuned, word};
use crate::config;
use crate::error::Class;
use crate::examine::{Telling, failed};
use crate::interrupt::detached;

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct TuneOptions<'py> {
    hw: Option<Bound<'py, PyAny>>,
    device: String,
    log: PathBuf,
    trials: Option<usize>,
    seconds: Option<f64>,
    seed: u64,
    opt_level: u8,
    layer: Option<String>,
    threads: Option<usize>,
    tuned: Option<PathBuf>,
    bind: Option<Bound<'py, PyDict>>,
    shape: Option<Bound<'py, PyDict>>,
    packed: Vec<String>,
    progress: Option<Py<PyAny>>,
}

/// `tilewright.tune`.
#[pyfunction]
#[pyo3(name = "_tune")]
pub fn tune(model: &Bound<'_, PyAny>, options: &Bound<'_, PyAny>) -> PyResult<(String, String)> {
    let py = model.py();
    let own: TuneOptions = options.extract()?;
    let invalid = |text: &str| Class::Input.err(py, text);
    let time = match own.seconds.map(Duration::try_from_secs_f64) {
        None => None,
        Some(Ok(time)) if !time.is_zero() => Some(time),
        Some(_) => return Err(invalid("seconds is not a time; give a number above 0")),
    };
    if own.trials.is_none() && time.is_none() {
        return Err(invalid("give the number of trials, the seconds of the search, or both"));
    }
    if !(2..=3).contains(&own.opt_level) {
        return Err(invalid("tune works at opt_level=2 or 3, where plans are used"));
    }
    let source = Source::of(model, own.bind.as_ref(), own.shape.as_ref(), None, own.packed)?;
    let config = config::of_argument(py, own.hw.as_ref())?;
    let records = tuned(py, own.tuned)?.load(&config, None).map_err(|error| failed(py, error.into()))?;
    let threads = own.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let request = TuneRequest {
        options: Options { level: own.opt_level, records: records.get(), ..Options::new(&config) },
        log: &own.log,
        seed: own.seed,
        threads,
        trials: own.trials,
        time,
        layer: own.layer.as_deref(),
    };
    let on_cpu = word(py, "device", &own.device, &[("csim", false), ("cpu", true)])?;
    let measurer = if on_cpu { Some(Measurer::new(py)?) } else { None };
    let telling = Telling::new(own.progress.as_ref());
    let outcome = detached(py, || -> anyhow::Result<_> {
        let graph = source.graph(&[])?;
        let all = own.trials.unwrap_or_default();
        if let Some(measurer) = &measurer {
            return measurer
                .tune(graph, &request, &source.name(), &|n| telling.tell("trials on the CPU", n, all.max(n)));
        }
        let found = tuning::tune(graph, &request, &mut |p| {
            telling.tell(&format!("{} cycles", p.best), p.trials, all.max(p.trials));
        })?;
        Ok((found.json().to_string(), found.text(&source.name(), &own.log)))
    })?;
    telling.finish(py, outcome)
}

/// Measures code of the CPU in processes of their own, which load this library alone.
#[cfg_attr(not(feature = "llvm"), expect(dead_code, reason = "there is no code of the CPU to measure"))]
struct Measurer {
    python: String,
    library: String,
}

/// Loads the library at the first path, and prints the nanoseconds of the artifact at the second.
#[cfg_attr(not(feature = "llvm"), expect(dead_code, reason = "there is no code of the CPU to measure"))]
const MEASURE: &str = "\
import importlib.util, sys
spec = importlib.util.spec_from_file_location('tilewright._native', sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module._measure(sys.argv[2]))
";

impl Measurer {
    fn new(py: Python<'_>) -> PyResult<Measurer> {
        let python: Option<String> = py.import("sys")?.getattr("executable")?.extract()?;
        let found = python.filter(|python| !python.is_empty());
        let none = "device=\"cpu\" measures in processes of Python, but sys.executable does not name it; set it";
        let python = found.ok_or_else(|| Class::Input.err(py, none))?;
        Ok(Measurer { python, library: py.import("tilewright._native")?.getattr("__file__")?.extract()? })
    }

    #[cfg(feature = "llvm")]
    fn tune(
        &self,
        graph: Graph,
        request: &TuneRequest,
        model: &str,
        told: &dyn Fn(usize),
    ) -> anyhow::Result<(String, String)> {
        let mut measure = |artifact: &Path| {
            let mut program = Command::new(&self.python);
            program.args(["-c", MEASURE, &self.library]).arg(artifact);
            tuning::cpu::measured_by(program)
        };
        let found = tuning::cpu::tune_cpu(graph, request, &mut measure, &mut |n| told(n))?;
        Ok((found.json().to_string(), found.text(model, request.log)))
    }

    #[cfg(not(feature = "llvm"))]
    fn tune(&self, _: Graph, _: &TuneRequest, _: &str, _: &dyn Fn(usize)) -> anyhow::Result<(String, String)> {
        anyhow::bail!(
            "this package was built without LLVM, so it makes no code for the CPU; build it with the feature `llvm`"
        )
    }
}

/// The median nanoseconds of an artifact's steps. `tune` calls it in processes of their own.
#[pyfunction]
#[pyo3(name = "_measure")]
pub fn measure(py: Python<'_>, path: PathBuf) -> PyResult<u64> {
    let artifact = Artifact::read(&path).map_err(|error| Class::Artifact.of_error(py, error))?;
    measured(artifact).map_err(|error| failed(py, error))
}

#[cfg(feature = "llvm")]
fn measured(artifact: Artifact) -> anyhow::Result<u64> {
    Ok(tuning::cpu::measured_ns(artifact)?)
}

#[cfg(not(feature = "llvm"))]
fn measured(artifact: Artifact) -> anyhow::Result<u64> {
    anyhow::bail!("{}: this package was built without LLVM; build it with the feature `llvm`", artifact.path)
}

/// The schedules of a model's layers on the accelerator, as `tilewright schedule --of` writes them: the layer's name, the
/// name of its file, and its text.
#[pyfunction]
#[pyo3(name = "_schedules", signature = (model, hw, offload, opt_level, bind, shape, packed))]
#[allow(clippy::too_many_arguments, reason = "options by name in Python")]
pub fn schedules(
    model: &Bound<'_, PyAny>,
    hw: Option<&Bound<'_, PyAny>>,
    offload: &str,
    opt_level: u8,
    bind: Option<&Bound<'_, PyDict>>,
    shape: Option<&Bound<'_, PyDict>>,
    packed: Vec<String>,
) -> PyResult<Vec<(String, String, String)>> {
    let py = model.py();
    let source = Source::of(model, bind, shape, None, packed)?;
    let config = config::of_argument(py, hw)?;
    let offload = Some(word(py, "offload", offload, OFFLOAD)?);
    let request = CompileRequest { offload, level: level(py, opt_level)?, ..CompileRequest::default() };
    let outcome = detached(py, || source.compile(&request, (&config, DeviceKind::FSIM), &[], &mut |_, _| {}))?;
    let all = outcome.map_err(|error| failed(py, error))?.schedules;
    Ok(all
        .into_iter()
        .map(|schedule| (schedule.layer, format!("{}.te", schedule.stem), schedule.file.to_string()))
        .collect())
}

/// The networks of the zoo, as `tilewright zoo --json` describes them; with a name, this one.
#[pyfunction]
#[pyo3(name = "_zoo", signature = (name=None))]
pub fn zoo(py: Python<'_>, name: Option<&str>) -> PyResult<String> {
    let entries = match name {
        None => networks::ENTRIES.iter().collect(),
        Some(name) => {
            let name = name.strip_prefix(networks::PREFIX).unwrap_or(name);
            vec![networks::find(name).map_err(|error| Class::NotFound.of_error(py, error))?]
        }
    };
    let described =
        detached(py, || entries.into_iter().map(tilewright::model::describe).collect::<Result<Vec<_>, _>>())?;
    Ok(json!(described.map_err(|error| failed(py, error))?).to_string())
}

/// Writes a network of a well-known shape with random weights, as `tilewright zoo make` does.
#[pyfunction]
#[pyo3(name = "_zoo_make")]
pub fn zoo_make(py: Python<'_>, name: &str, output: PathBuf, float: bool) -> PyResult<()> {
    let bytes = shapes::onnx(name, float).map_err(|error| Class::NotFound.of_error(py, error))?;
    let cannot = |error| Class::Input.err(py, format!("cannot write {}: {error}", output.display()));
    files::write_whole(&output, &[&bytes]).map_err(cannot)
}

/// What this build can compile for and run on, as `tilewright inspect --targets` says it: JSON and text.
#[pyfunction]
#[pyo3(name = "_targets")]
pub fn targets(py: Python<'_>) -> PyResult<(String, String)> {
    let found = detached(py, Targets::collect)?.map_err(|error| failed(py, error))?;
    Ok((found.json().to_string(), found.text()))
}

/// `tilewright.boards`.
#[pyfunction]
#[pyo3(name = "_boards")]
pub fn boards(py: Python<'_>) -> PyResult<String> {
    let row = |name: String| -> Result<_, FlowError> {
        let board = Board::load(&name)?;
        Ok(
            json!({ "name": name, "title": board.title, "device": board.device, "hw": board.hw, "core_mhz": board.core_mhz }),
        )
    };
    let rows: Vec<_> =
        Board::names().into_iter().map(row).collect::<Result<_, _>>().map_err(|e| failed(py, e.into()))?;
    Ok(json!(rows).to_string())
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct SynthOptions<'py> {
    hw: Option<Bound<'py, PyAny>>,
    output: Option<PathBuf>,
    mhz: Option<f64>,
    seed: Option<u64>,
    allow_slow: bool,
    estimate: bool,
    minutes: f64,
    progress: Option<Py<PyAny>>,
}

/// `tilewright.synth`: also whether the design meets its constraints, and the folder.
#[pyfunction]
#[pyo3(name = "_synth")]
pub fn synth(board: &Bound<'_, PyAny>, options: &Bound<'_, PyAny>) -> PyResult<((String, String), bool, String)> {
    let py = board.py();
    let own: SynthOptions = options.extract()?;
    let name: PathBuf = board.extract()?;
    let invalid = |error: FlowError| Class::Input.of_error(py, error);
    let board = Board::load(&name.display().to_string()).map_err(invalid)?;
    let config = match &own.hw {
        Some(hw) => config::of_argument(py, Some(hw))?,
        None => board.default_config().map_err(invalid)?,
    };
    let mhz = own.mhz.map_or(Ok(board.core_mhz), legal_mhz).map_err(|text| Class::Input.err(py, text))?;
    if !(0.001..=1380.0).contains(&own.minutes) {
        return Err(Class::Input.err(py, "minutes is not possible; give 0.001 to 1380 (23 hours)"));
    }
    let output = own.output.unwrap_or_else(|| PathBuf::from("build/synth").join(&board.name));
    let telling = Telling::new(own.progress.as_ref());
    let outcome = detached(py, || -> anyhow::Result<_> {
        let shell = shells::shell(&board, &config, mhz)?;
        let request = FlowRequest {
            board: &board,
            config: &config,
            hw: &config.name,
            shell: &shell,
            mhz,
            seed: own.seed.unwrap_or(board.seed),
            allow_slow: own.allow_slow,
            estimate: own.estimate,
            time_limit: Some(Duration::from_secs_f64(60.0 * own.minutes)),
            checker: netlist_check::name(),
        };
        let cache = tilewright::model::cache_dir()?;
        let mut told = |event: steps::Progress| {
            if let steps::Progress::Started(step) | steps::Progress::Cached(step) = event {
                telling.tell(step, 0, 1);
            }
        };
        match synthesize(&request, &output, &cache, &mut told) {
            Ok(outcome) => Ok(((outcome.report.json(), outcome.report.summary()), true)),
            Err(FlowError::Slow { report, .. } | FlowError::TooLarge { report, .. }) => {
                Ok(((report.json(), report.summary()), false))
            }
            Err(error) => Err(anyhow::anyhow!("{} on {}: {}", config.name, board.name, in_one_line(&error.into()))),
        }
    })?;
    let (told, meets) = telling.finish(py, outcome)?;
    Ok((told, meets, output.display().to_string()))
}
