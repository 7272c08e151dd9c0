//! Arrays and files for the inputs of a model.

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use tilewright::model::ModelFile;
use tilewright::model::given::Given;
use tilewright_compiler::graph;
use tilewright_runtime::tensor::Tensor;

use crate::error::Class;
use crate::tensor;

/// Arrays with the names of their inputs.
pub type Arrays = Vec<(Option<String>, Tensor)>;

/// A file or arrays, as an argument gives them.
pub enum Data {
    /// Arguments of the form `[NAME=]FILE`.
    Files(Vec<String>),
    /// Arrays.
    Arrays(Arrays),
}

/// The data of an argument: an array, the path of a file, a list of them in the model's order, or a dict by the names of
/// inputs.
///
/// # Errors
/// `InputError` for arrays that no model has, `TypeError` for other objects.
pub fn data(argument: &Bound<'_, PyAny>) -> PyResult<Data> {
    let mut list: Vec<(Option<String>, Bound<'_, PyAny>)> = Vec::new();
    if let Ok(named) = argument.cast::<PyDict>() {
        for (name, item) in named.iter() {
            list.push((Some(name.extract()?), item));
        }
    } else if argument.is_instance_of::<PyList>() || argument.is_instance_of::<PyTuple>() {
        for item in argument.try_iter()? {
            list.push((None, item?));
        }
    } else {
        list.push((None, argument.clone()));
    }
    let (mut files, mut arrays) = (Vec::new(), Vec::new());
    for (name, item) in list {
        if tensor::is_array(&item) {
            arrays.push((name, copied(&item)?));
        } else if item.is_instance_of::<PyString>() || item.hasattr("__fspath__")? {
            let path = item.extract::<PathBuf>()?.display().to_string();
            files.push(name.map_or(path.clone(), |name| format!("{name}={path}")));
        } else {
            let found = item.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "data for an input is an array or the path of a file, not {found}"
            )));
        }
    }
    match (files.is_empty(), arrays.is_empty()) {
        (false, false) => Err(Class::Input.err(argument.py(), "give either arrays or files, not both")),
        (false, true) => Ok(Data::Files(files)),
        (true, _) => Ok(Data::Arrays(arrays)),
    }
}

/// A copy of an array's elements.
fn copied(array: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let found = tensor::from_array(array)?;
    let value = graph::Tensor::try_from(&found).map_err(|error| Class::Input.err(array.py(), error))?;
    Ok((&value).into())
}

/// What an argument `inputs` gives to a model; without it, the sample of a network of the zoo.
///
/// # Errors
/// The same as [`data`], and `InputError` if a file cannot be read.
pub fn given(py: Python<'_>, argument: Option<&Bound<'_, PyAny>>, file: Option<&ModelFile>) -> PyResult<Given> {
    let read = |files: &[String]| {
        Given::read(files, file.and_then(ModelFile::entry)).map_err(|error| Class::Input.of_error(py, error))
    };
    match argument.map(data).transpose()? {
        None => read(&[]),
        Some(Data::Files(files)) => read(&files),
        Some(Data::Arrays(arrays)) => Ok(Given::of_arrays(arrays)),
    }
}
