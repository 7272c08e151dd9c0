//! The functions of CUDA's libraries that are called, resolved by name when a library is opened.
//!
//! A library that lacks one of them is not used at all, so that no call can hit a missing function. Each function is
//! the oldest of its kind: names that newer drivers and libraries have added are not needed. Error codes are plain
//! numbers, because a newer library can return one that is unknown here. The bindings of the crate cudarc are not used,
//! because they panic if a function is missing.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use super::{CudaError, Library};

/// An object of a library: a context, a stream, a description, ….
pub(super) type Handle = *mut c_void;

/// Error code of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code(pub(super) c_int);

macro_rules! functions {
    ($(#[$doc:meta])* $table:ident, $get:ident; $($name:ident($($arg:ident: $kind:ty),*);)*) => {
        $(#[$doc])*
        #[allow(non_snake_case, reason = "the functions' own names")]
        pub(super) struct $table {
            $($name: unsafe extern "C" fn($($kind),*) -> c_int,)*
            _library: libloading::Library,
        }

        #[allow(non_snake_case, clippy::too_many_arguments, reason = "the functions' own names and arguments")]
        impl $table {
            /// Resolves the functions; the error is the name of a missing one.
            fn of(library: libloading::Library) -> Result<$table, &'static str> {
                // SAFETY: the types are those of the functions' documentation, and the library stays open as long as
                // the functions are used.
                unsafe {
                    $(let $name = *library.get(stringify!($name).as_bytes()).map_err(|_| stringify!($name))?;)*
                    Ok($table { $($name,)* _library: library })
                }
            }

            $(
                /// Calls the library's function.
                ///
                /// # Safety
                /// The requirements of the function's documentation.
                pub(super) unsafe fn $name(&self, $($arg: $kind),*) -> Result<(), Code> {
                    // SAFETY: the caller's promise.
                    match unsafe { (self.$name)($($arg),*) } {
                        0 => Ok(()),
                        code => Err(Code(code)),
                    }
                }
            )*
        }

        /// The library with all of its functions, opened once.
        ///
        /// # Errors
        /// [`CudaError::Unavailable`] if it is not installed, or lacks a function.
        pub(super) fn $get() -> Result<&'static $table, CudaError> {
            static OPENED: OnceLock<$table> = OnceLock::new();
            if let Some(opened) = OPENED.get() {
                return Ok(opened);
            }
            // A library that is missing now can be opened by its path later.
            let library = Library::$table;
            let found = $table::of(library.open()?).map_err(|name| library.too_old(name))?;
            Ok(OPENED.get_or_init(|| found))
        }
    };
}

functions! {
    /// The driver. Every driver since CUDA 11.0's has all of these.
    Driver, driver;
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuGetErrorName(code: c_int, name: *mut *const c_char);
    cuDeviceGet(device: *mut c_int, ordinal: c_int);
    cuDeviceGetName(name: *mut c_char, bytes: c_int, device: c_int);
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int);
    cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int);
    cuDevicePrimaryCtxRelease_v2(device: c_int);
    cuCtxSetCurrent(context: Handle);
    cuStreamCreate(stream: *mut Handle, flags: c_uint);
    cuStreamDestroy_v2(stream: Handle);
    cuStreamSynchronize(stream: Handle);
    cuEventCreate(event: *mut Handle, flags: c_uint);
    cuEventDestroy_v2(event: Handle);
    cuEventRecord(event: Handle, stream: Handle);
    cuEventSynchronize(event: Handle);
    cuEventElapsedTime(milliseconds: *mut f32, from: Handle, to: Handle);
    cuMemAlloc_v2(address: *mut u64, bytes: usize);
    cuMemFree_v2(address: u64);
    cuMemsetD8Async(address: u64, value: u8, bytes: usize, stream: Handle);
    cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: Handle);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: Handle);
    cuModuleLoadData(module: *mut Handle, image: *const c_void);
    cuModuleUnload(module: Handle);
    cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char);
    cuLaunchKernel(
        function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared_bytes: c_uint, stream: Handle, arguments: *mut *mut c_void, extra: *mut *mut c_void
    );
}

functions! {
    /// The compiler of CUDA C. Every one since CUDA 11.1's has all of these.
    Nvrtc, nvrtc;
    nvrtcVersion(major: *mut c_int, minor: *mut c_int);
    nvrtcCreateProgram(
        program: *mut Handle, source: *const c_char, name: *const c_char, headers: c_int, texts: *const *const c_char,
        names: *const *const c_char
    );
    nvrtcCompileProgram(program: Handle, count: c_int, options: *const *const c_char);
    nvrtcDestroyProgram(program: *mut Handle);
    nvrtcGetProgramLogSize(program: Handle, bytes: *mut usize);
    nvrtcGetProgramLog(program: Handle, log: *mut c_char);
    nvrtcGetPTXSize(program: Handle, bytes: *mut usize);
    nvrtcGetPTX(program: Handle, ptx: *mut c_char);
    nvrtcGetCUBINSize(program: Handle, bytes: *mut usize);
    nvrtcGetCUBIN(program: Handle, cubin: *mut c_char);
}

/// `cublasLtMatmulAlgo_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Algorithm {
    data: [u64; 8],
}

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MatmulHeuristic {
    pub(super) algorithm: Algorithm,
    pub(super) workspace_bytes: usize,
    pub(super) state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

functions! {
    /// Matrix products. Every library since CUDA 11.0's has all of these.
    CublasLt, cublaslt;
    cublasLtCreate(handle: *mut Handle);
    cublasLtDestroy(handle: Handle);
    cublasLtMatmulDescCreate(description: *mut Handle, compute: c_int, scale: c_int);
    cublasLtMatmulDescSetAttribute(description: Handle, attribute: c_int, value: *const c_void, bytes: usize);
    cublasLtMatmulDescDestroy(description: Handle);
    cublasLtMatrixLayoutCreate(layout: *mut Handle, kind: c_int, rows: u64, columns: u64, next: i64);
    cublasLtMatrixLayoutSetAttribute(layout: Handle, attribute: c_int, value: *const c_void, bytes: usize);
    cublasLtMatrixLayoutDestroy(layout: Handle);
    cublasLtMatmulPreferenceCreate(preference: *mut Handle);
    cublasLtMatmulPreferenceSetAttribute(preference: Handle, attribute: c_int, value: *const c_void, bytes: usize);
    cublasLtMatmulPreferenceDestroy(preference: Handle);
    cublasLtMatmulAlgoGetHeuristic(
        handle: Handle, description: Handle, a: Handle, b: Handle, c: Handle, d: Handle, preference: Handle, wanted: c_int,
        choices: *mut MatmulHeuristic, found: *mut c_int
    );
    cublasLtMatmul(
        handle: Handle, description: Handle, alpha: *const c_void, a: *const c_void, layout_a: Handle, b: *const c_void,
        layout_b: Handle, beta: *const c_void, c: *const c_void, layout_c: Handle, d: *mut c_void, layout_d: Handle,
        algorithm: *const Algorithm, workspace: *mut c_void, workspace_bytes: usize, stream: Handle
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_without_a_function_is_refused_by_that_functions_name() {
        let libc = || {
            // SAFETY: it is open already, as the standard library uses it.
            unsafe { libloading::Library::new("libc.so.6") }.expect("the C library is there")
        };
        assert_eq!(Driver::of(libc()).err(), Some("cuInit"));
        assert_eq!(Nvrtc::of(libc()).err(), Some("nvrtcVersion"));
        assert_eq!(CublasLt::of(libc()).err(), Some("cublasLtCreate"));
        let error = Library::Driver.too_old("cuInit").to_string();
        assert!(
            error.contains("the installed cuda-driver is too old: it has no cuInit") && error.contains("CUDA 11.0"),
            "{error}"
        );
    }
}
