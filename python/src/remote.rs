//! Servers that lend a device, and virtual boards, on threads of this process; sessions of servers.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilewright::device::virtual_board::{self, Served};
use tilewright::device::{self, Access, ClientError, DeviceKind, Extras, Lends, Listen, Native, Remote, Server, Spec};
use tilewright::message::in_one_line;
use tilewright_runtime::CallError;

use crate::config::{self, PyConfig};
use crate::error::{self, Class};
use crate::examine::Telling;
use crate::function::PyFunction;
use crate::interrupt::detached;
use crate::{module, value};

/// Seconds of CPU time of a process for CPU code of clients, all threads together.
const NATIVE_SECONDS: u64 = 3600;

/// What runs until it is closed.
struct Open<T>(Mutex<Option<T>>);

impl<T: Send> Open<T> {
    fn new(running: T) -> Open<T> {
        Open(Mutex::new(Some(running)))
    }

    /// Ends it. Does nothing if that was done before.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }

    fn is_closed(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

/// A server that lends a device. It ends with the `with` block, by `close`, or with this object.
#[pyclass(frozen, name = "Server", module = "tilewright")]
pub struct PyServer {
    server: Open<Server>,
    address: String,
}

#[pymethods]
impl PyServer {
    /// Where it listens: `HOST:PORT`.
    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    /// The name of its device for sessions and commands: `remote:HOST:PORT`.
    #[getter]
    fn device(&self) -> String {
        format!("remote:{}", self.address)
    }

    /// Whether it has ended.
    #[getter]
    fn closed(&self) -> bool {
        self.server.is_closed()
    }

    /// Ends it, and the sessions of its clients.
    fn close(&self, py: Python<'_>) {
        self.server.close(py);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("<tilewright.Server {}{}>", self.address, if self.closed() { ", closed" } else { "" })
    }
}

/// A session of a server: its functions, and models that run there. It ends with the `with` block, by `close`, or with this
/// object and all sessions and functions that it made. The server's functions are attributes, too.
#[pyclass(frozen, name = "Remote", module = "tilewright")]
pub struct PyRemote {
    remote: Mutex<Option<Arc<Remote>>>,
    server: String,
}

impl PyRemote {
    fn open(&self, py: Python<'_>) -> PyResult<Arc<Remote>> {
        let remote = self.remote.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let closed = || Class::Closed.of_error(py, ClientError::Closed { server: self.server.clone() });
        remote.ok_or_else(closed)
    }
}

#[pymethods]
impl PyRemote {
    /// The server, as it was given: `remote:HOST:PORT` or `tracker:HOST:PORT/KIND`.
    #[getter]
    fn server(&self) -> &str {
        &self.server
    }

    /// The device that this session has, by its name on the server; None without one.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(self.open(py)?.device().map(|(name, _)| name.clone()))
    }

    /// The configuration of the device; None without one.
    #[getter]
    fn config(&self, py: Python<'_>) -> PyResult<Option<PyConfig>> {
        Ok(self.open(py)?.device().map(|(_, config)| PyConfig(config.clone())))
    }

    /// The names of the server's functions, sorted.
    fn functions(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.open(py)?.module().names())
    }

    /// The server's function of that name. Arguments and results are values: None, numbers, texts, bytes, arrays, lists,
    /// dicts, and the server's own functions and modules.
    ///
    /// Raises NotFoundError if there is none.
    fn function(&self, py: Python<'_>, name: &str) -> PyResult<PyFunction> {
        let remote = self.open(py)?;
        let known = remote.module().names();
        if !known.iter().any(|known| known == name) {
            let error = CallError::Unknown { of: self.server.clone(), name: name.to_string(), known };
            return Err(error::of_call(py, &error));
        }
        remote.module().function(name).map(PyFunction).map_err(|error| error::of_call(py, &error))
    }

    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<PyFunction> {
        let is_closed = self.closed();
        self.function(py, name).map_err(|error| match is_closed {
            true => error,
            false => PyAttributeError::new_err(error.value(py).to_string()),
        })
    }

    /// Sends a compiled model to the server and makes a session of it there: `run` and `report` use the server's device and
    /// CPU, and only inputs and outputs cross; `time` measures by the server's clock.
    ///
    /// `model` is an artifact, or the path of its file; its parameters are sent with it. `progress` is called with
    /// `upload`, the bytes that are sent, and all bytes.
    ///
    /// Raises ArtifactError if the file is damaged, CallError if the server refuses it: it was made for another
    /// configuration, it has code for the CPU and the server does not allow it, or it needs too much memory.
    #[pyo3(signature = (model, *, progress=None))]
    fn load<'py>(
        &self,
        py: Python<'py>,
        model: &Bound<'py, PyAny>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let remote = self.open(py)?;
        let (name, bytes) = module::file_of(model)?;
        let telling = Telling::new(progress.as_ref());
        let sent = |sent: u64, all: u64| telling.tell("upload", sent as usize, all as usize);
        let loaded = detached(py, || remote.load(&name, bytes.into(), &sent))?;
        let loaded = telling.finish(py, Ok(loaded))?;
        module::to_python(py, loaded.map_err(|error| error::of_call(py, &error))?)
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.remote.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Ends it after the call that runs, and gives the device back. Every later call, also of its sessions and functions,
    /// raises ClosedError.
    fn close(&self, py: Python<'_>) {
        let remote = self.remote.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| {
            if let Some(remote) = remote {
                remote.close();
            }
        });
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("<tilewright.Remote {}{}>", self.server, if self.closed() { ", closed" } else { "" })
    }
}

/// Opens a session of a server (`tilewright serve`, `tilewright.serve`), for models that run there and for its functions.
///
/// `server` is `remote:HOST:PORT`, or `tracker:HOST:PORT/KIND` for a server that a tracker chooses. The session waits for
/// the server's device and has it until it is closed, unless `device` is False: then only functions can be called, and
/// models can run that need no accelerator. With `hw`, the device must have this configuration.
///
/// `token` is the server's token, `certificate` the path of the PEM file with the certificate that the server's must be or
/// be signed by, which turns TLS on, and `insecure` allows to send the token without TLS beyond this machine. Those that
/// are not given come from the variables TILEWRIGHT_TOKEN or TILEWRIGHT_TOKEN_FILE, TILEWRIGHT_TLS_CERT and
/// TILEWRIGHT_INSECURE. `progress` is called with what it waits for.
///
/// Use it as a context manager: `with tilewright.connect("remote:board.local:7878") as remote: remote.load("model.twa")`.
///
/// Raises DeviceError if the server cannot be reached or refuses, InputError if an argument is not valid.
#[pyfunction]
#[pyo3(signature = (server, *, device=true, hw=None, token=None, certificate=None, insecure=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
pub fn connect(
    py: Python<'_>,
    server: &str,
    device: bool,
    hw: Option<&Bound<'_, PyAny>>,
    token: Option<&str>,
    certificate: Option<PathBuf>,
    insecure: Option<bool>,
    progress: Option<Py<PyAny>>,
) -> PyResult<PyRemote> {
    let kind: DeviceKind =
        server.parse().map_err(|error: device::DeviceNameError| Class::Device.of_error(py, error))?;
    let config = hw.map(|hw| config::of_argument(py, Some(hw))).transpose()?;
    let access = Access::from_environment().and_then(|access| access.with(token, certificate.as_deref(), insecure));
    let access = access.map_err(|error| Class::Input.of_error(py, error))?;
    let telling = Telling::new(progress.as_ref());
    let told = |what: &str| telling.tell(what, 0, 1);
    let opened = detached(py, || match device {
        true => device::open_server(kind, Some(access), config.as_ref(), Extras::default(), &told),
        false => device::open_functions(kind, Some(access)),
    })?;
    let opened = telling.finish(py, Ok(opened))?;
    let remote = opened.map_err(|error| Class::Device.of_error(py, error))?;
    Ok(PyRemote { remote: Mutex::new(Some(Arc::new(remote))), server: server.to_string() })
}

/// Runs the CPU code of a client of a server, whose process this is.
///
/// # Errors
/// The reason, for the server's log.
#[pyfunction]
#[pyo3(name = "_run_native")]
pub fn run_native(py: Python<'_>) -> PyResult<()> {
    py.detach(device::run_native).map_err(|error| Class::Call.err(py, error))
}

/// The process for CPU code of clients: Python with this library alone, without NumPy and the package.
fn native(py: Python<'_>) -> PyResult<Native> {
    let python: PathBuf = py.import("sys")?.getattr("executable")?.extract()?;
    let library: String = py.import("tilewright._native")?.getattr("__file__")?.extract()?;
    let code = "import importlib.util, sys\n\
        spec = importlib.util.spec_from_file_location('tilewright._native', sys.argv[1])\n\
        module = importlib.util.module_from_spec(spec)\n\
        spec.loader.exec_module(module)\n\
        module._run_native()\n";
    let arguments = ["-I", "-S", "-c", code, &library].map(std::ffi::OsString::from).to_vec();
    Ok(Native { program: python, arguments, variables: Vec::new(), cpu_seconds: NATIVE_SECONDS })
}

/// Why [`serve`] cannot serve, with its own arguments in place of the options of `tilewright serve`.
fn refused(py: Python<'_>, error: impl Into<anyhow::Error>) -> PyErr {
    const ARGUMENTS: [(&str, &str); 7] = [
        (" (--token-file)", ""),
        ("--tls-cert", "certificate"),
        ("--tls-key", "key"),
        ("--insecure", "insecure=True"),
        ("--listen", "listen"),
        ("--devices", "devices"),
        ("--device", "device"),
    ];
    let text = in_one_line(&error.into());
    Class::Device.err(py, ARGUMENTS.iter().fold(text, |text, (option, argument)| text.replace(option, argument)))
}

/// Lends a device to other processes and machines, on threads of this process, as `tilewright serve` does.
///
/// `device` is a simulator (`fsim`, `csim`, `rtl`) or a board; `hw` is its configuration. With `devices`, several clients
/// have a simulator at the same time; others wait. It listens on `listen`, an address of this machine; with port 0 the
/// system chooses one. Clients must have the `token`. They can call `functions`, a dict of functions by their names, on
/// threads of the server. An address beyond this machine needs a token and TLS, or `insecure`; `certificate` and `key` are
/// the paths of the PEM files with a certificate for TLS and its private key. With `allow_native`, models that clients
/// load may have code for the CPU, which runs in processes with limits, but with the rights of this user.
///
/// Use it as a context manager: `with tilewright.serve("csim") as server: artifact.session(server.device)`.
///
/// Raises DeviceError if the device cannot be lent or the server cannot listen, InputError if only one of `certificate` and
/// `key` is given.
#[pyfunction]
#[pyo3(signature = (device="csim", *, hw=None, devices=1, listen="127.0.0.1:0", token=None, certificate=None, key=None,
                    insecure=false, functions=None, allow_native=false))]
#[expect(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
pub fn serve(
    py: Python<'_>,
    device: &str,
    hw: Option<&Bound<'_, PyAny>>,
    devices: usize,
    listen: &str,
    token: Option<&str>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    insecure: bool,
    functions: Option<&Bound<'_, PyDict>>,
    allow_native: bool,
) -> PyResult<PyServer> {
    let kind = DeviceKind::among(device, Spec::can_be_lent).map_err(|text| Class::Device.err(py, text))?;
    if !(1..=64).contains(&devices) {
        return Err(Class::Input.err(py, format!("devices={devices} is not possible; use 1 to 64")));
    }
    let tls = match (&certificate, &key) {
        (Some(certificate), Some(key)) => Some((certificate.as_path(), key.as_path())),
        (None, None) => None,
        _ => return Err(Class::Input.err(py, "TLS needs both certificate and key; give both")),
    };
    let config = config::of_argument(py, hw)?;
    let lends = device::lends(kind, config, devices).map_err(|error| refused(py, error))?;
    for (name, callable) in functions.into_iter().flat_map(|functions| functions.iter()) {
        let name: String = name.extract()?;
        lends.functions.add(value::function(&callable, Some(&name))?);
    }
    let lends = Lends { native: allow_native.then(|| native(py)).transpose()?, ..lends };
    let started = detached(py, || device::serve(lends, Listen { address: listen, token, tls, insecure }))?;
    let server = started.map_err(|error| refused(py, error))?;
    Ok(PyServer { address: server.address().to_string(), server: Open::new(server) })
}

/// A board that is simulated signal by signal. It ends with the `with` block, by `close`, or with this object.
#[pyclass(frozen, name = "VirtualBoard", module = "tilewright")]
pub struct PyVirtualBoard {
    board: Open<Served>,
    path: String,
}

#[pymethods]
impl PyVirtualBoard {
    /// The path of its serial port.
    #[getter]
    fn port(&self) -> &str {
        &self.path
    }

    /// The name of the device for sessions and commands: `serial:PATH`.
    #[getter]
    fn device(&self) -> String {
        format!("serial:{}", self.path)
    }

    /// Whether it has ended.
    #[getter]
    fn closed(&self) -> bool {
        self.board.is_closed()
    }

    /// Switches it off.
    fn close(&self, py: Python<'_>) {
        self.board.close(py);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("<tilewright.VirtualBoard {}{}>", self.path, if self.closed() { ", closed" } else { "" })
    }
}

/// Simulates a board with a core of this configuration and a serial port, as `tilewright virtual-board --hw` does, on a
/// thread of this process. The first board of a configuration builds its simulator with Verilator, which takes about a
/// minute; `progress` is told.
///
/// Use it as a context manager: `with tilewright.virtual_board("1x4x4") as board: artifact.session(board.device)`.
///
/// Raises DeviceError if Verilator is missing or fails.
#[pyfunction]
#[pyo3(name = "virtual_board", signature = (hw=None, *, progress=None))]
pub fn board(py: Python<'_>, hw: Option<&Bound<'_, PyAny>>, progress: Option<Py<PyAny>>) -> PyResult<PyVirtualBoard> {
    let config = config::of_argument(py, hw)?;
    let telling = Telling::new(progress.as_ref());
    let outcome = detached(py, || -> anyhow::Result<_> {
        let tell = |what: &str| telling.tell(what, 0, 1);
        let board = virtual_board::build(&config, None, &|at| device::tell_build(at, &tell))?;
        Ok(Served::new(board)?)
    })?;
    let board = telling.finish(py, Ok(outcome))?.map_err(|error| Class::Device.of_error(py, error))?;
    Ok(PyVirtualBoard { path: board.path().to_string(), board: Open::new(board) })
}
