//! CUDA code of an artifact: its form and, with the feature `cuda`, how it is compiled and run.
//!
//! An artifact carries CUDA C as text. NVRTC compiles it on the machine with the GPU, for that GPU, and the result is
//! cached by its content. Driver and NVRTC are loaded when they are needed, so that the same program runs without them.

mod code;
#[cfg(feature = "cuda")]
mod compile;
mod error;
#[cfg(feature = "cuda")]
mod gpu;
#[cfg(feature = "cuda")]
mod libraries;
#[cfg(feature = "cuda")]
mod present;
#[cfg(feature = "cuda")]
mod products;
#[cfg(feature = "cuda")]
mod stream;
#[cfg(feature = "cuda")]
mod sys;

pub use code::{Arg, CudaCall, CudaCode, CudaEntry, Factor, Launch, Lie, Numbers, Product};
#[cfg(feature = "cuda")]
use compile::compiler_version;
#[cfg(feature = "cuda")]
pub use compile::{Form, compile, compile_cached};
pub use error::CudaError;
#[cfg(feature = "cuda")]
pub use gpu::{Gpu, Program};
#[cfg(feature = "cuda")]
pub use libraries::{Library, load_from};
#[cfg(feature = "cuda")]
pub use stream::{GpuMemory, Mark};

/// Checks that a GPU can be used on this machine.
///
/// # Errors
/// [`CudaError::Unavailable`], with what is missing and what to do.
pub fn available() -> Result<(), CudaError> {
    #[cfg(feature = "cuda")]
    return Gpu::open().map(drop);
    #[cfg(not(feature = "cuda"))]
    Err(CudaError::Unavailable {
        reason: "this program was built without it".into(),
        remedy: "build with the feature `cuda`".into(),
    })
}
