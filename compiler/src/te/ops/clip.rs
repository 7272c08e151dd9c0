//! `clip` and `relu`: values clamped to bounds. NaN stays NaN.

use crate::graph::op::Clip;
use crate::te::{Builder, Expr, TensorRef};

/// Appends `min(max(x, lo), hi)`.
pub fn clip(b: &mut Builder, op: &Clip, x: &TensorRef, out: &[i64]) -> TensorRef {
    let bound = |v: f32| Expr::number(v.into(), x.dtype);
    b.compute("clip", out, |i| x.at(i).max(bound(op.lo)).min(bound(op.hi)))
}

/// Appends `max(x, 0)`.
pub fn relu(b: &mut Builder, x: &TensorRef, out: &[i64]) -> TensorRef {
    b.compute("relu", out, |i| x.at(i).max(Expr::number(0.0, x.dtype)))
}
