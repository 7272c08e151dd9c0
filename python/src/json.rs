//! JSON as Python's dicts and lists.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use serde_json::Value;

use crate::error::Class;

/// What an object is in JSON, as Python's dicts, lists, strings and numbers.
///
/// # Errors
/// What Python raises.
pub fn to_python<'py>(py: Python<'py>, object: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(object).map_err(|error| Class::Input.err(py, error))?;
    parse(py, &text)
}

/// JSON text as Python's dicts, lists, strings and numbers.
///
/// # Errors
/// What Python raises.
pub fn parse<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    LOADS.import(py, "json", "loads")?.call1((text,))
}

/// An object as JSON.
///
/// # Errors
/// What Python raises if it is no JSON.
pub fn of_python(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    static DUMPS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = object.py();
    let text: String = DUMPS.import(py, "json", "dumps")?.call1((object,))?.extract()?;
    serde_json::from_str(&text).map_err(|error| Class::Input.err(py, error))
}
