//! Servers that lend a device, and virtual boards, on threads of this process.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use tilewright::device::virtual_board::{self, Served};
use tilewright::device::{self, DeviceKind, Server};

use crate::config;
use crate::error::Class;
use crate::examine::Telling;
use crate::interrupt::detached;

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

/// Lends a device to other processes and machines, on threads of this process, as `tilewright serve` does.
///
/// `device` is a simulator (`fsim`, `csim`, `rtl`) or a board; `hw` is its configuration. With `devices`, several clients
/// have a simulator at the same time; others wait. It listens on `listen`, an address of this machine; with port 0 the
/// system chooses one. Clients must have the `token`, by the variable TILEWRIGHT_TOKEN.
///
/// Use it as a context manager: `with tilewright.serve("csim") as server: artifact.session(server.device)`.
///
/// Raises DeviceError if the device cannot be lent or the server cannot listen.
#[pyfunction]
#[pyo3(signature = (device="csim", *, hw=None, devices=1, listen="127.0.0.1:0", token=None))]
pub fn serve(
    py: Python<'_>,
    device: &str,
    hw: Option<&Bound<'_, PyAny>>,
    devices: usize,
    listen: &str,
    token: Option<String>,
) -> PyResult<PyServer> {
    let kind: DeviceKind =
        device.parse().map_err(|error: device::DeviceNameError| Class::Device.of_error(py, error))?;
    if !(1..=64).contains(&devices) {
        return Err(Class::Input.err(py, format!("devices={devices} is not possible; use 1 to 64")));
    }
    let config = config::of_argument(py, hw)?;
    let started = detached(py, || device::serve(kind, config, devices, listen, token))?;
    let server = started.map_err(|error| Class::Device.of_error(py, error))?;
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
