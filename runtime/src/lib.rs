//! Tilewright's runtime: tensors and their files, artifacts, and the sessions that run them over an accelerator and the
//! CPU.
//!
//! It links no compiler: what runs is in the artifact.

pub mod artifact;
pub mod buffer;
pub mod convert;
pub mod cuda;
pub mod files;
pub mod loader;
pub mod npy;
pub mod placement;
pub mod registry;
pub mod session;
pub mod tensor;
pub mod threads;

pub use artifact::{Artifact, ArtifactError};
pub use registry::Registry;
pub use session::{Session, SessionError};
pub use tensor::{DType, Tensor};
