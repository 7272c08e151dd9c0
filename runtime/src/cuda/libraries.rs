//! The libraries of CUDA that may be here, looked for without a word of complaint.

use std::path::Path;

use cudarc::{cublaslt, driver, nvrtc};

use super::CudaError;

/// A library of CUDA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// The driver's.
    Driver,
    /// The compiler of CUDA C.
    Nvrtc,
    /// Products of matrices.
    CublasLt,
}

impl Library {
    /// All of them.
    pub const ALL: [Library; 3] = [Library::Driver, Library::Nvrtc, Library::CublasLt];

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Library::Driver => "cuda-driver",
            Library::Nvrtc => "nvrtc",
            Library::CublasLt => "cublaslt",
        }
    }

    /// What it is wanted for.
    pub fn what_for(self) -> &'static str {
        match self {
            Library::Driver => "--device cuda",
            Library::Nvrtc => "compiling kernels for --device cuda",
            Library::CublasLt => {
                "products and convolutions of --device cuda; without it generated kernels compute them"
            }
        }
    }

    /// Whether it is installed.
    pub fn is_present(self) -> bool {
        // SAFETY: each only tries to open the library by its usual names; initialisers of NVIDIA's libraries need nothing.
        unsafe {
            match self {
                Library::Driver => driver::sys::is_culib_present(),
                Library::Nvrtc => nvrtc::sys::is_culib_present(),
                Library::CublasLt => cublaslt::sys::is_culib_present(),
            }
        }
    }

    /// How to get it.
    pub fn remedy(self) -> &'static str {
        match self {
            Library::Driver => "install NVIDIA's driver on a machine with one of its GPUs, or use --device cpu",
            Library::Nvrtc => {
                "install the CUDA toolkit's NVRTC (package cuda-nvrtc, or nvidia-cuda-nvrtc of Python's, with its lib folder on \
                 LD_LIBRARY_PATH), or use --device cpu"
            }
            Library::CublasLt => {
                "install cuBLAS of the CUDA toolkit (or nvidia-cublas of Python's, with its lib folder on LD_LIBRARY_PATH)"
            }
        }
    }

    /// The same as an error where it is missing: nothing of it may be called then.
    ///
    /// # Errors
    /// [`CudaError::Unavailable`].
    pub fn need(self) -> Result<(), CudaError> {
        if self.is_present() {
            return Ok(());
        }
        let reason = format!("{} is not installed", self.name());
        Err(CudaError::Unavailable { reason, remedy: self.remedy().into() })
    }
}

/// Opens a library by its path, so that it is found by its name from then on. False where it cannot be opened.
///
/// # Safety
/// The library's initialisers run: it must be one of CUDA's, which need nothing.
pub unsafe fn load_from(path: &Path) -> bool {
    // SAFETY: the caller's.
    match unsafe { libloading::Library::new(path) } {
        Ok(library) => {
            std::mem::forget(library);
            true
        }
        Err(_) => false,
    }
}
