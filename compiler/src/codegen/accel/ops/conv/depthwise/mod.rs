//! Depthwise convolutions on the array and the vector unit at once.

mod emit;
mod plan;
mod taps;

pub use emit::emit;
pub use plan::{DepthwiseTile, tiles};
