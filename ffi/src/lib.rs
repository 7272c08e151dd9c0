//! The C interface: artifacts, sessions, devices, functions and the values that they exchange.
//!
//! `include/tilewright.h` is written from this crate; a test keeps it up to date. Every function returns a status, and
//! the text of an error is what [`tw_error`] returns on the same thread. Whatever lives in the library is named by a
//! handle, so that one that was freed, or never was one, is an error and not a fault. No panic leaves the library.

mod device;
mod error;
mod function;
mod handle;
mod module;
mod session;
mod tensor;
mod value;
#[cfg(target_arch = "wasm32")]
mod wasm;

pub use device::tw_device_open;
pub use error::{
    TW_BUSY, TW_FAILED, TW_INVALID_ARGUMENT, TW_INVALID_HANDLE, TW_NOT_FOUND, TW_OK, TW_PANIC, tw_error, tw_set_error,
    tw_status,
};
pub use function::{
    tw_callback, tw_drop, tw_function_call, tw_function_find, tw_function_new, tw_function_register,
    tw_function_unregister,
};
pub use module::{
    tw_artifact_open, tw_artifact_open_bytes, tw_artifact_open_bytes_with, tw_artifact_open_with, tw_module_function,
    tw_module_functions, tw_module_kind,
};
pub use session::{tw_session_open, tw_session_run};
pub use tensor::{tw_tensor_from_dlpack, tw_tensor_new, tw_tensor_to_dlpack, tw_tensor_view};
pub use value::{
    TW_BYTES, TW_FLOAT, TW_FUNCTION, TW_INTEGER, TW_LIST, TW_MAP, TW_MODULE, TW_NONE, TW_STRING, TW_TENSOR,
    tw_bytes_new, tw_handle, tw_list_new, tw_map_new, tw_payload, tw_string_new, tw_value, tw_value_copy,
    tw_value_data, tw_value_free, tw_value_item, tw_value_length, tw_value_named, tw_value_names,
};

use std::ffi::c_char;

/// Version of this interface. It changes when a program that was built for the version before would no longer work.
pub const TW_ABI_VERSION: u32 = 1;

/// The library's [`TW_ABI_VERSION`], to be compared with the header's.
#[unsafe(no_mangle)]
pub extern "C" fn tw_abi_version() -> u32 {
    TW_ABI_VERSION
}

/// The library's version, for people.
#[unsafe(no_mangle)]
pub extern "C" fn tw_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
