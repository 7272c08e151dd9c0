//! Objects with a text and a JSON form: tensor expressions, schedules and manifests. Graphs and configurations have the
//! same methods.

use pyo3::prelude::*;
use serde_json::json;
use tilewright_compiler::graph::op::{Attribute, Count, Expression, Op, Operand};
use tilewright_hw::form::{Form, FormError};
use tilewright_runtime::artifact::Manifest;
use tilewright_runtime::module::ArtifactModule;
use tilewright_tensor::schedule::file::File;
use tilewright_tensor::te::{Definition, Program, Tensor};

use crate::error::Class;
use crate::json;
use crate::module::PyModule;

/// An object of its text.
///
/// # Errors
/// An exception of `class`.
pub fn of_text<T: Form>(py: Python<'_>, class: Class, text: &str) -> PyResult<T> {
    T::from_text(text).map_err(|error: FormError| class.err(py, error))
}

/// An object of its JSON, as Python's dicts and lists or as text.
///
/// # Errors
/// An exception of `class`.
pub fn of_json<T: Form>(class: Class, given: &Bound<'_, PyAny>) -> PyResult<T> {
    let py = given.py();
    let value = match given.extract::<String>() {
        Ok(text) => serde_json::from_str(&text).map_err(|error| class.err(py, format!("this is no JSON: {error}")))?,
        Err(_) => json::of_python(given)?,
    };
    T::from_json(&value).map_err(|error| class.err(py, error))
}

macro_rules! form {
    ($(#[$doc:meta])* $name:ident, $python:literal, $own:ty) => {
        $(#[$doc])*
        #[pyclass(frozen, name = $python, module = "tilewright", eq)]
        #[derive(PartialEq)]
        pub struct $name(pub $own);

        #[pymethods]
        impl $name {
            /// The object as text.
            fn to_text(&self) -> String {
                self.0.to_text()
            }

            /// Reads an object from its text.
            #[staticmethod]
            fn from_text(py: Python<'_>, text: &str) -> PyResult<$name> {
                of_text(py, Class::Input, text).map($name)
            }

            /// The object as dicts and lists.
            fn to_json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                json::to_python(py, &self.0.to_json())
            }

            /// Reads an object from `to_json`'s dict, or from its text.
            #[staticmethod]
            fn from_json(json: &Bound<'_, PyAny>) -> PyResult<$name> {
                of_json(Class::Input, json).map($name)
            }

            fn __str__(&self) -> String {
                self.0.to_text()
            }

            fn __repr__(&self) -> String {
                format!("<tilewright.{} of {} lines>", $python, self.0.to_text().lines().count())
            }
        }
    };
}

form!(
    /// A tensor expression: what is computed.
    PyExpression,
    "Expression",
    Program
);
form!(
    /// A tensor expression with the steps of its schedule, as `.te` files have them.
    PyScheduleFile,
    "ScheduleFile",
    File
);
form!(
    /// The description of an artifact.
    PyManifest,
    "Manifest",
    Manifest
);

/// The description of an artifact as an object.
#[pyfunction]
#[pyo3(name = "_manifest")]
pub fn manifest(artifact: &Bound<'_, PyModule>) -> PyResult<PyManifest> {
    let found = artifact.get().0.downcast::<ArtifactModule>().map(|module| module.artifact().manifest.clone());
    found.map(PyManifest).ok_or_else(|| Class::Input.err(artifact.py(), "this module is no artifact"))
}

/// The inputs and outputs of an expression: name, element type and shape.
#[pyfunction]
#[pyo3(name = "_expression_edges")]
pub fn edges(expression: &PyExpression) -> [Vec<(String, String, Vec<i64>)>; 2] {
    let program = &expression.0;
    let edge = |tensor: &Tensor| (tensor.name.to_string(), tensor.dtype.name().to_string(), tensor.shape());
    let inputs = program.tensors.iter().filter(|tensor| matches!(tensor.definition, Definition::Input));
    let outputs = program.outputs.iter().filter_map(|name| program.tensor(name));
    [inputs.map(edge).collect(), outputs.map(edge).collect()]
}

/// An expression for each output, as text.
#[pyfunction]
#[pyo3(name = "_expression_each")]
pub fn each(expression: &PyExpression) -> Vec<String> {
    Expression::each(&expression.0).iter().map(|one| one.program().to_text()).collect()
}

/// What each operator takes, as JSON.
#[pyfunction]
#[pyo3(name = "_operators")]
pub fn operators() -> String {
    let attr = |attr: &Attribute| {
        json!({ "name": attr.name, "doc": attr.doc.trim(), "expected": attr.expected, "words": attr.words,
                "default": attr.default.as_ref().map(ToString::to_string) })
    };
    let operand = |operand: &Operand| {
        let count = match operand.count {
            Count::One => "one",
            Count::Optional => "optional",
            Count::Several => "several",
        };
        json!({ "name": operand.name, "count": count })
    };
    let all: Vec<_> = Op::signatures()
        .iter()
        .map(|signature| {
            json!({ "name": signature.name, "doc": signature.doc.trim(),
                    "operands": signature.operands.iter().map(operand).collect::<Vec<_>>(),
                    "attributes": signature.attributes.iter().map(attr).collect::<Vec<_>>() })
        })
        .collect();
    json!(all).to_string()
}
