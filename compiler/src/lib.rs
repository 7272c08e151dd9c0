//! Tilewright's compiler: front ends, graph, passes, quantization, tensor expressions, loop programs, code generation.

pub mod backend;
pub mod codegen;
pub mod cost;
#[cfg(test)]
mod filetests;
pub mod frontend;
pub mod graph;
pub mod groups;
pub mod partition;
pub mod passes;
pub mod quantize;
pub mod records;
pub mod rows;
pub mod suite;
pub mod te;
pub mod tune;

pub use tilewright_tensor::{math, schedule, tir};
