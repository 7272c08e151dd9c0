//! Tensor expressions, and those of the graph's operators.

pub mod ops;

pub use tilewright_tensor::te::*;
