//! `compile`: a model to an artifact.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilewright::model::plans::Tuned;
use tilewright::model::{self, Fallback, ImportOptions, ModelFile, Offload, Precision, Sizes, Sources, schedules};
use tilewright_compiler::graph::Graph;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::Artifact;
use tilewright_runtime::artifact::About;

use crate::config;
use crate::error::Class;
use crate::graph::PyGraph;
use crate::module;
use crate::passes;

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
        shapes: Option<&Bound<'_, PyDict>>,
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
        for (input, shape) in shapes.into_iter().flat_map(|shapes| shapes.iter()) {
            let shape = shape.try_iter()?.map(|size| positive(&size?)).collect::<PyResult<_>>()?;
            sizes.inputs.insert(input.extract()?, shape);
        }
        sizes.data = file.sample_shapes();
        Ok(Model { file, options: ImportOptions { sizes, packed: packed.into_iter().collect() } })
    }

    /// The graph, and the file's names of its values.
    ///
    /// # Errors
    /// Why the file cannot be imported.
    pub fn import(&self) -> anyhow::Result<(Graph, Sources)> {
        Ok(model::import_traced(&self.file, &self.options)?)
    }
}

fn positive(size: &Bound<'_, PyAny>) -> PyResult<usize> {
    match size.extract::<usize>() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(Class::Input.err(size.py(), format!("the size {size} is not a whole number above 0"))),
    }
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

/// What is compiled.
enum Given {
    Graph(Arc<Graph>),
    File(Box<Model>),
}

/// Called with each pass's name and the graph's text after it.
type Dump<'a> = dyn FnMut(&str, &str) + 'a;

/// What `compile` was asked for, apart from the model.
struct Request {
    config: HwConfig,
    offload: Offload,
    fallback: Fallback,
    level: u8,
    processor: Option<String>,
    tuned: Tuned,
    schedules: Option<PathBuf>,
    keep_values: bool,
    measure: bool,
}

impl Request {
    fn build(
        &self,
        graph: Graph,
        (sources, about): (Option<&Sources>, About),
        dump: Option<&mut Dump>,
    ) -> anyhow::Result<Artifact> {
        let records = self.tuned.load(&self.config)?;
        let given = self.schedules.as_deref().map(schedules::read).transpose()?.unwrap_or_default();
        let options = model::Options {
            offload: self.offload,
            fallback: self.fallback,
            processor: self.processor.as_deref(),
            measure: self.measure,
            level: self.level,
            dump_ir: dump.is_some(),
            keep_values: self.keep_values,
            schedules: &given,
            records: records.get(),
            ..model::Options::new(&self.config)
        };
        let mut artifact = match dump {
            Some(dump) => model::build(graph, &options, dump)?,
            None => model::build(graph, &options, &mut |_, _| {})?,
        };
        if let Some(sources) = sources {
            sources.annotate(&mut artifact.manifest);
        }
        artifact.manifest.about = about;
        Ok(artifact)
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
/// - `bind`, `shapes`: sizes of open dimensions by symbol, and shapes of inputs by name
/// - `packed`: domains of ONNX operators that are functions of the program, such as those of `register`
/// - `tuned`: a log of `tilewright tune`, or `none`; `schedules`: a folder with schedules of layers
/// - `keep_values`: keep every layer's result for inspection; `measure`: measured instead of modeled CPU times
/// - `dump_ir`: called with the name and the graph's text after each pass
///
/// Raises ModelError if the model cannot be imported or compiled, and PassError if a pass fails.
#[pyfunction]
#[pyo3(signature = (model, *, hw=None, opt_level=2, offload="all", fallback="cpu", precision="f32", cpu_target=None,
    bind=None, shapes=None, packed=Vec::new(), tuned=None, schedules=None, keep_values=false, measure=false, dump_ir=None))]
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
    shapes: Option<&Bound<'py, PyDict>>,
    packed: Vec<String>,
    tuned: Option<PathBuf>,
    schedules: Option<PathBuf>,
    keep_values: bool,
    measure: bool,
    dump_ir: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let precision = word(py, "precision", precision, PRECISION)?;
    if opt_level > 3 {
        return Err(Class::Input.err(py, format!("opt_level={opt_level} is not possible; use 0, 1, 2 or 3")));
    }
    let request = Request {
        config: config::of_argument(py, hw)?,
        offload: word(py, "offload", offload, OFFLOAD)?,
        fallback: word(py, "fallback", fallback, &[("cpu", Fallback::Cpu), ("cuda", Fallback::Cuda(precision))])?,
        level: opt_level,
        processor: cpu_target,
        tuned: self::tuned(py, tuned)?,
        schedules,
        keep_values,
        measure,
    };
    let model = match model.cast::<PyGraph>() {
        Ok(graph) => Given::Graph(graph.get().0.clone()),
        Err(_) => Given::File(Box::new(Model::of(model, bind, shapes, packed)?)),
    };
    let mut raised: Option<PyErr> = None;
    let outcome = py.detach(|| -> anyhow::Result<Artifact> {
        let mut tell = |pass: &str, text: &str| {
            if let (Some(dump), None) = (&dump_ir, &raised) {
                raised = Python::attach(|py| dump.bind(py).call1((pass, text)).err());
            }
        };
        let dump: Option<&mut Dump> = dump_ir.as_ref().map(|_| &mut tell as _);
        match &model {
            Given::Graph(graph) => request.build(graph.as_ref().clone(), (None, About::default()), dump),
            Given::File(model) => {
                let ((graph, sources), about) = (model.import()?, model.file.about()?);
                request.build(graph, (Some(&sources), about), dump).with_context(|| model.file.display().to_string())
            }
        }
    });
    if let Some(error) = raised {
        return Err(error);
    }
    module::of_artifact(py, outcome.map_err(|error| passes::of_error(py, error))?)
}
