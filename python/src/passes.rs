//! Passes that are written in Python.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use tilewright::model;
use tilewright_compiler::graph::{Graph, NodeId};
use tilewright_compiler::passes::{self, Pass, PassError, PassFailure, Patch, View};

use crate::error::{Class, Raised};
use crate::graph::PyGraph;

struct PythonPass {
    name: &'static str,
    exact: bool,
    change: Py<PyAny>,
}

impl Pass for PythonPass {
    fn name(&self) -> &'static str {
        self.name
    }

    fn exact(&self) -> bool {
        self.exact
    }

    fn rewrite_graph(&self, graph: &Graph) -> Result<Option<Graph>, PassFailure> {
        let called = Python::attach(|py| {
            let answer = self.change.bind(py).call1((PyGraph(Arc::new(graph.clone())),))?;
            if answer.is_none() {
                return Ok(None);
            }
            match answer.cast::<PyGraph>() {
                Ok(graph) => Ok(Some(graph.get().0.as_ref().clone())),
                Err(_) => {
                    let found = answer.get_type().name()?;
                    Err(PyTypeError::new_err(format!("a pass returns a Graph or None, not {found}")))
                }
            }
        });
        called.map_err(|error| Raised(error).into())
    }

    fn rewrite(&self, _: &View, _: NodeId) -> Option<Patch> {
        None
    }
}

/// Adds a pass to everything that this process compiles from now on. See `tilewright.add_pass`.
#[pyfunction]
#[pyo3(name = "_add_pass")]
pub fn add(py: Python<'_>, name: &str, after: &str, change: Py<PyAny>, exact: bool) -> PyResult<()> {
    if !change.bind(py).is_callable() {
        return Err(PyTypeError::new_err(format!("{} cannot be called", change.bind(py))));
    }
    let pass = PythonPass { name: interned(name), exact, change };
    passes::add(after, Arc::new(pass)).map_err(|error| Class::Input.err(py, error))
}

/// The name for as long as the process lives; the same memory for the same name.
fn interned(name: &str) -> &'static str {
    static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.iter().find(|known| **known == name) {
        return known;
    }
    let name: &'static str = Box::leak(name.to_string().into_boxed_str());
    names.push(name);
    name
}

/// Removes a pass that `add_pass` added.
///
/// Raises NotFoundError if there is none of that name.
#[pyfunction]
pub fn remove_pass(py: Python<'_>, name: &str) -> PyResult<()> {
    match passes::remove(name) {
        true => Ok(()),
        false => Err(Class::NotFound.err(py, format!("no pass that the program added is named {name}"))),
    }
}

/// The names of the passes of an optimization level, in order, with those that the program added.
#[pyfunction]
#[pyo3(name = "passes", signature = (opt_level=2))]
pub fn names(opt_level: u8) -> Vec<&'static str> {
    model::passes(opt_level).iter().map(|pass| pass.name()).collect()
}

/// The exception of a failed compilation. Its cause is what a pass in Python raised, if that is why.
pub fn of_error(py: Python<'_>, error: anyhow::Error) -> PyErr {
    let pass = error.chain().find_map(|cause| match cause.downcast_ref::<model::ModelError>() {
        Some(model::ModelError::Pass(error)) => Some(error),
        _ => cause.downcast_ref::<PassError>(),
    });
    let (class, raised) = match pass {
        Some(PassError::Failed { source, .. }) => (Class::Pass, source.downcast_ref::<Raised>()),
        Some(_) => (Class::Pass, None),
        None => (Class::Model, None),
    };
    let raised = raised.map(|Raised(raised)| raised.clone_ref(py));
    if let Some(raised) = raised.as_ref().filter(|r| !r.is_instance_of::<pyo3::exceptions::PyException>(py)) {
        return raised.clone_ref(py);
    }
    let failed = class.of_error(py, error);
    failed.set_cause(py, raised);
    failed
}
