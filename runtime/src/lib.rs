//! Tilewright's runtime: tensors and their files, artifacts, and the sessions that run them over an accelerator and the
//! CPU.
//!
//! It links no compiler: what runs is in the artifact.

pub mod artifact;
pub mod buffer;
pub mod builtin;
mod clock;
pub mod convert;
pub mod cuda;
pub mod device;
pub mod dlpack;
pub mod files;
pub mod function;
pub mod loader;
pub mod module;
pub mod npy;
pub mod packed;
pub mod placement;
pub mod registry;
pub mod session;
pub mod tensor;
pub mod threads;
pub mod value;

pub use artifact::{Artifact, ArtifactError};
pub use device::SharedDevice;
pub use function::{CallError, Function};
pub use module::Module;
pub use registry::Registry;
pub use session::{Session, SessionError};
pub use tensor::{DType, Tensor};
pub use value::{Kind, Value};
