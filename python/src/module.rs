//! Modules: artifacts, sessions and devices.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use tilewright::model::inference::InputError;
use tilewright_runtime::artifact::{ParametersAt, ValueInfo};
use tilewright_runtime::module::{ArtifactModule, DeviceModule, SessionModule, open_device};
use tilewright_runtime::session::{TensorMut, TensorRef};
use tilewright_runtime::tensor::{DType, shape_text};
use tilewright_runtime::{Artifact, Module, Registry, SessionError, Value};

use crate::config::PyConfig;
use crate::error::{self, Class};
use crate::function::{self, PyFunction};
use crate::interrupt::detached;
use crate::json;
use crate::tensor::{self, Lent};
use crate::value;

/// A group of functions: an artifact, a session or a device. Its functions are attributes, made when they are first
/// looked up.
#[pyclass(frozen, subclass, name = "Module", module = "tilewright")]
pub struct PyModule(pub Module);

#[pymethods]
impl PyModule {
    /// What it is: `artifact`, `session` or `device`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    /// Its name in messages.
    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }

    /// The names of its functions, sorted.
    fn functions(&self) -> Vec<String> {
        self.0.names()
    }

    /// The function of that name.
    ///
    /// Raises NotFoundError if there is none.
    fn function(&self, py: Python<'_>, name: &str) -> PyResult<PyFunction> {
        self.0.function(name).map(PyFunction).map_err(|error| error::of_call(py, &error))
    }

    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<PyFunction> {
        self.function(py, name).map_err(|error| PyAttributeError::new_err(error.value(py).to_string()))
    }

    fn __repr__(&self) -> String {
        format!("<tilewright {} {}>", self.0.kind(), self.0.name())
    }
}

impl PyModule {
    fn call<'py>(&self, py: Python<'py>, name: &str, args: &[Value]) -> PyResult<Bound<'py, PyAny>> {
        let function = self.0.function(name).map_err(|error| error::of_call(py, &error))?;
        function::call(py, &function, args)
    }
}

/// A module as an object of the class for its kind.
///
/// # Errors
/// What Python raises.
pub fn to_python(py: Python<'_>, module: Module) -> PyResult<Bound<'_, PyAny>> {
    if module.downcast::<ArtifactModule>().is_some() {
        return Ok(Bound::new(py, (PyArtifact, PyModule(module)))?.into_any());
    }
    if module.kind() == "session" {
        let own = match module.downcast::<SessionModule>() {
            Some(session) => PySession::new(py, session, &module)?,
            None => PySession::described(py, &module)?,
        };
        return Ok(Bound::new(py, (own, PyModule(module)))?.into_any());
    }
    if module.downcast::<DeviceModule>().is_some() {
        return Ok(Bound::new(py, (PyDevice, PyModule(module)))?.into_any());
    }
    Ok(Bound::new(py, PyModule(module))?.into_any())
}

/// The module of an artifact. Its sessions look for functions and devices in the process's registry.
///
/// # Errors
/// What Python raises.
pub fn of_artifact(py: Python<'_>, artifact: Artifact) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, Module::new(ArtifactModule::new(artifact, Registry::global().clone())))
}

/// A compiled model.
#[pyclass(frozen, extends = PyModule, name = "Artifact", module = "tilewright")]
pub struct PyArtifact;

impl PyArtifact {
    fn of<'a>(slf: &'a Bound<'_, Self>) -> &'a Artifact {
        // Only `to_python` makes objects of this class.
        slf.as_super().get().0.downcast::<ArtifactModule>().map(ArtifactModule::artifact).expect("an artifact")
    }
}

#[pymethods]
impl PyArtifact {
    /// Reads an artifact from its bytes, as `to_bytes` gives them.
    ///
    /// Raises ArtifactError if they are none, or damaged.
    #[staticmethod]
    fn from_bytes<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let artifact = Artifact::decode("the artifact in memory", data);
        of_artifact(py, artifact.map_err(|error| Class::Artifact.of_error(py, error))?)
    }

    /// The bytes of its file.
    fn to_bytes<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyBytes> {
        PyBytes::new(slf.py(), &PyArtifact::of(slf).encode())
    }

    /// Writes its file, whole or not at all; with `params`, weights and other constants into a file of their own.
    #[pyo3(signature = (path, *, params=None))]
    fn save(slf: &Bound<'_, Self>, path: PathBuf, params: Option<PathBuf>) -> PyResult<()> {
        let (py, artifact) = (slf.py(), PyArtifact::of(slf));
        let written = py.detach(|| match &params {
            Some(params) => artifact.write_apart(&path, params),
            None => artifact.write(&path),
        });
        written.map_err(|error| Class::Artifact.of_error(py, error))
    }

    /// The model's name.
    #[getter]
    fn model<'a>(slf: &'a Bound<'_, Self>) -> &'a str {
        &PyArtifact::of(slf).manifest.model
    }

    /// Its inputs in order: dicts with `name`, `dtype` and `shape`, where a size that differs between the artifact's shapes
    /// is its symbol.
    #[getter]
    fn inputs<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().call(slf.py(), "inputs", &[])
    }

    /// Its outputs in order: dicts with `name`, `dtype` and `shape`, where a size that differs between the artifact's shapes
    /// is None.
    #[getter]
    fn outputs<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().call(slf.py(), "outputs", &[])
    }

    /// The names of its steps.
    #[getter]
    fn steps<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().call(slf.py(), "steps", &[])
    }

    /// The configuration of its hardware; None if nothing runs on an accelerator.
    #[getter]
    fn config(slf: &Bound<'_, Self>) -> PyResult<Option<PyConfig>> {
        let hardware = PyArtifact::of(slf).manifest.hardware.as_ref();
        hardware.map(|hardware| PyConfig::parse(slf.py(), "the artifact", &hardware.toml)).transpose()
    }

    /// Its description, as `tilewright inspect --json` and the file have it.
    #[getter]
    fn manifest<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(slf.py(), &PyArtifact::of(slf).manifest)
    }

    /// Opens a session.
    ///
    /// `device` is a name as `--device` accepts it (`fsim`, `csim`, `rtl`, `serial:PATH`, `spi:PATH`, `uio`), or a device
    /// of `tilewright.device`. No device is opened if nothing runs on an accelerator.
    #[pyo3(signature = (device=None))]
    fn session<'py>(slf: &Bound<'py, Self>, device: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let device = device.map_or_else(|| Ok("fsim".into()), value::from_python)?;
        slf.as_super().get().call(slf.py(), "session", &[device])
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let manifest = &PyArtifact::of(slf).manifest;
        format!("<tilewright.Artifact {}: {} steps>", manifest.model, manifest.steps.len())
    }
}

/// A device that sessions can share. Addresses are bytes of its memory.
#[pyclass(frozen, extends = PyModule, name = "Device", module = "tilewright")]
pub struct PyDevice;

/// An input or output of a session.
struct Edge {
    name: String,
    dtype: DType,
    /// `None` if some of its sizes are open.
    shape: Option<Vec<usize>>,
    /// Its type and shape in messages.
    text: String,
    /// What `numpy.empty` takes.
    for_numpy: [Py<PyAny>; 2],
}

impl Edge {
    fn new(py: Python<'_>, name: &str, dtype: DType, shape: Option<Vec<usize>>, sizes: &str) -> PyResult<Edge> {
        let for_numpy =
            [tensor::shape_tuple(py, shape.as_deref().unwrap_or_default())?, tensor::numpy_dtype(py, dtype)?];
        Ok(Edge { name: name.into(), dtype, shape, text: format!("{dtype} {sizes}"), for_numpy })
    }

    /// The input or output that a session describes: a map of its name, type and shape.
    fn described(py: Python<'_>, value: &Value) -> PyResult<Edge> {
        let wrong = || Class::Call.err(py, format!("the session describes an input or output as {value}"));
        let Value::Map(map) = value else { return Err(wrong()) };
        let (Some(Value::String(name)), Some(Value::String(dtype)), Some(Value::List(sizes))) =
            (map.get("name"), map.get("dtype"), map.get("shape"))
        else {
            return Err(wrong());
        };
        let dtype = DType::from_name(dtype).ok_or_else(wrong)?;
        let size = |size: &Value| match size {
            Value::Integer(size) => usize::try_from(*size).ok(),
            _ => None,
        };
        let text = |size: &Value| match size {
            Value::Integer(size) => size.to_string(),
            Value::String(symbol) => symbol.to_string(),
            _ => "?".into(),
        };
        let text = sizes.iter().map(text).collect::<Vec<_>>().join("x");
        Edge::new(py, name, dtype, sizes.iter().map(size).collect(), &text)
    }

    /// What it is, with its name and type, for messages.
    fn label(&self, what: &str) -> String {
        format!("{what} {} ({})", self.name, self.text)
    }

    /// Checks an array for an input of a server's session, before it crosses.
    fn check(&self, py: Python<'_>, array: &Lent) -> PyResult<()> {
        let (name, view) = (self.name.clone(), &array.view);
        let error = match &self.shape {
            _ if view.dtype != self.dtype => SessionError::InputType { name, found: view.dtype, wanted: self.dtype },
            Some(shape) if view.shape != *shape => {
                SessionError::InputShape { name, found: view.shape.clone(), wanted: shape.clone() }
            }
            _ => return Ok(()),
        };
        Err(error::of_session(py, &error))
    }
}

/// A model that is ready to run, any number of times, in one thread at a time: here, or on a server (`Remote.load`).
#[pyclass(frozen, extends = PyModule, name = "Session", module = "tilewright")]
pub struct PySession {
    edges: Vec<Edge>,
    inputs: usize,
    /// Whether it is on a server.
    is_of_server: bool,
    /// Whether a session of a server was closed.
    is_closed: AtomicBool,
}

impl PySession {
    fn new(py: Python<'_>, session: &SessionModule, module: &Module) -> PyResult<PySession> {
        let [inputs, outputs] = session.edges();
        if inputs.is_empty() {
            return PySession::described(py, module);
        }
        let edge = |info: &ValueInfo| {
            Edge::new(py, &info.name, info.dtype, Some(info.shape.clone()), &shape_text(&info.shape))
        };
        let edges = inputs.iter().chain(outputs).map(edge).collect::<PyResult<_>>()?;
        Ok(PySession { edges, inputs: inputs.len(), is_of_server: false, is_closed: AtomicBool::new(false) })
    }

    /// A session that is asked for its inputs and outputs: one on a server, or one that compiles when it sees shapes.
    fn described(py: Python<'_>, module: &Module) -> PyResult<PySession> {
        let ask = |name: &str| {
            let described = detached(py, || module.function(name)?.call(&[]))?;
            described.map_err(|error| error::of_call(py, &error))
        };
        let edges = |described: &Value| -> PyResult<Vec<Edge>> {
            let Value::List(list) = described else { return Ok(Vec::new()) };
            list.iter().map(|one| Edge::described(py, one)).collect()
        };
        let mut all = edges(&ask("inputs")?)?;
        let inputs = all.len();
        // Outputs of some models are known only for given shapes.
        all.extend(ask("outputs").and_then(|outputs| edges(&outputs)).unwrap_or_default());
        let is_of_server = module.downcast::<SessionModule>().is_none();
        Ok(PySession { edges: all, inputs, is_of_server, is_closed: AtomicBool::new(false) })
    }

    /// The session, if it is one of this process.
    fn here<'a>(slf: &'a Bound<'_, Self>) -> Option<&'a SessionModule> {
        slf.as_super().get().0.downcast::<SessionModule>()
    }

    /// Calls one of its functions.
    fn call<'py>(slf: &Bound<'py, Self>, name: &str, args: &[Value]) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().is_closed.load(Ordering::Relaxed) {
            return Err(error::of_session(slf.py(), &SessionError::Closed));
        }
        slf.as_super().get().call(slf.py(), name, args)
    }

    /// The arrays of the inputs, in the model's order.
    fn given(&self, args: &Bound<'_, PyTuple>, named: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<Lent>> {
        let py = args.py();
        let edges = &self.edges[..self.inputs];
        let err = |error: InputError| Class::Input.err(py, error);
        if args.len() > edges.len() {
            return Err(err(InputError::TooMany { given: args.len(), known: edges.len() }));
        }
        let mut list: Vec<Option<Lent>> = Vec::with_capacity(edges.len());
        for (array, edge) in args.iter().zip(edges) {
            list.push(Some(lent(&array, || edge.label("input"))?));
        }
        list.resize_with(edges.len(), || None);
        for (name, array) in named.into_iter().flat_map(|named| named.iter()) {
            let name: String = name.extract()?;
            let Some(place) = edges.iter().position(|edge| edge.name == name) else {
                return Err(err(InputError::Unknown {
                    name,
                    known: edges.iter().map(|edge| edge.name.clone()).collect(),
                }));
            };
            if list[place].replace(lent(&array, || edges[place].label("input"))?).is_some() {
                return Err(err(InputError::Twice { name }));
            }
        }
        let missing = |edge: &Edge| {
            let (name, remedy) = (edge.name.clone(), "pass its array".to_string());
            err(InputError::Missing { name, ty: edge.text.clone(), remedy })
        };
        let whole = |(array, edge): (Option<Lent>, &Edge)| {
            let array = array.ok_or_else(|| missing(edge))?;
            if self.is_of_server {
                edge.check(py, &array)?;
            }
            Ok(array)
        };
        list.into_iter().zip(edges).map(whole).collect()
    }

    /// New arrays for the outputs, or the caller's.
    fn room<'py>(&self, py: Python<'py>, out: Option<&Bound<'py, PyAny>>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let edges = &self.edges[self.inputs..];
        let Some(out) = out else {
            return edges
                .iter()
                .map(|Edge { for_numpy: [shape, dtype], .. }| tensor::empty(py, shape, dtype))
                .collect();
        };
        match out.extract::<Vec<Bound<'py, PyAny>>>() {
            Ok(list) if !tensor::is_array(out) => Ok(list),
            _ => Ok(vec![out.clone()]),
        }
    }

    /// The memory of the arrays for the outputs.
    fn memory(&self, py: Python<'_>, given: &[Lent], arrays: &[Bound<'_, PyAny>]) -> PyResult<Vec<Lent>> {
        let known = &self.edges[self.inputs..];
        // Outputs that depend on the inputs' shapes are counted when the model is ready for these.
        if !known.is_empty() && arrays.len() != known.len() {
            let names = known.iter().map(|edge| edge.name.clone()).collect();
            let error = SessionError::OutputCount { given: arrays.len(), names };
            return Err(error::of_session(py, &error));
        }
        let mut room: Vec<Lent> = Vec::with_capacity(arrays.len());
        for (place, array) in arrays.iter().enumerate() {
            let name = || known.get(place).map_or(place.to_string(), |edge| edge.name.clone());
            let label = || known.get(place).map_or_else(|| format!("output {place}"), |edge| edge.label("output"));
            let memory = lent(array, label)?;
            let wrong = |what: &str| Class::Input.err(py, format!("the memory for output {} {what}", name()));
            if memory.read_only {
                return Err(wrong("cannot be written"));
            }
            if given.iter().chain(&room).any(|other| overlap(other, &memory)) {
                return Err(wrong("overlaps with that of another input or output"));
            }
            room.push(memory);
        }
        Ok(room)
    }
}

/// The memory of an array; `what` says in messages what it is for.
fn lent(array: &Bound<'_, PyAny>, what: impl FnOnce() -> String) -> PyResult<Lent> {
    Lent::of(array).map_err(|reason| Class::Input.err(array.py(), format!("{}: {reason}", what())))
}

#[pymethods]
impl PySession {
    /// Runs the model once.
    ///
    /// The inputs are arrays by position in the model's order, or by name. Each is a NumPy array or any object with
    /// `__dlpack__`, of the input's element type and shape (one of the shapes, if the artifact has several), contiguous, and
    /// is read in place. Returns a list of NumPy arrays in the order of the outputs, or `out`, the arrays to write them to.
    /// Other threads of Python run meanwhile.
    ///
    /// Raises InputError if an array does not fit, before anything runs, and BusyError if another thread runs the
    /// session.
    #[pyo3(signature = (*args, out=None, **named))]
    fn run<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (py, this) = (slf.py(), slf.get());
        let given = this.given(args, named)?;
        let Some(session) = PySession::here(slf) else { return PySession::run_on_server(slf, given, out) };
        let is_known = |(array, edge): (&Lent, &Edge)| edge.shape.as_ref() == Some(&array.view.shape);
        let has_outputs = this.edges.len() > this.inputs;
        if out.is_none() && !(has_outputs && given.iter().zip(&this.edges).all(is_known)) {
            // Perhaps another of the model's shapes, for which it has other outputs.
            let given: Vec<Value> = given.into_iter().map(|array| array.into_tensor().into()).collect();
            return Ok(PySession::call(slf, "run", &given)?.cast_into()?);
        }
        let arrays = this.room(py, out)?;
        let room = this.memory(py, &given, &arrays)?;
        let outcome = detached(py, move || {
            let inputs: Vec<TensorRef> = given
                .iter()
                .map(|array| TensorRef { dtype: array.view.dtype, shape: &array.view.shape, bytes: array.as_ref() })
                .collect();
            let mut room = room;
            let mut outputs: Vec<TensorMut> = room.iter_mut().map(Lent::as_output).collect();
            session.run_into(&inputs, &mut outputs).map(drop)
        })?;
        outcome.map_err(|error| error::of_session(py, &error))?;
        PyList::new(py, arrays)
    }

    /// Runs the model once, and also says what each step took: a dict of `outputs`, `seconds`, `cycles` (None if the
    /// device has none) and `steps`.
    #[pyo3(signature = (*args, **named))]
    fn report<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = slf.get().given(args, named)?;
        let given: Vec<Value> = given.into_iter().map(|array| array.into_tensor().into()).collect();
        PySession::call(slf, "report", &given)
    }

    /// Runs the model `times` times and measures each run: a dict of `seconds`, an f64 array with the time of each from its
    /// inputs to its outputs, and `cycles` of a run (None if the device has none).
    ///
    /// Raises CallError if `times` is not 1 to 1,048,576, else as `run`.
    #[pyo3(signature = (times, *args, **named))]
    fn time<'py>(
        slf: &Bound<'py, Self>,
        times: i64,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = slf.get().given(args, named)?.into_iter().map(|array| array.into_tensor().into());
        let given: Vec<Value> = std::iter::once(times.into()).chain(given).collect();
        PySession::call(slf, "time", &given)
    }

    /// Frees its memory, also that of the device, after the frames that were submitted. Every later call raises
    /// ClosedError. Does nothing if it was closed before. A session is also a context manager, which closes it.
    ///
    /// Raises BusyError while another thread runs it.
    fn close(slf: &Bound<'_, Self>) -> PyResult<()> {
        if slf.get().is_closed.load(Ordering::Relaxed) {
            return Ok(());
        }
        PySession::call(slf, "close", &[])?;
        slf.get().is_closed.store(PySession::here(slf).is_none(), Ordering::Relaxed);
        Ok(())
    }

    /// Whether it was closed.
    #[getter]
    fn closed(slf: &Bound<'_, Self>) -> bool {
        let here = PySession::here(slf).map(SessionModule::is_closed);
        here.unwrap_or_else(|| slf.get().is_closed.load(Ordering::Relaxed))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(slf: &Bound<'_, Self>, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        PySession::close(slf)
    }

    /// The model's inputs in order: dicts with `name`, `dtype` and `shape`.
    #[getter]
    fn inputs<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        PySession::call(slf, "inputs", &[])
    }

    /// The model's outputs in order: dicts with `name`, `dtype` and `shape`.
    #[getter]
    fn outputs<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        PySession::call(slf, "outputs", &[])
    }
}

impl PySession {
    /// Runs the model on the server. `out` receives copies of the outputs.
    fn run_on_server<'py>(
        slf: &Bound<'py, Self>,
        given: Vec<Lent>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (py, this) = (slf.py(), slf.get());
        let given: Vec<Value> = given.into_iter().map(|array| array.into_tensor().into()).collect();
        let outputs = PySession::call(slf, "run", &given)?.cast_into::<PyList>()?;
        let Some(out) = out else { return Ok(outputs) };
        let arrays = this.room(py, Some(out))?;
        if arrays.len() != outputs.len() {
            let names = this.edges[this.inputs..].iter().map(|edge| edge.name.clone()).collect();
            return Err(error::of_session(py, &SessionError::OutputCount { given: arrays.len(), names }));
        }
        for (place, (array, output)) in arrays.iter().zip(outputs.iter()).enumerate() {
            let copied = tensor::copy(py, array, &output);
            copied.map_err(|error| Class::Input.err(py, format!("the memory for output {place}: {error}")))?;
        }
        PyList::new(py, arrays)
    }
}

/// Whether two arrays share memory.
fn overlap(a: &Lent, b: &Lent) -> bool {
    let range = |lent: &Lent| (lent.view.data as usize, lent.view.data as usize + lent.view.len);
    let ((a, a_end), (b, b_end)) = (range(a), range(b));
    a < b_end && b < a_end
}

/// A name and the file's bytes of an artifact, given as the object or as the path of its file.
///
/// # Errors
/// `ArtifactError`, or `TypeError` if it is neither.
pub fn file_of(model: &Bound<'_, PyAny>) -> PyResult<(String, Vec<u8>)> {
    let py = model.py();
    if let Ok(artifact) = model.cast::<PyArtifact>() {
        let artifact = PyArtifact::of(artifact);
        return Ok((artifact.manifest.model.clone(), py.detach(|| artifact.encode())));
    }
    let path: PathBuf = model.extract()?;
    let read = py.detach(|| Artifact::read_with(&path, ParametersAt::Beside(&path)).map(|artifact| artifact.encode()));
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((name, read.map_err(|error| Class::Artifact.of_error(py, error))?))
}

/// Reads the artifact in a file, as `compile` or `tilewright compile` writes it.
///
/// If its parameters are in a file of their own, that file is in the same folder, or at the path `params`.
///
/// Raises ArtifactError if the file is none, or is damaged.
#[pyfunction]
#[pyo3(signature = (path, *, params=None))]
pub fn load(py: Python<'_>, path: PathBuf, params: Option<PathBuf>) -> PyResult<Bound<'_, PyAny>> {
    let artifact = py.detach(|| {
        let at = params.as_deref().map_or(ParametersAt::Beside(&path), ParametersAt::File);
        Artifact::read_with(&path, at)
    });
    of_artifact(py, artifact.map_err(|error| Class::Artifact.of_error(py, error))?)
}

/// Opens a device that sessions can share, by the name that `--device` accepts. `hw` is its configuration.
///
/// Raises DeviceError if there is no such device, or it does not answer.
#[pyfunction]
#[pyo3(signature = (name, hw=None))]
pub fn device<'py>(py: Python<'py>, name: &str, hw: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let config = crate::config::of_argument(py, hw)?.to_toml();
    let module = detached(py, || open_device(Registry::global(), name, &config))?;
    to_python(py, module.map_err(|error| error::of_call(py, &error))?)
}
