//! Tilewright's runtime: tensors and their files, artifacts, and the sessions that run them over an accelerator and the CPU.
//!
//! It links no compiler: what runs is in the artifact.

pub mod files;
pub mod npy;
pub mod tensor;

pub use tensor::{DType, Tensor};
