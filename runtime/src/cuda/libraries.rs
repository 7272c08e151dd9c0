//! CUDA's libraries, which are used if they are installed; a missing one is not reported.

use std::path::Path;

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
    /// All libraries.
    pub const ALL: [Library; 3] = [Library::Driver, Library::Nvrtc, Library::CublasLt];

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Library::Driver => "cuda-driver",
            Library::Nvrtc => "nvrtc",
            Library::CublasLt => "cublaslt",
        }
    }

    /// What it is needed for.
    pub fn what_for(self) -> &'static str {
        match self {
            Library::Driver => "--device cuda",
            Library::Nvrtc => "compiling kernels for --device cuda",
            Library::CublasLt => {
                "products and convolutions of --device cuda; without it generated kernels compute them"
            }
        }
    }

    /// File names of the library, in the order of the search: the one that a toolkit's installation has selected, then
    /// the versions, newest first.
    fn files(self) -> &'static [&'static str] {
        match self {
            Library::Driver => &["libcuda.so.1", "libcuda.so"],
            Library::Nvrtc => {
                &["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so.11.1"]
            }
            Library::CublasLt => &["libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"],
        }
    }

    /// The oldest CUDA version whose library has all functions that are called.
    fn oldest(self) -> &'static str {
        match self {
            Library::Nvrtc => "11.1",
            Library::Driver | Library::CublasLt => "11.0",
        }
    }

    /// How to get it.
    fn remedy(self) -> &'static str {
        match self {
            Library::Driver => "install NVIDIA's driver on a machine with one of its GPUs, or use --device cpu",
            Library::Nvrtc => {
                "install the CUDA toolkit's NVRTC (package cuda-nvrtc, or the Python package nvidia-cuda-nvrtc with its lib folder on \
                 LD_LIBRARY_PATH), or use --device cpu"
            }
            Library::CublasLt => {
                "install cuBLAS of the CUDA toolkit (or the Python package nvidia-cublas with its lib folder on LD_LIBRARY_PATH)"
            }
        }
    }

    pub(super) fn open(self) -> Result<libloading::Library, CudaError> {
        // SAFETY: initializers of NVIDIA's libraries have no requirements.
        let opened = self.files().iter().find_map(|file| unsafe { libloading::Library::new(*file) }.ok());
        opened.ok_or_else(|| CudaError::Unavailable {
            reason: format!("{} is not installed", self.name()),
            remedy: self.remedy().into(),
        })
    }

    pub(super) fn too_old(self, function: &str) -> CudaError {
        CudaError::Unavailable {
            reason: format!("the installed {} is too old: it has no {function}", self.name()),
            remedy: format!("install the one of CUDA {} or newer", self.oldest()),
        }
    }
}

/// Opens a library by its path, so that it is found by its name from then on. Returns false if it cannot be opened.
///
/// # Safety
/// The library's initializers run: it must be one of CUDA's, whose initializers have no requirements.
pub unsafe fn load_from(path: &Path) -> bool {
    // SAFETY: the caller's promise.
    match unsafe { libloading::Library::new(path) } {
        Ok(library) => {
            std::mem::forget(library);
            true
        }
        Err(_) => false,
    }
}
