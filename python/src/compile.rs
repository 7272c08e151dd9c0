//! `compile`: a model to an artifact.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tilewright::device::{DeviceKind, DeviceNameError};
use tilewright::model::plans::Tuned;
use tilewright::model::{
    self, CompileRequest, Compiled, Datum, DumpIr, FallbackKind, ImportOptions, ModelFile, Offload, Precision, Shapes,
    Sizes, Sources,
};
use tilewright_compiler::graph::{Graph, Tensor};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::module::{DeviceModule, SessionModule, open_device};
use tilewright_runtime::session::DynamicSession;
use tilewright_runtime::{Module, Registry, SharedDevice, Value};

use crate::config;
use crate::error::{self, Class};
use crate::graph::PyGraph;
use crate::interrupt::{self, detached};
use crate::module;
use crate::passes;
use crate::value;

/// A model to compile.
pub struct Model {
    /// Its file.
    pub file: ModelFile,
    /// Sizes of its open dimensions, and domains whose operators are functions of the program.
    pub options: ImportOptions,
}

impl Model {
    /// The model of an argument: the path of a file, or `zoo:NAME`.
    ///
    /// # Errors
    /// `ModelError` if the zoo has no such network, `TypeError` for other objects.
    pub fn of(
        model: &Bound<'_, PyAny>,
        bind: Option<&Bound<'_, PyDict>>,
        shape: Option<&Bound<'_, PyDict>>,
        value: Option<&Bound<'_, PyDict>>,
        packed: Vec<String>,
    ) -> PyResult<Model> {
        let py = model.py();
        let name = model.extract::<PathBuf>().map_err(|_| {
            let found = model.get_type().name().map(|name| name.to_string()).unwrap_or_default();
            PyTypeError::new_err(format!("a model is a path, zoo:NAME or a Graph, not {found}"))
        })?;
        let file = ModelFile::parse(&name.display().to_string()).map_err(|text| Class::NotFound.err(py, text))?;
        let mut sizes = Sizes::default();
        for (symbol, size) in bind.into_iter().flat_map(|bind| bind.iter()) {
            sizes.symbols.insert(symbol.extract()?, positive(&size)?);
        }
        for (input, shape) in shape.into_iter().flat_map(|shape| shape.iter()) {
            sizes.inputs.insert(input.extract()?, all_positive(&shape)?);
        }
        sizes.data = file.sample_shapes();
        let mut values = BTreeMap::new();
        for (input, value) in value.into_iter().flat_map(|value| value.iter()) {
            values.insert(input.extract()?, numbers(&value)?);
        }
        Ok(Model { file, options: ImportOptions { sizes, values, packed: packed.into_iter().collect() } })
    }

    /// How the file is read if these are the shapes of its data.
    pub fn sized(&self, data: &[Datum]) -> ImportOptions {
        let mut options = self.options.clone();
        if !data.is_empty() {
            options.sizes.data = data.to_vec();
        }
        options
    }

    /// The graph, and the file's names of its values.
    ///
    /// # Errors
    /// Why the file cannot be imported.
    pub fn import(&self) -> anyhow::Result<(Graph, Sources)> {
        Ok(model::import_traced(&self.file, &self.options)?)
    }
}

/// A number, or a list or an array of numbers.
fn numbers(value: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let list = if value.hasattr("tolist")? { value.call_method0("tolist")? } else { value.clone() };
    let list = if list.hasattr("__len__")? { list } else { PyList::new(value.py(), [list])?.into_any() };
    if let Ok(integers) = list.extract::<Vec<i64>>() {
        return Ok(Tensor::vector(integers));
    }
    let wrong = |_| {
        Class::Input.err(value.py(), format!("the value {value} of an input is neither a number nor a list of numbers"))
    };
    list.extract::<Vec<f32>>().map(Tensor::vector).map_err(wrong)
}

fn positive(size: &Bound<'_, PyAny>) -> PyResult<usize> {
    match size.extract::<usize>() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(Class::Input.err(size.py(), format!("the size {size} is not a whole number above 0"))),
    }
}

fn all_positive(sizes: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    sizes.try_iter()?.map(|size| positive(&size?)).collect()
}

/// Refuses an option with sizes for a model that is a Graph.
fn no_sizes(py: Python<'_>, option: &str, sizes: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    if sizes.is_none_or(|sizes| sizes.is_empty()) {
        return Ok(());
    }
    let text =
        format!("{option} gives sizes of a file's open dimensions, but the model is a Graph, which has its sizes");
    Err(Class::Input.err(py, text))
}

/// The sizes of the options `shapes` and `bucket`.
fn several(shapes: Option<&Bound<'_, PyDict>>, bucket: bool) -> PyResult<Shapes> {
    let of = |(symbol, sizes): (Bound<'_, PyAny>, Bound<'_, PyAny>)| Ok((symbol.extract()?, all_positive(&sizes)?));
    let sizes = shapes.into_iter().flat_map(|shapes| shapes.iter()).map(of).collect::<PyResult<Vec<_>>>()?;
    Ok(Shapes { sizes, bucket })
}

/// What an option that is a word accepts.
///
/// # Errors
/// `InputError` with the words.
pub fn word<T: Copy>(py: Python<'_>, option: &str, found: &str, words: &[(&str, T)]) -> PyResult<T> {
    words.iter().find(|(word, _)| *word == found).map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        Class::Input.err(py, format!("{option}={found:?} is not possible; use {}", known.join(", ")))
    })
}

/// The words of the option `offload`.
pub const OFFLOAD: &[(&str, Offload)] = &[("all", Offload::All), ("auto", Offload::Auto), ("none", Offload::None)];
/// The words of the option `precision`.
pub const PRECISION: &[(&str, Precision)] = &[("f32", Precision::F32), ("f16", Precision::F16)];

/// The words of the option `fallback`.
pub const FALLBACK: &[(&str, FallbackKind)] = &[("cpu", FallbackKind::Cpu), ("cuda", FallbackKind::Cuda)];

/// The width of floats on a GPU; on the CPU there is no choice.
///
/// # Errors
/// `InputError` with the words.
pub fn precision(py: Python<'_>, fallback: &str, found: &str) -> PyResult<Option<Precision>> {
    let precision = word(py, "precision", found, PRECISION)?;
    Ok((fallback == "cuda").then_some(precision))
}

/// An optimization level.
///
/// # Errors
/// `InputError` if there is none of that number.
pub fn level(py: Python<'_>, level: u8) -> PyResult<u8> {
    match level {
        0..=3 => Ok(level),
        _ => Err(Class::Input.err(py, format!("opt_level={level} is not possible; use 0, 1, 2 or 3"))),
    }
}

/// Plans of `tune` to use: a log, `none`, or those that the library brings along.
///
/// # Errors
/// `ModelError` if the log cannot be read.
pub fn tuned(py: Python<'_>, log: Option<PathBuf>) -> PyResult<Tuned> {
    match log {
        None => Ok(Tuned::Shipped),
        Some(name) if name.as_os_str() == "none" => Ok(Tuned::Nothing),
        Some(path) => Tuned::read(&path).map_err(|error| Class::Model.of_error(py, error)),
    }
}

/// The options that every compilation has: the words of `offload`, `fallback` and `precision`, the level, and the plans.
fn request(
    py: Python<'_>,
    [offload, fallback, precision]: [&str; 3],
    opt_level: u8,
    log: Option<PathBuf>,
) -> PyResult<CompileRequest> {
    Ok(CompileRequest {
        offload: Some(word(py, "offload", offload, OFFLOAD)?),
        fallback: Some(word(py, "fallback", fallback, FALLBACK)?),
        precision: self::precision(py, fallback, precision)?,
        level: level(py, opt_level)?,
        tuned: tuned(py, log)?,
        ..CompileRequest::default()
    })
}

/// What is compiled: a file, or a graph of the program.
pub enum Source {
    /// A graph.
    Graph(Arc<Graph>),
    /// A file.
    File(Box<Model>),
}

impl Source {
    /// The model of an argument: a Graph, the path of a file, or `zoo:NAME`.
    ///
    /// # Errors
    /// The same as [`Model::of`].
    pub fn of(
        model: &Bound<'_, PyAny>,
        bind: Option<&Bound<'_, PyDict>>,
        shape: Option<&Bound<'_, PyDict>>,
        value: Option<&Bound<'_, PyDict>>,
        packed: Vec<String>,
    ) -> PyResult<Source> {
        Ok(match model.cast::<PyGraph>() {
            Ok(graph) => {
                for (option, sizes) in [("bind", bind), ("shape", shape), ("value", value)] {
                    no_sizes(model.py(), option, sizes)?;
                }
                Source::Graph(graph.get().0.clone())
            }
            Err(_) => Source::File(Box::new(Model::of(model, bind, shape, value, packed)?)),
        })
    }

    /// Its name in messages.
    pub fn name(&self) -> String {
        match self {
            Source::Graph(graph) => graph.name().to_string(),
            Source::File(model) => model.file.display().to_string(),
        }
    }

    /// Its file.
    pub fn file(&self) -> Option<&ModelFile> {
        match self {
            Source::Graph(_) => None,
            Source::File(model) => Some(&model.file),
        }
    }

    /// Compiles it for a device. Open dimensions have the sizes of the arguments, and then of `data`.
    ///
    /// # Errors
    /// Why it cannot be compiled.
    pub fn compile(
        &self,
        request: &CompileRequest,
        (config, device): (&HwConfig, DeviceKind),
        data: &[Datum],
        dump: &mut DumpIr,
    ) -> anyhow::Result<Compiled> {
        match self {
            Source::Graph(graph) => request.compile_graph(graph.as_ref().clone(), config, device, dump),
            Source::File(model) => request.compile_file(&model.file, &model.sized(data), config, device, dump),
        }
    }

    /// Compiles it for each combination of these sizes, or once.
    ///
    /// # Errors
    /// Why it cannot be compiled.
    pub fn compile_shapes(
        &self,
        request: &CompileRequest,
        shapes: &Shapes,
        config: &HwConfig,
        dump: &mut DumpIr,
    ) -> anyhow::Result<Compiled> {
        match self {
            Source::Graph(graph) => request.compile_graph(graph.as_ref().clone(), config, DeviceKind::FSIM, dump),
            Source::File(model) => {
                request.compile_shapes(&model.file, &model.options, shapes, config, DeviceKind::FSIM, dump)
            }
        }
    }

    /// The file's names of values.
    ///
    /// # Errors
    /// Why the file cannot be imported.
    pub fn sources(&self, data: &[Datum]) -> anyhow::Result<Option<Sources>> {
        match self {
            Source::Graph(_) => Ok(None),
            Source::File(model) => Ok(Some(model::import_traced(&model.file, model.sized(data))?.1)),
        }
    }

    /// Its graph. Open dimensions have the sizes of the arguments, and then of `data`.
    ///
    /// # Errors
    /// Why the file cannot be imported.
    pub fn graph(&self, data: &[Datum]) -> anyhow::Result<Graph> {
        match self {
            Source::Graph(graph) => Ok(graph.as_ref().clone()),
            Source::File(model) => Ok(model::import(&model.file, model.sized(data))?),
        }
    }
}

/// Compiles a model to an artifact.
///
/// `model` is the path of an ONNX or TFLite file, `zoo:NAME`, or a Graph. The options are those of `tilewright compile`:
///
/// - `hw`: the name of a preset or a board, the path of a TOML file, or a Config
/// - `opt_level`: 0 to 3
/// - `offload`: what the accelerator computes: `all` that it can, what is faster there (`auto`), or `none`
/// - `fallback`: what computes the rest: `cpu` or `cuda`, there in `precision` `f32` or `f16`
/// - `cpu_target`: target of the CPU code; without it, this machine
/// - `bind`, `shape`: sizes of open dimensions by symbol, and shapes of inputs by name
/// - `value`: numbers, or lists of them, for inputs that operators need as constants; the artifact is for these alone
/// - `shapes`: lists of sizes by symbol; the artifact has the model for all combinations. With `bucket`, inputs of a size
///   in between are padded to the next larger one, where the model computes the rows of that size independently
/// - `packed`: domains of ONNX operators that are functions of the program, such as those of `register`
/// - `tuned`: a log of `tilewright tune`, or `none`; `schedules`: a folder with schedules of layers
/// - `keep_values`: keep every layer's result for inspection; `measure`: measured instead of modeled CPU times
/// - `dump_ir`: called with the name and the graph's text after each pass
///
/// Raises ModelError if the model cannot be imported or compiled, and PassError if a pass fails.
#[pyfunction]
#[pyo3(signature = (model, *, hw=None, opt_level=2, offload="all", fallback="cpu", precision="f32", cpu_target=None,
    bind=None, shape=None, value=None, shapes=None, bucket=false, packed=Vec::new(), tuned=None, schedules=None, keep_values=false, measure=false, dump_ir=None))]
#[allow(clippy::too_many_arguments, reason = "options by name in Python")]
pub fn compile<'py>(
    py: Python<'py>,
    model: &Bound<'py, PyAny>,
    hw: Option<&Bound<'py, PyAny>>,
    opt_level: u8,
    offload: &str,
    fallback: &str,
    precision: &str,
    cpu_target: Option<String>,
    bind: Option<&Bound<'py, PyDict>>,
    shape: Option<&Bound<'py, PyDict>>,
    value: Option<&Bound<'py, PyDict>>,
    shapes: Option<&Bound<'py, PyDict>>,
    bucket: bool,
    packed: Vec<String>,
    tuned: Option<PathBuf>,
    schedules: Option<PathBuf>,
    keep_values: bool,
    measure: bool,
    dump_ir: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let request = CompileRequest {
        processor: cpu_target,
        schedules,
        keep_values,
        measure,
        dump_ir: dump_ir.is_some(),
        ..request(py, [offload, fallback, precision], opt_level, tuned)?
    };
    let config = config::of_argument(py, hw)?;
    let source = Source::of(model, bind, shape, value, packed)?;
    let sizes = shapes;
    let shapes = several(sizes, bucket)?;
    match &source {
        Source::Graph(_) => no_sizes(py, "shapes", sizes)?,
        Source::File(model) => shapes.check(&model.options).map_err(|text| Class::Input.err(py, text))?,
    }
    let mut raised: Option<PyErr> = None;
    let outcome = detached(py, || {
        let mut tell = |pass: &str, text: &str| {
            if let (Some(dump), None) = (&dump_ir, &raised) {
                raised = Python::attach(|py| dump.bind(py).call1((pass, text)).err());
                if raised.is_some() {
                    interrupt::stop();
                }
            }
        };
        source.compile_shapes(&request, &shapes, &config, &mut tell)
    })?;
    if let Some(error) = raised {
        return Err(error);
    }
    module::of_artifact(py, outcome.map_err(|error| passes::of_error(py, error))?.artifact)
}

/// Opens a session that compiles the model for each shape of its inputs when it first sees it.
///
/// `model` is the path of an ONNX or TFLite file, or `zoo:NAME`. `device` is a name as `--device` accepts it, or a device
/// of `tilewright.device`; with a name, `hw` is its configuration, and with a device the configuration is the device's.
/// `bind` has sizes of open dimensions that are the same for all shapes. The other options are those of `compile`.
///
/// What was compiled is kept for the shapes used last, and in the user's cache folder for the next process.
///
/// Raises ModelError if the file cannot be read, and DeviceError if there is no such device. A shape for which the model
/// cannot be compiled raises InputError when it runs.
#[pyfunction]
#[pyo3(signature = (model, *, device=None, hw=None, opt_level=2, offload="all", fallback="cpu", precision="f32",
    cpu_target=None, bind=None, packed=Vec::new(), tuned=None, schedules=None))]
#[allow(clippy::too_many_arguments, reason = "options by name in Python")]
pub fn jit<'py>(
    py: Python<'py>,
    model: &Bound<'py, PyAny>,
    device: Option<&Bound<'py, PyAny>>,
    hw: Option<&Bound<'py, PyAny>>,
    opt_level: u8,
    offload: &str,
    fallback: &str,
    precision: &str,
    cpu_target: Option<String>,
    bind: Option<&Bound<'py, PyDict>>,
    packed: Vec<String>,
    tuned: Option<PathBuf>,
    schedules: Option<PathBuf>,
) -> PyResult<Bound<'py, PyAny>> {
    let request = CompileRequest {
        processor: cpu_target,
        schedules,
        ..request(py, [offload, fallback, precision], opt_level, tuned)?
    };
    if model.cast::<PyGraph>().is_ok() {
        let text = "a Graph has one shape; compile it with `compile`, or give the path of the model's file";
        return Err(Class::Input.err(py, text));
    }
    let Model { file, options } = Model::of(model, bind, None, None, packed)?;
    let (device, kind, config) = device_of(py, device, hw, request.offload != Some(Offload::None))?;
    let jit = detached(py, || request.jit(&file, options, &config, kind))?;
    let jit = jit.map_err(|error| passes::of_error(py, error))?;
    let session = DynamicSession::new(Box::new(jit), Registry::global(), device);
    module::to_python(py, Module::new(SessionModule::new(session)))
}

/// The device of an argument, its kind and its configuration: a device that is open, or one to open if it is `needed`.
fn device_of(
    py: Python<'_>,
    device: Option<&Bound<'_, PyAny>>,
    hw: Option<&Bound<'_, PyAny>>,
    needed: bool,
) -> PyResult<(Option<SharedDevice>, DeviceKind, HwConfig)> {
    let shared = |module: &Module| DeviceModule::of(module).cloned().map_err(|text| Class::Device.err(py, text));
    let given = device.map_or_else(|| Ok("fsim".into()), value::from_python)?;
    match given {
        Value::Module(module) => {
            if hw.is_some() {
                let text = "hw and a device that is open both give a configuration; leave hw out";
                return Err(Class::Input.err(py, text));
            }
            let device = shared(&module)?;
            let config = device.config().clone();
            Ok((Some(device), DeviceKind::FSIM, config))
        }
        Value::String(name) => {
            let config = config::of_argument(py, hw)?;
            let kind: DeviceKind = name.parse().map_err(|error: DeviceNameError| Class::Device.of_error(py, error))?;
            if !needed || !kind.is_accelerator() {
                return Ok((None, kind, config));
            }
            let opened = detached(py, || open_device(Registry::global(), &name, &config.to_toml()))?;
            let opened = opened.map_err(|error| error::of_call(py, &error))?;
            Ok((Some(shared(&opened)?), kind, config))
        }
        other => Err(Class::Input.err(py, format!("device is a name or an open device, not {}", other.kind()))),
    }
}

/// Waits for the code generation of work that was stopped, before the interpreter ends.
#[cfg(feature = "llvm")]
#[pyfunction]
#[pyo3(name = "_finish")]
pub fn finish(py: Python<'_>) {
    py.detach(tilewright::model::finish);
}
