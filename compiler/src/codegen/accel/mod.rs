//! Compiles integer operators into accelerator programs.
//!
//! [`extract`] reads a group of graph nodes as a [`Layer`] with its [`Operator`], for example a product with its
//! requantization, a pooling with its division, or a quantized addition. [`Operator::plan`] cuts the layer into tiles
//! that fit the scratchpads. [`build()`] turns planned layers into one program over tensors in the blocked layout of
//! device memory. The driver adds dependency tokens and manages the micro-op memories.
//!
//! Each operator is a file or folder in `ops` that implements `AccelOperator`. The files
//! here are shared by all operators and know none of them:
//!
//! | file | contents |
//! |---|---|
//! | `reader` | the graph as operators read it |
//! | `layer`, `view`, `kept` | what a layer reads and writes, and how tensors are laid out |
//! | `parts`, `padded_range`, `batch`, `limits` | tiles of a dimension, rows that windows read, limits of fields |
//! | `work`, `dma` | estimated cycles |
//! | `space` | plans as named decisions |
//! | `requant` | requantizations in expressions, with their steps |
//! | `border` | images with padding as a part of an expression |
//! | `runs`, `pieces` | tensors for operators that use each element by itself |
//! | `tile_groups` | tiles in the batch rows of entries |
//! | `emit`, `ring`, `tensors`, `kept_border` | the program under construction |
//!
//! An operator gives a layer as a scheduled tensor expression, and [`scheduled`] turns it into instructions.
//!
//! `fuse` is the exception: it fuses operators into the tiles of the product before them.

mod batch;
mod border;
mod build;
mod dma;
mod emit;
mod finish;
mod fuse;
mod kept;
mod kept_border;
mod layer;
mod limits;
mod operator;
mod ops;
mod padded_range;
mod parts;
mod pieces;
mod reader;
mod requant;
mod ring;
mod runs;
pub mod scheduled;
pub mod space;
mod tensors;
mod tile_groups;
mod vector_op;
mod view;
mod work;

pub use build::{BuildError, Built, BuiltLayer, build, ordered};
pub use emit::{Aliases, Constants};
pub use fuse::{FuseError, Fused, Neighbors, continues_chain, fuse, fused, has_fused_pooling, is_chain};
pub use kept::{Kept, OnChip};
pub use layer::Layer;
pub use operator::{InpUse, LayoutFreedom, WindowBorder};
pub use ops::{NodeRole, Operator, Planned, extract, layouts};
pub use vector_op::elementwise;
pub use view::View;
