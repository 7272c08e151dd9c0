//! What the interface has in WebAssembly in addition: memory for arguments, and artifacts whose code is in a module of
//! its own, which the embedding program instantiates in this one's memory and table.
//!
//! The embedding program provides, in the module `tilewright`, `now` (milliseconds) and `panicked`, which receives the
//! text of a panic before the module traps. A trap leaves the module in an unknown state, so it must not be called again.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::sync::Once;

use tilewright_hw::config::HwConfig;
use tilewright_hw::device::Device;
use tilewright_runtime::loader::{CpuModule, ImportTable};
use tilewright_runtime::module::{ArtifactModule, DeviceModule, open_device};
use tilewright_runtime::{Artifact, Module, Registry, SharedDevice, Value, buffer};

use crate::device::{csim, fsim};
use crate::error::{Failure, TW_INVALID_ARGUMENT, array, guard, text, tw_status};
use crate::module::{failed, module};
use crate::value::{put_value, tw_value};

#[link(wasm_import_module = "tilewright")]
unsafe extern "C" {
    fn panicked(text: *const u8, bytes: usize);
}

/// Hands the texts of panics to the embedding program, from the first call on.
fn tell_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let text = info.to_string();
            // SAFETY: the text is readable for so many bytes.
            unsafe { panicked(text.as_ptr(), text.len()) };
        }));
    });
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), buffer::ALIGN).ok()
}

/// Memory of so many bytes, aligned to 64; null if there is not enough.
#[unsafe(no_mangle)]
pub extern "C" fn tw_wasm_alloc(bytes: usize) -> *mut c_void {
    tell_panics();
    // SAFETY: the layout has a size above 0.
    layout(bytes).map_or(std::ptr::null_mut(), |layout| unsafe { alloc(layout) }.cast())
}

/// Frees memory of [`tw_wasm_alloc`].
///
/// # Safety
/// `at` is null or from `tw_wasm_alloc` with the same number of bytes, and not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_wasm_free(at: *mut c_void, bytes: usize) {
    if let Some(layout) = layout(bytes).filter(|_| !at.is_null()) {
        // SAFETY: the caller's promise.
        unsafe { dealloc(at.cast(), layout) };
    }
}

/// Index in this module's table of a function that compiled code may import; 0 if there is none of that name.
///
/// # Safety
/// `name` is a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_wasm_import(name: *const c_char) -> usize {
    // SAFETY: the caller's promise.
    let name = unsafe { text(name, "name") };
    name.ok().and_then(|name| ImportTable::standard().function(name)).unwrap_or(0)
}

/// Like `tw_artifact_open_bytes`, for an artifact whose code is in this module's table: `count` functions, by their names
/// and indices. `path` names the artifact in messages.
///
/// # Safety
/// `path` and each of the `count` texts at `names` end with a zero, `data` points to so many bytes and `functions` to
/// `count` indices of functions that `tilewright compile --emit wasm` has made; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_wasm_open(
    path: *const c_char,
    data: *const c_void,
    bytes: usize,
    names: *const *const c_char,
    functions: *const usize,
    count: usize,
    out: *mut tw_value,
) -> tw_status {
    tell_panics();
    guard(|| {
        // SAFETY: the caller's promise.
        let (path, bytes) = unsafe { (text(path, "path")?, array(data.cast::<u8>(), bytes, "data")?) };
        // SAFETY: the caller's promise.
        let (names, functions) = unsafe { (array(names, count, "names")?, array(functions, count, "functions")?) };
        let mut named = HashMap::new();
        for (&name, &function) in names.iter().zip(functions) {
            // SAFETY: the caller's promise.
            named.insert(unsafe { text(name, "a name") }?.to_string(), function);
        }
        let artifact = Artifact::decode(path, bytes).map_err(failed)?;
        let artifact = match count {
            0 => artifact,
            // SAFETY: the caller's promise.
            _ => artifact.with_linked(unsafe { CpuModule::linked(named) }),
        };
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || module(artifact)) }
    })
}

/// Opens a simulator, `fsim` or `csim`, for an artifact. Its memory is as large as the artifact's programs need, which is
/// often a small part of what its configuration has. Without programs for an accelerator, no value is put out.
///
/// # Safety
/// `name` is a text that ends with a zero; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_wasm_device(artifact: tw_value, name: *const c_char, out: *mut tw_value) -> tw_status {
    guard(|| {
        let held = artifact.held()?;
        let module = <&Module>::try_from(&held.value)?;
        let wrong = || Failure::new(TW_INVALID_ARGUMENT, format!("{} is no artifact", module.name()));
        let artifact = module.downcast::<ArtifactModule>().ok_or_else(wrong)?.artifact();
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "name")? };
        let device = match &artifact.manifest.hardware {
            None => Value::None,
            Some(hardware) => {
                let open: Option<fn(HwConfig, u64) -> Box<dyn Device>> = match name {
                    "fsim" => Some(fsim),
                    "csim" => Some(csim),
                    _ => None,
                };
                let config = HwConfig::parse(&hardware.name, &hardware.toml).map_err(failed)?;
                let need = need(artifact)?.min(config.memory_bytes());
                Value::Module(match open {
                    Some(open) => Module::new(DeviceModule(SharedDevice::new(open(config, need)))),
                    // Says what there is.
                    None => open_device(Registry::global(), name, &hardware.toml)?,
                })
            }
        };
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || device) }
    })
}

/// Bytes of device memory for all shapes of an artifact, whose programs can be loaded at the same time.
fn need(artifact: &Artifact) -> Result<u64, Failure> {
    let mut need = 0;
    for manifest in artifact.manifest.of_each_shape() {
        need += artifact.with_manifest(manifest.clone()).map_err(failed)?.device_need().total();
    }
    // Programs begin at pages.
    Ok(need.next_multiple_of(1 << 16) + (1 << 16))
}
