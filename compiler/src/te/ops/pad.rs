//! `pad`: adds a border of one value.

use super::window::border;
use crate::graph::DType;
use crate::graph::op::Pad;
use crate::te::{Builder, Expr, TensorRef};

/// Appends the data with a border around it.
pub fn pad(b: &mut Builder, op: &Pad, x: &TensorRef, out: &[i64]) -> TensorRef {
    let value = match x.dtype {
        DType::Bool => Expr::Int((op.value != 0.0).into(), x.dtype),
        t => Expr::number(op.value.into(), t),
    };
    let before: Vec<i64> = op.before.iter().map(|&n| n as i64).collect();
    border(b, x, &before, out, value)
}
