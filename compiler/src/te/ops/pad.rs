//! `pad`: adds a border of one value.

use super::window::border;
use crate::graph::DType;
use crate::graph::op::Pad;
use crate::te::{Builder, Expr, TensorRef};

/// Appends the data with a border around it.
pub fn pad(b: &mut Builder, op: &Pad, x: &TensorRef, out: &[i64]) -> TensorRef {
    let value = if x.dtype == DType::F32 { Expr::f32(op.value) } else { Expr::Int(op.value as i64, x.dtype) };
    let before: Vec<i64> = op.before.iter().map(|&n| n as i64).collect();
    border(b, x, &before, out, value)
}
