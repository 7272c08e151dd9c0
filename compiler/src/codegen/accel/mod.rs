//! Integer operators to accelerator programs.
//!
//! [`extract`] reads groups of graph nodes as [`Layer`]s: a product with its requantization, a pooling with its
//! division, a quantized addition. [`Plan`] cuts a layer into tiles that fit the scratchpads; a tile's product
//! is a tensor expression that is scheduled and tensorized to gemm; [`build()`] turns planned
//! layers into one program over tensors in the blocked layout of device memory. Tokens, micro-op memories and their
//! loads are the driver's.

mod add;
mod build;
mod conv;
mod extract;
mod layer;
mod plan;
mod pool;
mod product;
mod scratch;
mod view;

pub use build::{BuildError, Built, build};
pub use extract::{Found, extract};
pub use layer::{Add, Conv, Finish, Kind, Layer, Pool, PoolFinish, Reduce};
pub use plan::{ConvTile, Plan, PoolTile, plan};
pub use product::{ProductError, Tile, gemm};
pub use view::View;
