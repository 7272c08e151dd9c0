//! `clip` and `relu`: values clamped to bounds. NaN stays NaN.

use crate::graph::DType;
use crate::graph::op::Clip;
use crate::te::{Builder, Expr, TensorRef};

/// Appends `min(max(x, lo), hi)`.
pub fn clip(b: &mut Builder, op: &Clip, x: &TensorRef, out: &[i64]) -> TensorRef {
    let bound = |v: f32| if x.dtype == DType::F32 { Expr::f32(v) } else { Expr::Int(v as i64, x.dtype) };
    b.compute("clip", out, |i| x.at(i).max(bound(op.lo)).min(bound(op.hi)))
}

/// Appends `max(x, 0)`.
pub fn relu(b: &mut Builder, x: &TensorRef, out: &[i64]) -> TensorRef {
    b.compute("relu", out, |i| x.at(i).max(Expr::f32(0.0)))
}
