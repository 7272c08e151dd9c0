//! Modules: artifacts, sessions and devices.

use std::path::PathBuf;

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use tilewright::model::inference::InputError;
use tilewright_runtime::artifact::{ParametersAt, ValueInfo};
use tilewright_runtime::module::{ArtifactModule, DeviceModule, SessionModule, open_device};
use tilewright_runtime::session::{TensorMut, TensorRef};
use tilewright_runtime::tensor::shape_text;
use tilewright_runtime::{Artifact, Module, Registry, Value};

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
    if let Some(session) = module.downcast::<SessionModule>() {
        let own = PySession::new(py, session)?;
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
    info: ValueInfo,
    /// What `numpy.empty` takes.
    shape: Py<PyAny>,
    dtype: Py<PyAny>,
}

impl Edge {
    fn text(&self) -> String {
        format!("{} {}", self.info.dtype, shape_text(&self.info.shape))
    }
}

/// A model that is ready to run, any number of times, in one thread at a time.
#[pyclass(frozen, extends = PyModule, name = "Session", module = "tilewright")]
pub struct PySession {
    edges: Vec<Edge>,
    inputs: usize,
}

impl PySession {
    fn new(py: Python<'_>, session: &SessionModule) -> PyResult<PySession> {
        let [inputs, outputs] = session.edges();
        let edge = |info: &ValueInfo| {
            let (shape, dtype) = (tensor::shape_tuple(py, &info.shape)?, tensor::numpy_dtype(py, info.dtype)?);
            Ok(Edge { info: info.clone(), shape, dtype })
        };
        let edges = inputs.iter().chain(outputs).map(edge).collect::<PyResult<_>>()?;
        Ok(PySession { edges, inputs: inputs.len() })
    }

    fn of<'a>(slf: &'a Bound<'_, Self>) -> &'a SessionModule {
        // Only `to_python` makes objects of this class.
        slf.as_super().get().0.downcast::<SessionModule>().expect("a session")
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
            list.push(Some(lent(&array, edge, "input")?));
        }
        list.resize_with(edges.len(), || None);
        for (name, array) in named.into_iter().flat_map(|named| named.iter()) {
            let name: String = name.extract()?;
            let Some(place) = edges.iter().position(|edge| edge.info.name == name) else {
                return Err(err(InputError::Unknown {
                    name,
                    known: edges.iter().map(|edge| edge.info.name.clone()).collect(),
                }));
            };
            if list[place].replace(lent(&array, &edges[place], "input")?).is_some() {
                return Err(err(InputError::Twice { name }));
            }
        }
        let missing = |edge: &Edge| {
            let (name, remedy) = (edge.info.name.clone(), "pass its array".to_string());
            err(InputError::Missing { name, ty: edge.text(), remedy })
        };
        list.into_iter().zip(edges).map(|(array, edge)| array.ok_or_else(|| missing(edge))).collect()
    }

    /// New arrays for the outputs, or the caller's.
    fn room<'py>(&self, py: Python<'py>, out: Option<&Bound<'py, PyAny>>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let edges = &self.edges[self.inputs..];
        let Some(out) = out else {
            return edges.iter().map(|edge| tensor::empty(py, &edge.shape, &edge.dtype)).collect();
        };
        match out.extract::<Vec<Bound<'py, PyAny>>>() {
            Ok(list) if !tensor::is_array(out) => Ok(list),
            _ => Ok(vec![out.clone()]),
        }
    }
}

/// The memory of the array for an input or output, as `what` says.
fn lent(array: &Bound<'_, PyAny>, edge: &Edge, what: &str) -> PyResult<Lent> {
    Lent::of(array).map_err(|reason| {
        Class::Input.err(array.py(), format!("{what} {} ({}): {reason}", edge.info.name, edge.text()))
    })
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
        let edges = this.edges.iter();
        if out.is_none() && given.iter().zip(edges).any(|(array, edge)| array.view.shape != edge.info.shape) {
            // Perhaps another of the model's shapes, for which it has other outputs.
            let given: Vec<Value> = given.into_iter().map(|array| array.into_tensor().into()).collect();
            return Ok(slf.as_super().get().call(py, "run", &given)?.cast_into()?);
        }
        let arrays = this.room(py, out)?;
        let edges = this.edges[this.inputs..].iter();
        let mut room: Vec<Lent> = Vec::with_capacity(arrays.len());
        for (array, edge) in arrays.iter().zip(edges) {
            let memory = lent(array, edge, "output")?;
            let name = &edge.info.name;
            if memory.read_only {
                return Err(Class::Input.err(py, format!("the memory for output {name} cannot be written")));
            }
            if given.iter().chain(&room).any(|other| overlap(other, &memory)) {
                let text = format!("the memory for output {name} overlaps with that of another input or output");
                return Err(Class::Input.err(py, text));
            }
            room.push(memory);
        }
        if arrays.len() != room.len() {
            let names = this.edges[this.inputs..].iter().map(|edge| edge.info.name.clone()).collect();
            let error = tilewright_runtime::SessionError::OutputCount { given: arrays.len(), names };
            return Err(error::of_session(py, &error));
        }
        let session = PySession::of(slf);
        let outcome = detached(py, move || {
            let inputs: Vec<TensorRef> = given
                .iter()
                .map(|array| TensorRef { dtype: array.view.dtype, shape: &array.view.shape, bytes: array.as_ref() })
                .collect();
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
        slf.as_super().get().call(slf.py(), "report", &given)
    }

    /// The model's inputs in order: dicts with `name`, `dtype` and `shape`.
    #[getter]
    fn inputs<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().call(slf.py(), "inputs", &[])
    }

    /// The model's outputs in order: dicts with `name`, `dtype` and `shape`.
    #[getter]
    fn outputs<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.as_super().get().call(slf.py(), "outputs", &[])
    }
}

/// Whether two arrays share memory.
fn overlap(a: &Lent, b: &Lent) -> bool {
    let range = |lent: &Lent| (lent.view.data as usize, lent.view.data as usize + lent.view.len);
    let ((a, a_end), (b, b_end)) = (range(a), range(b));
    a < b_end && b < a_end
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
