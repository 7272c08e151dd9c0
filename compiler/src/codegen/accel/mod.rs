//! Integer operators to programs of the accelerator.
//!
//! [`extract`] reads groups of graph nodes as a [`Layer`] with its [`Operator`]: a product with its requantization, a pooling
//! with its division, a quantized addition. [`Operator::plan`] cuts the layer into tiles that fit the scratchpads, and
//! [`build()`] turns planned layers into one program over tensors in the blocked layout of device memory. Dependency tokens,
//! micro-op memories and their loads are the driver's.
//!
//! An operator is a file or folder in `ops`, which implements [`AccelOperator`](operator::AccelOperator). The files here know
//! no operator; they are what operators share:
//!
//! | file | holds |
//! |---|---|
//! | `reader` | the graph as operators read it |
//! | `layer`, `view`, `kept` | what a layer reads and writes, and how tensors are laid out |
//! | `parts`, `span`, `batch`, `limits` | dimensions cut into tiles, what windows read of them, limits of instruction fields |
//! | `work`, `dma` | estimated cycles |
//! | `mapped`, `product`, `requant` | a tile's work as a scheduled tensor expression |
//! | `emit`, `ring`, `tensors`, `target`, `window`, `padding`, `pieces` | the program under construction |
//!
//! `fuse` takes operators into the tiles of the product before them.

mod batch;
mod build;
mod dma;
mod emit;
mod finish;
mod fuse;
mod kept;
mod layer;
mod limits;
mod mapped;
mod operator;
mod ops;
mod padding;
mod parts;
mod pieces;
mod product;
mod reader;
mod requant;
mod ring;
mod span;
mod target;
mod tensors;
mod vector_op;
mod view;
mod window;
mod work;

pub use build::{BuildError, Built, build};
pub use emit::{Aliases, Constants};
pub use fuse::{FuseError, Neighbors, fuse, fused, has_fused_pooling};
pub use kept::{Kept, OnChip};
pub use layer::Layer;
pub use operator::{InpUse, LayoutFreedom, WindowBorder};
pub use ops::{NodeRole, Operator, Planned, extract, layouts};
pub use vector_op::elementwise;
pub use view::View;
