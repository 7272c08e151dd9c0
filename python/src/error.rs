//! Exceptions: the classes of `tilewright._errors`, with the texts of the command line.

use std::error::Error;
use std::fmt;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use tilewright::device::ClientError;
use tilewright::message::in_one_line;
use tilewright_runtime::{ArtifactError, CallError, SessionError};

/// Defines the classes with their names, in one order.
macro_rules! classes {
    ($($(#[$about:meta])* $class:ident = $name:literal,)*) => {
        /// A class of `tilewright._errors`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Class {
            $($(#[$about])* $class,)*
        }

        const NAMES: &[&str] = &[$($name),*];
    };
}

classes! {
    /// An argument or an array that a call does not take.
    Input = "InputError",
    /// A file that is no artifact, is damaged, or is for other hardware.
    Artifact = "ArtifactError",
    /// A model that cannot be imported or compiled.
    Model = "ModelError",
    /// A configuration that is not valid.
    Config = "ConfigError",
    /// A device that is not there or fails.
    Device = "DeviceError",
    /// A session that another thread runs.
    Busy = "BusyError",
    /// Something that was closed.
    Closed = "ClosedError",
    /// A name that nothing has.
    NotFound = "NotFoundError",
    /// A function that fails.
    Call = "CallError",
    /// A graph that is not valid.
    Graph = "GraphError",
    /// A pass that fails.
    Pass = "PassError",
}

impl Class {
    fn of<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyType>> {
        static CLASSES: [PyOnceLock<Py<PyType>>; NAMES.len()] = [const { PyOnceLock::new() }; NAMES.len()];
        CLASSES[self as usize].import(py, "tilewright._errors", NAMES[self as usize]).cloned()
    }

    /// An exception of this class.
    pub fn err(self, py: Python<'_>, text: impl fmt::Display) -> PyErr {
        match self.of(py) {
            Ok(class) => PyErr::from_type(class, (text.to_string(),)),
            Err(error) => error,
        }
    }

    /// An exception of this class with an error's text, as the command line writes it.
    pub fn of_error(self, py: Python<'_>, error: impl Into<anyhow::Error>) -> PyErr {
        self.err(py, in_one_line(&error.into()))
    }
}

/// What a function in Python raised, on its way through the library.
#[derive(Debug)]
pub struct Raised(pub PyErr);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Error for Raised {}

/// The exception of a failed call. Its cause is what a function in Python raised, if that is why.
pub fn of_call(py: Python<'_>, error: &CallError) -> PyErr {
    let CallError::Failed { source, .. } = error else {
        let class = match error {
            CallError::Unknown { .. } => Class::NotFound,
            CallError::NoDevice { .. } => Class::Device,
            _ => Class::Input,
        };
        return class.err(py, error);
    };
    if let Some(Raised(raised)) = source.downcast_ref() {
        let raised = raised.clone_ref(py);
        // Ctrl-C and the like are for the caller as they are.
        if !raised.is_instance_of::<pyo3::exceptions::PyException>(py) {
            return raised;
        }
        let failed = Class::Call.err(py, error);
        failed.set_cause(py, Some(raised));
        return failed;
    }
    let class = source.downcast_ref().map(class_of_session);
    let class = class.or(source.downcast_ref().map(|error| match error {
        ClientError::Closed { .. } => Class::Closed,
        _ => Class::Device,
    }));
    let class = class.or(source.downcast_ref::<ArtifactError>().map(|_| Class::Artifact));
    let class = class.or(source.downcast_ref::<tilewright_hw::device::DeviceError>().map(|_| Class::Device));
    class.unwrap_or(Class::Call).err(py, error)
}

/// The exception of a failed run.
pub fn of_session(py: Python<'_>, error: &SessionError) -> PyErr {
    class_of_session(error).err(py, error)
}

/// The class of a failed run.
pub fn class_of_session(error: &SessionError) -> Class {
    match error {
        SessionError::Busy => Class::Busy,
        SessionError::Closed => Class::Closed,
        SessionError::Artifact(_) | SessionError::Load { .. } | SessionError::OtherProcessor { .. } => Class::Artifact,
        SessionError::NoDevice { .. } | SessionError::Accel { .. } | SessionError::Cuda(_) => Class::Device,
        SessionError::NotRegistered { .. } => Class::NotFound,
        error if error.is_of_arguments() => Class::Input,
        _ => Class::Call,
    }
}
