//! Depthwise convolutions that the array and the vector unit compute together.

pub mod plan;
mod schedule;
mod stages;

pub use plan::{ArrayTaps, DepthwiseTile, is_shared, tile, tiles};
pub use schedule::schedule;
pub use stages::{Share, Stages, tile_number};
