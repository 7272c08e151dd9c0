//! Depthwise convolutions that the array and the vector unit compute together.

mod emit;
mod plan;
mod taps;

pub use emit::emit;
pub use plan::{DepthwiseTile, shares, tile, tiles};
