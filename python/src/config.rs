//! Hardware configurations.

use std::path::PathBuf;

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilewright::device::{DEFAULT_HW, load_hw};
use tilewright_hw::Form;
use tilewright_hw::config::{HwConfig, PARAMS, PRESETS};

use crate::error::Class;
use crate::forms;
use crate::json;

/// A hardware configuration, which is not changed; `replace` makes another. Its parameters are attributes, and `host`,
/// `dram` and `energy` are dicts.
#[pyclass(frozen, name = "Config", module = "tilewright", eq)]
#[derive(PartialEq)]
pub struct PyConfig(pub HwConfig);

impl PyConfig {
    /// A configuration of its text; `file` names it in errors.
    ///
    /// # Errors
    /// `ConfigError`, with everything that is wrong.
    pub fn parse(py: Python<'_>, file: &str, text: &str) -> PyResult<PyConfig> {
        HwConfig::parse(file, text).map(PyConfig).map_err(|error| Class::Config.of_error(py, error))
    }

    fn of_json(py: Python<'_>, file: &str, object: &serde_json::Value) -> PyResult<PyConfig> {
        let text = toml::to_string(object).map_err(|error| Class::Config.err(py, format!("{file}: {error}")))?;
        PyConfig::parse(py, file, &text)
    }

    fn json(&self) -> serde_json::Value {
        serde_json::to_value(&self.0).unwrap_or_default()
    }
}

/// The configuration of an argument: the name of a preset or a board, the path of a TOML file, a Config, or the default.
///
/// # Errors
/// `ConfigError`.
pub fn of_argument(py: Python<'_>, hw: Option<&Bound<'_, PyAny>>) -> PyResult<HwConfig> {
    let name = match hw {
        None => DEFAULT_HW.to_string(),
        Some(hw) => match hw.cast::<PyConfig>() {
            Ok(config) => return Ok(config.get().0.clone()),
            Err(_) => hw.extract::<PathBuf>()?.display().to_string(),
        },
    };
    load_hw(&name).map_err(|error| Class::Config.of_error(py, error))
}

#[pymethods]
impl PyConfig {
    /// The configuration of a preset or a board by its name, or of a TOML file by its path.
    ///
    /// Raises ConfigError with everything that is wrong at once.
    #[new]
    #[pyo3(signature = (name=DEFAULT_HW))]
    fn new(py: Python<'_>, name: &str) -> PyResult<PyConfig> {
        load_hw(name).map(PyConfig).map_err(|error| Class::Config.of_error(py, error))
    }

    /// The configuration in a TOML file.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: PathBuf) -> PyResult<PyConfig> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|error| Class::Config.err(py, format!("cannot read {file}: {error}")))?;
        PyConfig::parse(py, &file, &text)
    }

    /// The names of the presets.
    #[staticmethod]
    fn presets() -> Vec<&'static str> {
        PRESETS.iter().map(|(name, _)| *name).collect()
    }

    /// A configuration with other values of some parameters. `host`, `dram` and `energy` are dicts with the keys to
    /// change.
    ///
    /// Raises ConfigError with everything that is wrong at once.
    #[pyo3(signature = (**changes))]
    fn replace(&self, py: Python<'_>, changes: Option<&Bound<'_, PyDict>>) -> PyResult<PyConfig> {
        let mut object = self.json();
        let Some(changes) = changes else { return Ok(PyConfig(self.0.clone())) };
        let serde_json::Value::Object(changes) = json::of_python(changes)? else { return Ok(PyConfig(self.0.clone())) };
        for (key, value) in changes {
            match (object.get_mut(&key), value) {
                (Some(serde_json::Value::Object(table)), serde_json::Value::Object(value)) => table.extend(value),
                (_, value) => object[key] = value,
            }
        }
        PyConfig::of_json(py, &self.0.name, &object)
    }

    /// The configuration as TOML text.
    fn to_toml(&self) -> String {
        self.0.to_toml()
    }

    /// The configuration of TOML text.
    #[staticmethod]
    #[pyo3(signature = (text, name="the text"))]
    fn from_toml(py: Python<'_>, text: &str, name: &str) -> PyResult<PyConfig> {
        PyConfig::parse(py, name, text)
    }

    /// The configuration as TOML text, as `to_toml` gives it.
    fn to_text(&self) -> String {
        self.0.to_text()
    }

    /// Reads a configuration from its text.
    #[staticmethod]
    fn from_text(py: Python<'_>, text: &str) -> PyResult<PyConfig> {
        forms::of_text(py, Class::Config, text).map(PyConfig)
    }

    /// The configuration as a dict.
    fn to_json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.0.to_json())
    }

    /// Reads a configuration from `to_json`'s dict, or from its text.
    #[staticmethod]
    fn from_json(json: &Bound<'_, PyAny>) -> PyResult<PyConfig> {
        forms::of_json(Class::Config, json).map(PyConfig)
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match self.json().get(name) {
            Some(value) => json::to_python(py, value),
            None if name == "energy" => Ok(py.None().into_bound(py)),
            None => Err(PyAttributeError::new_err(format!("a configuration has no parameter {name}"))),
        }
    }

    fn __dir__<'py>(slf: &Bound<'py, Self>) -> PyResult<Vec<String>> {
        let own: Vec<String> = slf.get_type().dir()?.extract()?;
        let parameters = PARAMS.iter().map(|param| param.key).chain(["name", "host", "dram", "energy"]);
        Ok(own.into_iter().chain(parameters.map(String::from)).collect())
    }

    fn __str__(&self) -> String {
        self.0.to_toml()
    }

    fn __repr__(&self) -> String {
        format!("tilewright.Config({:?})", self.0.name)
    }

    fn _repr_html_(&self) -> String {
        let rows = PARAMS.iter().map(|param| {
            let value = self.json().get(param.key).map(ToString::to_string).unwrap_or_default();
            vec![
                param.key.to_string(),
                value.trim_matches('"').to_string(),
                param.unit.to_string(),
                param.doc.to_string(),
            ]
        });
        crate::html::table(Some(&self.0.name), &["parameter", "value", "unit", "meaning"], rows)
    }
}
