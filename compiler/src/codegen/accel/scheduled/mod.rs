//! Layers of models as scheduled tensor expressions.
//!
//! `tilewright_tensor::mapping` turns a scheduled loop program into instructions. Here are the parts that know layers: where
//! their tensors are, which of them stay on the chip, and how a layer's buffers follow those of the layer before.

mod held;
mod layer;
mod layer_schedule;
mod prepared;
#[cfg(test)]
pub(super) mod tests;

pub(super) use layer::emit;
pub(super) use layer_schedule::template;
pub use layer_schedule::{LayerInput, LayerSchedule};
pub use tilewright_tensor::mapping::*;
