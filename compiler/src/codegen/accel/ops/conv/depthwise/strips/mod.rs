//! Depthwise convolutions in pairs of strips, whose instructions are emitted by hand.
//!
//! Against a schedule, the rows of a strip are loaded once, and the first and the last step of a layer are short. In
//! networks of small layers this takes fewer cycles, so the planner compares both.

mod emit;
mod plan;
mod taps;

pub use emit::emit;
pub use plan::{StripTile, shares, tile, tiles};
