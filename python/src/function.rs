//! Functions, and the registry of those with a name.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tilewright_runtime::{Function, Registry, Value};

use crate::error::{self, Class};
use crate::interrupt::detached;
use crate::value;

/// A function of values, in whichever language it is written.
#[pyclass(frozen, name = "Function", module = "tilewright")]
pub struct PyFunction(pub Function);

#[pymethods]
impl PyFunction {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let given: Vec<Value> = args.iter().map(|arg| value::from_python(&arg)).collect::<PyResult<_>>()?;
        call(args.py(), &self.0, &given)
    }

    fn __repr__(&self) -> String {
        format!("<tilewright.Function {}>", self.0.name())
    }
}

/// Calls a function while other threads of Python run.
///
/// # Errors
/// The exception of [`error::of_call`].
pub fn call<'py>(py: Python<'py>, function: &Function, args: &[Value]) -> PyResult<Bound<'py, PyAny>> {
    let result = detached(py, || function.call(args))?.map_err(|error| error::of_call(py, &error))?;
    value::to_python(py, &result)
}

/// Registers a function under a name, in place of one that has the name. Packed steps of models find it there, and so do
/// programs in Rust and C of the same process. Tensors come as NumPy arrays, which the function must not write.
///
/// Without `callable` it is a decorator: `@tilewright.register("name")`.
#[pyfunction]
#[pyo3(name = "_register")]
pub fn register(name: &str, callable: &Bound<'_, PyAny>) -> PyResult<()> {
    Registry::global().add(value::function(callable, Some(name))?);
    Ok(())
}

/// Removes a function from the registry. Sessions that use it still can.
///
/// Raises NotFoundError if there is none of that name.
#[pyfunction]
pub fn unregister(py: Python<'_>, name: &str) -> PyResult<()> {
    if Registry::global().remove(name) { Ok(()) } else { Err(unknown(py, name)) }
}

/// The registered function of that name.
///
/// Raises NotFoundError if there is none.
#[pyfunction]
pub fn function(py: Python<'_>, name: &str) -> PyResult<PyFunction> {
    Registry::global().get(name).map(PyFunction).ok_or_else(|| unknown(py, name))
}

/// The names of all registered functions, sorted.
#[pyfunction]
pub fn functions() -> Vec<String> {
    Registry::global().names()
}

fn unknown(py: Python<'_>, name: &str) -> PyErr {
    let known = Registry::global().names().join(", ");
    Class::NotFound.err(py, format!("no function is registered as {name}; there are: {known}"))
}
