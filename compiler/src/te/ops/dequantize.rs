//! `dequantize`: converts integers to the real values that they represent.

use super::table;
use crate::graph::DType;
use crate::graph::op::Dequantize;
use crate::te::{Builder, Expr, TensorRef};

/// Appends `(x - zero point) * scale`.
pub fn dequantize(b: &mut Builder, op: &Dequantize, x: &TensorRef, out: &[i64]) -> TensorRef {
    b.compute("dequantize", out, |i| {
        let channel = i.get(op.axis).cloned().unwrap_or_else(|| Expr::int(0));
        let scale = table(&channel, &op.scale.iter().map(|&s| Expr::f32(s)).collect::<Vec<_>>());
        let zero = table(&channel, &op.zero_point.iter().map(|&z| Expr::int(z as i64)).collect::<Vec<_>>());
        (x.at(i).cast(DType::I64) - zero).cast(DType::F32) * scale
    })
}
