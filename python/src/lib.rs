//! Tilewright in Python: `tilewright._native`, to which the package in `tilewright` gives its names.
//!
//! Values, functions and modules are those of `tilewright_runtime`; everything else is the root library's. Errors become
//! the exceptions of `tilewright/_errors.py`, with the texts of the command line. While native code runs, other threads
//! of Python can run too.

mod compile;
mod config;
mod error;
mod examine;
mod forms;
mod function;
mod graph;
mod html;
mod inputs;
mod interrupt;
mod json;
mod module;
mod passes;
mod remote;
mod tensor;
mod tools;
mod value;

use pyo3::prelude::*;

/// The native part of the package `tilewright`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::compile::{compile, jit};
    #[pymodule_export]
    use crate::config::PyConfig;
    #[pymodule_export]
    use crate::examine::{bench, bisect, diff, profile, quantize};
    #[pymodule_export]
    use crate::forms::{PyExpression, PyManifest, PyScheduleFile, each, edges, manifest, operators};
    #[pymodule_export]
    use crate::function::{PyFunction, function, functions, register, unregister};
    #[pymodule_export]
    use crate::graph::{PyBuilder, PyBuilt, PyGraph, PyNode, PyValue};
    #[pymodule_export]
    use crate::module::{PyArtifact, PyDevice, PyModule, PySession, device, load};
    #[pymodule_export]
    use crate::passes::{add, names, remove_pass};
    #[pymodule_export]
    use crate::remote::{PyRemote, PyServer, PyVirtualBoard, board, connect, run_native, serve};
    #[pymodule_export]
    use crate::tensor::PyTensor;
    #[pymodule_export]
    use crate::tools::{boards, measure, schedules, synth, targets, tune, zoo, zoo_make};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, pyo3::types::PyModule>) -> PyResult<()> {
        #[cfg(feature = "llvm")]
        {
            let finish = pyo3::wrap_pyfunction!(crate::compile::finish, module)?;
            module.py().import("atexit")?.call_method1("register", (finish,))?;
        }
        tilewright::device::register(tilewright_runtime::Registry::global());
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("has_llvm", cfg!(feature = "llvm"))?;
        module.add("has_cuda", cfg!(feature = "cuda"))
    }
}
