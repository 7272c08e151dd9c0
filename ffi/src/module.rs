//! Modules, and artifacts as the first of them.

use std::ffi::{c_char, c_void};
use std::path::Path;

use tilewright_runtime::artifact::ParametersAt;
use tilewright_runtime::module::ArtifactModule;
use tilewright_runtime::{Artifact, Module, Registry, Value};

use crate::error::{Failure, TW_FAILED, array, guard, text, tw_status};
use crate::value::{put_value, tw_value};

/// The module behind an artifact. Its sessions look for functions and devices in the process's registry.
pub(crate) fn module(artifact: Artifact) -> Value {
    crate::device::register();
    Value::Module(Module::new(ArtifactModule::new(artifact, Registry::global().clone())))
}

pub(crate) fn failed(error: impl ToString) -> Failure {
    Failure::new(TW_FAILED, error.to_string())
}

/// Opens the artifact in a file, as `tilewright compile` writes it. Its functions are those of
/// `tilewright_runtime::module::ArtifactModule`.
///
/// # Safety
/// `path` is a text that ends with a zero; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_artifact_open(path: *const c_char, out: *mut tw_value) -> tw_status {
    guard(|| {
        // SAFETY: the caller's promise.
        let artifact = Artifact::read(Path::new(unsafe { text(path, "path")? })).map_err(failed)?;
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || module(artifact)) }
    })
}

/// Like `tw_artifact_open`, for an artifact whose parameters are in another file (`tilewright compile --params`).
/// Without this path they are looked for in the artifact's folder, under the name that the artifact gives.
///
/// # Safety
/// `path` and `parameters` are texts that end with a zero; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_artifact_open_with(
    path: *const c_char,
    parameters: *const c_char,
    out: *mut tw_value,
) -> tw_status {
    guard(|| {
        // SAFETY: the caller's promise.
        let (path, parameters) = unsafe { (text(path, "path")?, text(parameters, "parameters")?) };
        let at = ParametersAt::File(Path::new(parameters));
        let artifact = Artifact::read_with(Path::new(path), at).map_err(failed)?;
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || module(artifact)) }
    })
}

/// Opens the artifact in `bytes` bytes of memory, which are copied.
///
/// # Safety
/// `data` points to so many bytes; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_artifact_open_bytes(data: *const c_void, bytes: usize, out: *mut tw_value) -> tw_status {
    guard(|| {
        // SAFETY: the caller's promise.
        let bytes = unsafe { array(data.cast::<u8>(), bytes, "data")? };
        let artifact = Artifact::decode("the artifact in memory", bytes).map_err(failed)?;
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || module(artifact)) }
    })
}

/// Like `tw_artifact_open_bytes`, for an artifact whose parameters are apart: `parameters` points to the
/// `parameter_bytes` bytes of the file with them, which are copied.
///
/// # Safety
/// `data` and `parameters` point to so many bytes; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_artifact_open_bytes_with(
    data: *const c_void,
    bytes: usize,
    parameters: *const c_void,
    parameter_bytes: usize,
    out: *mut tw_value,
) -> tw_status {
    guard(|| {
        // SAFETY: the caller's promise.
        let bytes = unsafe { array(data.cast::<u8>(), bytes, "data")? };
        // SAFETY: the caller's promise.
        let parameters = unsafe { array(parameters.cast::<u8>(), parameter_bytes, "parameters")? };
        let at = ParametersAt::Bytes(parameters);
        let artifact = Artifact::decode_with("the artifact in memory", bytes, at).map_err(failed)?;
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || module(artifact)) }
    })
}

/// What a module is: the string `artifact`, `session` or `device`.
///
/// # Safety
/// `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_module_kind(module: tw_value, out: *mut tw_value) -> tw_status {
    guard(|| {
        let held = module.held()?;
        let kind = <&Module>::try_from(&held.value)?.kind();
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || Value::from(kind)) }
    })
}

/// The names of a module's functions, a list of strings.
///
/// # Safety
/// `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_module_functions(module: tw_value, out: *mut tw_value) -> tw_status {
    guard(|| {
        let held = module.held()?;
        let names = <&Module>::try_from(&held.value)?.names();
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || names.into_iter().map(Value::String).collect()) }
    })
}

/// The function of that name.
///
/// # Safety
/// `name` is a text that ends with a zero; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_module_function(module: tw_value, name: *const c_char, out: *mut tw_value) -> tw_status {
    guard(|| {
        let held = module.held()?;
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "name")? };
        let function = <&Module>::try_from(&held.value)?.function(name)?;
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || Value::Function(function)) }
    })
}
