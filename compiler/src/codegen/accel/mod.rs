//! Integer operators to accelerator programs.
//!
//! [`extract`] reads groups of graph nodes as [`Layer`]s: a product with its requantization, a pooling with its
//! division, a quantized addition. [`Plan`] cuts a layer into tiles that fit the scratchpads. A tile's products, windows,
//! requantizations and additions are tensor expressions, scheduled and tensorized to what a micro-op does ([`Mapped`]). [`build()`]
//! turns planned layers into one program over tensors in the blocked layout of device memory. Tokens, micro-op memories
//! and their loads are the driver's.

mod batch;
mod build;
mod conv;
mod copy;
mod depthwise;
mod dma;
mod estimate;
mod extract;
mod keep;
mod layer;
mod lookup;
mod mapped;
mod matmul;
mod moves;
mod padding;
mod pair;
mod pairs;
mod plan;
mod pool;
mod pooled;
mod product;
mod rest;
mod scratch;
mod shared;
mod stem;
mod taps;
mod then;
mod tiles;
mod transpose;
mod transposed;
mod vector;
mod view;
mod walk;
mod window;

pub use build::{BuildError, Built, Constants, build};
pub use depthwise::DepthwiseTile;
pub use estimate::cycles;
pub use extract::{Found, extract};
pub use keep::{Kept, OnChip};
pub use layer::{
    Conv, Copy, Finish, Kind, Layer, MatMul, Other, Pair, PairOp, Phase, Pool, PoolFinish, Reduce, Then, Transposed,
    Walk,
};
pub use mapped::{MapError, Mapped};
pub use matmul::MatMulTile;
pub use plan::{Plan, PoolTile, plan, plans};
pub use product::{Tile, gemm, product};
pub use taps::{Taps, diagonal, mac};
pub use tiles::ConvTile;
pub use vector::{Pairwise, Requant, Windows, pairwise, requant, windows};
pub use view::View;
