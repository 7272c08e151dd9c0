//! What the commands `bench`, `profile`, `diff`, `bisect` and `quantize` do. Each function returns the JSON object that
//! the command prints, and its text; `tilewright/_reports.py` makes objects of them.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilewright::device::{self, DeviceKind, dram};
use tilewright::examine::bench::{self as benchmark, Asked, BenchError, BenchRequest, Runs};
use tilewright::examine::bisect as bisection;
use tilewright::examine::diff::{self as comparison, DiffRequest, Right, Tolerance};
use tilewright::examine::profile::compare::About;
use tilewright::examine::profile::{self as profiling, ProfileError, ProfileRequest, page, perfetto};
use tilewright::model::given::Given;
use tilewright::model::picture::Preprocess;
use tilewright::model::quantize::{
    self as quantization, Method, MethodChoice, QuantizeOptions, QuantizeRequest, WeightBits,
};
use tilewright::model::{self, CompileRequest, inference};
use tilewright_compiler::graph::{Graph, Tensor as Constant};
use tilewright_compiler::quantize::range;
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::DeviceError;
use tilewright_runtime::artifact::{self, Artifact, ValueInfo};
use tilewright_runtime::module::ArtifactModule;
use tilewright_runtime::tensor::Tensor;
use tilewright_runtime::{SessionError, npy};

use crate::compile::{FALLBACK, OFFLOAD, PRECISION, Source, level, precision, tuned, word};
use crate::config::{self, PyConfig};
use crate::error::{self, Class};
use crate::inputs::{self, Data};
use crate::interrupt::{self, detached};
use crate::module::PyModule;
use crate::passes;

/// The JSON object and the text of a report.
type Told = (String, String);

/// The exception of work that failed.
pub fn failed(py: Python<'_>, error: anyhow::Error) -> PyErr {
    let cause = |class: Class| class.err(py, format!("{error:#}"));
    for link in error.chain() {
        match (link.downcast_ref::<ProfileError>(), link.downcast_ref::<BenchError>()) {
            (Some(ProfileError::Device(_)), _) => return cause(Class::Device),
            (Some(ProfileError::Session(inner)), _) => return cause(error::class_of_session(inner)),
            (_, Some(BenchError::Twice { .. } | BenchError::Threads { .. })) => return cause(Class::Input),
            _ => {}
        }
        if link.is::<DeviceError>() {
            return cause(Class::Device);
        }
        if let Some(inner) = link.downcast_ref::<SessionError>() {
            return cause(error::class_of_session(inner));
        }
        if link.is::<inference::InputError>()
            || link.is::<comparison::ReferenceError>()
            || link.is::<comparison::Refused>()
        {
            return cause(Class::Input);
        }
        if link.is::<artifact::ArtifactError>() {
            return cause(Class::Artifact);
        }
    }
    passes::of_error(py, error)
}

/// Options that most functions have.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Common<'py> {
    bind: Option<Bound<'py, PyDict>>,
    shape: Option<Bound<'py, PyDict>>,
    packed: Vec<String>,
    inputs: Option<Bound<'py, PyAny>>,
    opt_level: u8,
    progress: Option<Py<PyAny>>,
}

impl Common<'_> {
    fn source(&self, model: &Bound<'_, PyAny>) -> PyResult<Source> {
        Source::of(model, self.bind.as_ref(), self.shape.as_ref(), None, self.packed.clone())
    }

    fn level(&self, py: Python<'_>) -> PyResult<u8> {
        level(py, self.opt_level)
    }
}

/// Calls a function of Python with what is done, and keeps what it raises, which stops the work.
pub struct Telling<'a> {
    function: Option<&'a Py<PyAny>>,
    raised: Mutex<Option<PyErr>>,
}

impl<'a> Telling<'a> {
    /// Without a function, it tells nothing.
    pub fn new(function: Option<&'a Py<PyAny>>) -> Telling<'a> {
        Telling { function, raised: Mutex::new(None) }
    }

    /// Tells what is done, how much of it, and how much there is.
    pub fn tell(&self, what: &str, done: usize, all: usize) {
        let Some(function) = self.function else { return };
        let called = Python::attach(|py| function.bind(py).call1((what, done, all)).err());
        if let Some(error) = called {
            self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            interrupt::stop();
        }
    }

    /// The result of the work, or what the function raised meanwhile.
    ///
    /// # Errors
    /// The exception.
    pub fn finish<T>(self, py: Python<'_>, outcome: anyhow::Result<T>) -> PyResult<T> {
        match self.raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(raised) => Err(raised),
            None => outcome.map_err(|error| failed(py, error)),
        }
    }
}

/// A configuration for times: it states its clock and host, and has the DRAM model of the option `dram`.
fn timed_config(py: Python<'_>, hw: Option<&Bound<'_, PyAny>>, dram: Option<&str>) -> PyResult<HwConfig> {
    let mut found = match hw.map(|hw| hw.extract::<PathBuf>()) {
        Some(Ok(name)) => {
            let named = device::load_hw_with_times(&name.display().to_string());
            named.map_err(|error| Class::Config.of_error(py, error))?
        }
        _ => config::of_argument(py, hw)?,
    };
    if let Some(text) = dram {
        dram::apply(text, &mut found).map_err(|error| Class::Input.err(py, format!("dram: {error}")))?;
    }
    Ok(found)
}

/// The graph of a model and the inputs of its runs, which are random if none are given.
fn graph_and_runs(
    source: &Source,
    given: Given,
    preprocess: Option<&Preprocess>,
) -> anyhow::Result<(Graph, Vec<Vec<Tensor>>)> {
    let graph = source.graph(&given.data())?;
    let values = model::inputs(&graph).with_context(|| source.name())?;
    let runs = runs(source, given, preprocess, &values.iter().collect::<Vec<_>>())?;
    Ok((graph, runs))
}

fn runs(
    source: &Source,
    given: Given,
    preprocess: Option<&Preprocess>,
    values: &[&ValueInfo],
) -> anyhow::Result<Vec<Vec<Tensor>>> {
    given.check(preprocess)?;
    if given.is_empty() {
        return Ok(vec![inference::made_up(values)]);
    }
    match source.file() {
        Some(file) => fitted(given, values, &file.about()?, &file.preprocess(preprocess)),
        None => fitted(given, values, &artifact::About::default(), &preprocess.cloned().unwrap_or_default()),
    }
}

/// The inputs of each run; what does not fit the model is an `InputError`.
fn fitted(
    given: Given,
    values: &[&ValueInfo],
    about: &artifact::About,
    preprocess: &Preprocess,
) -> anyhow::Result<Vec<Vec<Tensor>>> {
    given.runs(values, about, preprocess).map_err(|error| comparison::Refused(format!("{error:#}")).into())
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(py: Python<'_>, option: &str, text: &str) -> PyResult<T> {
    text.parse().map_err(|error| Class::Input.err(py, format!("{option}: {error}")))
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct BenchOptions<'py> {
    devices: Vec<String>,
    hw: Vec<Bound<'py, PyAny>>,
    offload: String,
    tuned: Option<PathBuf>,
    dram: Option<String>,
    precision: String,
    threads: Option<usize>,
    warm_up: usize,
    repetitions: usize,
}

/// `tilewright.bench`: also whether all outputs agree, and the CSV table.
#[pyfunction]
#[pyo3(name = "_bench")]
pub fn bench(model: &Bound<'_, PyAny>, options: &Bound<'_, PyAny>) -> PyResult<(Told, String)> {
    let py = model.py();
    let (common, own): (Common, BenchOptions) = (options.extract()?, options.extract()?);
    let source = common.source(model)?;
    let given = inputs::given(py, common.inputs.as_ref(), source.file())?;
    let asked = |name: &String| Asked::parse(name).map_err(|text| Class::Input.err(py, text));
    let devices = own.devices.iter().map(asked).collect::<PyResult<Vec<_>>>()?;
    let config = |hw: &Bound<'_, PyAny>| timed_config(py, Some(hw), own.dram.as_deref());
    let configs = own.hw.iter().map(config).collect::<PyResult<Vec<_>>>()?;
    if own.repetitions == 0 {
        return Err(Class::Input.err(py, "repetitions=0 is not possible; use 1 or more"));
    }
    let tuned = tuned(py, own.tuned)?;
    let request = BenchRequest {
        devices: &devices,
        configs: &configs,
        offload: word(py, "offload", &own.offload, OFFLOAD)?,
        level: common.level(py)?,
        precision: word(py, "precision", &own.precision, PRECISION)?,
        threads: own.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
        warm_up: own.warm_up,
        repetitions: own.repetitions,
        compare_offload: true,
        tuned: &tuned,
    };
    let telling = Telling::new(common.progress.as_ref());
    let outcome = detached(py, || {
        let (graph, runs) = graph_and_runs(&source, given, None)?;
        let inputs = runs.into_iter().next().context("the inputs have no data for a run")?;
        let told = |what: &str, done: usize, all: usize| telling.tell(what, done, all);
        benchmark::bench(&graph, &inputs, &request, &told).with_context(|| source.name())
    })?;
    let found = telling.finish(py, outcome)?;
    Ok(((found.json().to_string(), found.table()), found.csv()))
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ProfileOptions<'py> {
    hw: Option<Bound<'py, PyAny>>,
    device: String,
    offload: String,
    tuned: Option<PathBuf>,
    dram: Option<String>,
    warm_up: usize,
    repetitions: usize,
}

/// `tilewright.profile`: the JSON object, the page, and the trace for Perfetto.
#[pyfunction]
#[pyo3(name = "_profile")]
pub fn profile(model: &Bound<'_, PyAny>, options: &Bound<'_, PyAny>) -> PyResult<(String, String, String)> {
    let py = model.py();
    let (common, own): (Common, ProfileOptions) = (options.extract()?, options.extract()?);
    let source = common.source(model)?;
    let given = inputs::given(py, common.inputs.as_ref(), source.file())?;
    let config = timed_config(py, own.hw.as_ref(), own.dram.as_deref())?;
    let kind: DeviceKind = parsed(py, "device", &own.device)?;
    if !kind.may_trace() {
        let text = format!("{kind} does not report cycles per instruction; profile on csim or rtl");
        return Err(Class::Input.err(py, text));
    }
    if own.repetitions == 0 {
        return Err(Class::Input.err(py, "repetitions=0 is not possible; use 1 or more"));
    }
    let tuned = tuned(py, own.tuned)?;
    let request = ProfileRequest {
        config: &config,
        device: kind,
        offload: word(py, "offload", &own.offload, OFFLOAD)?,
        level: common.level(py)?,
        runs: Runs { warm_up: own.warm_up, measured: own.repetitions },
        waves: None,
        tuned: &tuned,
    };
    let telling = Telling::new(common.progress.as_ref());
    let outcome = detached(py, || -> anyhow::Result<_> {
        let (graph, runs) = graph_and_runs(&source, given, None)?;
        let inputs = runs.into_iter().next().context("the inputs have no data for a run")?;
        let told = |what: &str, done: usize| telling.tell(what, done, profiling::PIECES);
        let found = profiling::profile(&graph, &inputs, &request, &told).with_context(|| source.name())?;
        let bytes = match source.file() {
            Some(file) => std::fs::read(&**file).with_context(|| format!("cannot read {}", file.display()))?,
            None => model::text(&graph).into_bytes(),
        };
        let (file, device) = (source.name(), kind.to_string());
        let about = About {
            file: &file,
            sha256: About::hash(&bytes),
            device: &device,
            level: request.level,
            offload: &own.offload,
            ..About::default()
        };
        let data = found.json(&config, &about);
        Ok((data.to_string(), page::profile(&data), perfetto(&found, &config).to_string()))
    })?;
    telling.finish(py, outcome)
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct DiffOptions<'py> {
    a: String,
    b: String,
    hw: Option<Bound<'py, PyAny>>,
    hw_b: Option<Bound<'py, PyAny>>,
    offload: String,
    fallback: Option<String>,
    precision: String,
    tuned: Option<PathBuf>,
    schedules: Option<PathBuf>,
    preprocess: Option<String>,
    tolerance: String,
}

/// `tilewright.diff`.
#[pyfunction]
#[pyo3(name = "_diff")]
pub fn diff(model: &Bound<'_, PyAny>, options: &Bound<'_, PyAny>) -> PyResult<Told> {
    let py = model.py();
    let (common, own): (Common, DiffOptions) = (options.extract()?, options.extract()?);
    let artifact = model.cast::<PyModule>().ok().and_then(|module| module.get().0.downcast::<ArtifactModule>());
    let artifact = artifact.map(ArtifactModule::artifact);
    let source = if artifact.is_some() { None } else { Some(common.source(model)?) };
    let given = inputs::given(py, common.inputs.as_ref(), source.as_ref().and_then(Source::file))?;
    let hardware = artifact.and_then(|artifact| artifact.manifest.hardware.as_ref());
    let hw_a = match (&own.hw, hardware) {
        (None, Some(hardware)) => PyConfig::parse(py, "the artifact", &hardware.toml)?.0,
        (hw, _) => config::of_argument(py, hw.as_ref())?,
    };
    let hw_b = own.hw_b.as_ref().map(|hw| config::of_argument(py, Some(hw))).transpose()?;
    let fallback = own.fallback.as_deref().map(|name| word(py, "fallback", name, FALLBACK)).transpose()?;
    let request = CompileRequest {
        offload: Some(word(py, "offload", &own.offload, OFFLOAD)?),
        fallback,
        precision: precision(py, own.fallback.as_deref().unwrap_or("cpu"), &own.precision)?,
        level: common.level(py)?,
        tuned: tuned(py, own.tuned)?,
        schedules: own.schedules,
        ..CompileRequest::default()
    };
    let preprocess: Option<Preprocess> =
        own.preprocess.as_deref().map(|text| parsed(py, "preprocess", text)).transpose()?;
    let right: Right = parsed(py, "b", &own.b)?;
    let name = match (&source, artifact) {
        (Some(source), _) => source.name(),
        (None, artifact) => artifact.map(|artifact| artifact.manifest.model.clone()).unwrap_or_default(),
    };
    let asked = DiffRequest {
        name: &name,
        a: parsed(py, "a", &own.a)?,
        hw_a: &hw_a,
        b: &right,
        hw_b: hw_b.as_ref(),
        tolerance: parsed::<Tolerance>(py, "tolerance", &own.tolerance)?,
    };
    let telling = Telling::new(common.progress.as_ref());
    let outcome = detached(py, || {
        let data = given.data();
        let compile = |kind: DeviceKind, config: &HwConfig, keep: bool| -> anyhow::Result<Artifact> {
            let request = CompileRequest { keep_values: keep, ..request.clone() };
            let source = source.as_ref().context("the artifact is compiled already")?;
            Ok(source.compile(&request, (config, kind), &data, &mut |_, _| {})?.artifact)
        };
        let knows = |value: &str| match source.as_ref().map(|source| source.sources(&data)).transpose()?.flatten() {
            Some(sources) => Ok(sources.knows(value)),
            None => Ok(false),
        };
        let compared = match artifact {
            Some(artifact) => comparison::Model::Artifact(artifact),
            None => comparison::Model::Compiled { compile: &compile, knows: &knows, ordinary: true },
        };
        let given = std::cell::RefCell::new(Some(given));
        let runs = |artifact: &Artifact| {
            let values = artifact.manifest.input_values();
            let given = given.take().unwrap_or_default();
            match &source {
                Some(source) => runs(source, given, preprocess.as_ref(), &values),
                None if given.is_empty() => Ok(vec![inference::made_up(&values)]),
                None => fitted(given, &values, &artifact.manifest.about, &preprocess.clone().unwrap_or_default()),
            }
        };
        let told = |_: &str| {};
        comparison::diff(&compared, &runs, &asked, &told, &mut |done, all| telling.tell("run", done, all))
            .map(|report| (report.json().to_string(), report.text()))
    })?;
    telling.finish(py, outcome)
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct BisectOptions {
    preprocess: Option<String>,
    tolerance: String,
}

/// `tilewright.bisect`.
#[pyfunction]
#[pyo3(name = "_bisect")]
pub fn bisect(model: &Bound<'_, PyAny>, options: &Bound<'_, PyAny>) -> PyResult<Told> {
    let py = model.py();
    let (common, own): (Common, BisectOptions) = (options.extract()?, options.extract()?);
    let source = common.source(model)?;
    let given = inputs::given(py, common.inputs.as_ref(), source.file())?;
    let preprocess: Option<Preprocess> =
        own.preprocess.as_deref().map(|text| parsed(py, "preprocess", text)).transpose()?;
    let tolerance: Tolerance = parsed(py, "tolerance", &own.tolerance)?;
    let level = common.level(py)?;
    let outcome = detached(py, || {
        let (graph, runs) = graph_and_runs(&source, given, preprocess.as_ref())?;
        let of_run = |inputs: &Vec<Tensor>| inputs.iter().map(Constant::try_from).collect::<Result<Vec<_>, _>>();
        let runs = runs.iter().map(of_run).collect::<Result<Vec<_>, _>>().map_err(anyhow::Error::msg)?;
        let name = source.name();
        let found = bisection::bisect(&graph, &model::passes(level), &runs, &tolerance).context(name.clone())?;
        Ok((found.json(&name).to_string(), found.text(&name)))
    })?;
    outcome.map_err(|error| failed(py, error))
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct QuantizeOptionsGiven<'py> {
    calibrate: Bound<'py, PyAny>,
    output: PathBuf,
    method: String,
    percentile: Option<f64>,
    weights: u8,
    keep_float: Vec<String>,
    weak: f64,
    per_tensor: bool,
    bias_correction: bool,
    equalize: bool,
    crops: Option<usize>,
    preprocess: Option<String>,
    eval: Option<Bound<'py, PyAny>>,
    labels: Option<Bound<'py, PyAny>>,
}

/// The words of the option `method`.
const METHODS: &[(&str, MethodChoice)] = &[
    ("auto", MethodChoice::Auto),
    ("min-max", MethodChoice::All(Method::MinMax)),
    ("percentile", MethodChoice::All(Method::Percentile(99.99))),
    ("mse", MethodChoice::All(Method::Mse)),
    ("entropy", MethodChoice::All(Method::Entropy)),
];

/// Samples of an argument: the path of a file or folder, or arrays.
fn samples_of(argument: &Bound<'_, PyAny>) -> PyResult<quantization::Data> {
    let py = argument.py();
    match inputs::data(argument)? {
        Data::Files(paths) => match &paths[..] {
            [path] => quantization::Data::read(path.as_ref()).map_err(|error| Class::Input.of_error(py, error)),
            _ => Err(Class::Input.err(py, "give the samples as one file or folder, or as arrays")),
        },
        Data::Arrays(arrays) => Ok(quantization::Data::Arrays("the samples".into(), arrays)),
    }
}

/// `tilewright.quantize`.
#[pyfunction]
#[pyo3(name = "_quantize")]
pub fn quantize(model: &Bound<'_, PyAny>, options: &Bound<'_, PyAny>) -> PyResult<Told> {
    let py = model.py();
    let (common, own): (Common, QuantizeOptionsGiven) = (options.extract()?, options.extract()?);
    let Source::File(model) = common.source(model)? else {
        return Err(Class::Input.err(py, "quantize takes the file of a float model, not a Graph"));
    };
    let invalid = |text: String| Class::Input.err(py, text);
    let mut method = word(py, "method", &own.method, METHODS)?;
    match (own.percentile, method) {
        (None, _) => {}
        (Some(percentile), MethodChoice::All(Method::Percentile(_))) => {
            let found = range::percentage(percentile).map_err(|error| invalid(format!("percentile: {error}")))?;
            method = MethodChoice::All(Method::Percentile(found));
        }
        (Some(_), _) => return Err(invalid("percentile is for method=\"percentile\"".into())),
    }
    let weight_bits = match own.weights {
        7 => WeightBits::Seven,
        8 => WeightBits::Eight,
        other => return Err(invalid(format!("weights={other} is not possible; use 7 or 8"))),
    };
    QuantizeRequest::check_output("output", &model.file, &own.output).map_err(invalid)?;
    if own.eval.is_some() != own.labels.is_some() {
        return Err(invalid("eval and labels go together; give both".into()));
    }
    let preprocess = own.preprocess.as_deref().map(|text| parsed(py, "preprocess", text)).transpose()?;
    let calibrate = samples_of(&own.calibrate)?;
    let eval = own.eval.as_ref().map(samples_of).transpose()?;
    let labels = match own.labels.as_ref().map(inputs::data).transpose()? {
        None => None,
        Some(Data::Arrays(arrays)) => arrays.into_iter().next().map(|(_, labels)| labels),
        Some(Data::Files(paths)) => {
            let read = npy::read(paths.first().map(String::as_str).unwrap_or_default().as_ref());
            Some(read.map_err(|error| Class::Input.of_error(py, error))?)
        }
    };
    let request = QuantizeRequest {
        file: &model.file,
        output: &own.output,
        options: QuantizeOptions {
            method,
            per_channel: !own.per_tensor,
            weight_bits,
            keep_float: own.keep_float,
            weak_db: own.weak,
            bias_correction: own.bias_correction,
            equalize: own.equalize,
        },
        crops: own.crops,
        preprocess: preprocess.zip(own.preprocess.as_deref()),
        calibrate,
        labeled: eval.zip(labels).map(|(data, labels)| (data, labels, "the labels".to_string())),
    };
    let telling = Telling::new(common.progress.as_ref());
    let outcome = detached(py, || -> anyhow::Result<Told> {
        let mut told = |what: &str, done: usize, of: usize| telling.tell(what, done, of);
        let done = request.run(&|data| Ok(model.sized(data)), &mut told)?;
        let told = (done.json.to_string(), done.text.clone());
        done.finish()?;
        Ok(told)
    })?;
    telling.finish(py, outcome)
}
