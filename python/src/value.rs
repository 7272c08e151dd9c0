//! Values between Python and the library.

use bytes::Bytes;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use tilewright_runtime::{Function, Value};

use crate::error::{Class, Raised};
use crate::function::PyFunction;
use crate::module::{self, PyModule};
use crate::tensor::{self, PyTensor};

/// Deepest nesting of lists and maps; a list that contains itself has no end.
const DEEPEST: usize = 64;

/// The value of an object.
///
/// # Errors
/// `InputError` if it is of a type that no value has.
pub fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    nested(object, 0)
}

fn nested(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    let py = object.py();
    if depth > DEEPEST {
        return Err(Class::Input.err(py, format!("lists and maps are nested more than {DEEPEST} deep")));
    }
    if object.is_none() {
        return Ok(Value::None);
    }
    if let Ok(truth) = object.cast::<PyBool>() {
        return Ok(truth.is_true().into());
    }
    if object.is_instance_of::<PyInt>() {
        return object.extract::<i64>().map(Value::Integer).map_err(|error| {
            match error.is_instance_of::<PyOverflowError>(py) {
                true => Class::Input.err(py, format!("the integer {object} does not fit into 64 bits")),
                false => error,
            }
        });
    }
    if object.is_instance_of::<PyFloat>() {
        return object.extract::<f64>().map(Value::Float);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::String(text.to_cow()?.into_owned()));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Bytes::copy_from_slice(bytes.as_bytes()).into());
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(Bytes::from(bytes.to_vec()).into());
    }
    if let Ok(function) = object.cast::<PyFunction>() {
        return Ok(function.get().0.clone().into());
    }
    if let Ok(module) = object.cast::<PyModule>() {
        return Ok(module.get().0.clone().into());
    }
    if let Ok(list) = object.cast::<PyList>() {
        return list.iter().map(|item| nested(&item, depth + 1)).collect();
    }
    if let Ok(list) = object.cast::<PyTuple>() {
        return list.iter().map(|item| nested(&item, depth + 1)).collect();
    }
    if let Ok(map) = object.cast::<PyDict>() {
        let item = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let text = name
                .cast::<PyString>()
                .map_err(|_| Class::Input.err(py, format!("the names of a map are strings, but {name} is none")))?;
            Ok((text.to_cow()?.into_owned(), nested(&value, depth + 1)?))
        };
        return map.iter().map(item).collect();
    }
    if object.is_instance_of::<PyTensor>() || tensor::is_array(object) {
        return tensor::from_array(object).map(Value::Tensor);
    }
    if object.is_callable() {
        return Ok(function(object, None)?.into());
    }
    let name = object.get_type().name()?;
    Err(Class::Input.err(
        py,
        format!(
            "a {name} is no value; values are None, bool, int, float, str, bytes, arrays, functions, modules, lists and \
             dicts with strings as keys"
        ),
    ))
}

/// The object of a value. Tensors become NumPy arrays of the same memory, which cannot be written.
///
/// # Errors
/// What Python raises, for example without NumPy.
pub fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::None => py.None().into_bound(py),
        Value::Integer(value) => value.into_pyobject(py)?.into_any(),
        Value::Float(value) => value.into_pyobject(py)?.into_any(),
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Value::Tensor(tensor) => tensor::to_numpy(py, tensor.clone())?,
        Value::Function(function) => Bound::new(py, PyFunction(function.clone()))?.into_any(),
        Value::Module(module) => module::to_python(py, module.clone())?,
        Value::List(values) => {
            let items = values.iter().map(|value| to_python(py, value)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Map(values) => {
            let map = PyDict::new(py);
            for (name, value) in values {
                map.set_item(name, to_python(py, value)?)?;
            }
            map.into_any()
        }
    })
}

/// A function of the library that calls one in Python; without `name`, it has Python's name.
///
/// # Errors
/// `TypeError` if it cannot be called.
pub fn function(callable: &Bound<'_, PyAny>, name: Option<&str>) -> PyResult<Function> {
    if !callable.is_callable() {
        return Err(PyTypeError::new_err(format!("{callable} cannot be called")));
    }
    let name = match name {
        Some(name) => name.to_string(),
        None => match callable.getattr_opt("__name__")? {
            Some(name) => name.str()?.to_string(),
            None => callable.get_type().name()?.to_string(),
        },
    };
    let callable = callable.clone().unbind();
    Ok(Function::new(&name, move |args| {
        let called = Python::attach(|py| {
            let given = args.values().iter().map(|value| to_python(py, value)).collect::<PyResult<Vec<_>>>()?;
            let result = callable.bind(py).call1(PyTuple::new(py, given)?)?;
            from_python(&result)
        });
        called.map_err(|error| Raised(error).into())
    }))
}
