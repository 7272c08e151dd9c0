//! Whether a library of CUDA is installed.

use super::{CudaError, Library, sys};

impl Library {
    /// Whether it is installed, with all functions that are called.
    pub fn is_present(self) -> bool {
        self.need().is_ok()
    }

    /// Checks that it is installed, with all functions that are called. None of it must be called otherwise.
    ///
    /// # Errors
    /// [`CudaError::Unavailable`].
    pub fn need(self) -> Result<(), CudaError> {
        match self {
            Library::Driver => sys::driver().map(drop),
            Library::Nvrtc => sys::nvrtc().map(drop),
            Library::CublasLt => sys::cublaslt().map(drop),
        }
    }
}
