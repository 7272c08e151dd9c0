//! `qmul`: `num::quantized_mul`.

use super::requantize::scale;
use super::{broadcast, call};
use crate::graph::DType;
use crate::graph::op::QMul;
use crate::te::{Builder, Expr, Func, TensorRef};

/// Appends the product of the operands minus their zero points, converted to the output's scale.
pub fn qmul(b: &mut Builder, op: &QMul, x: &TensorRef, y: &TensorRef, out: &[i64]) -> TensorRef {
    b.compute("qmul", out, |i| {
        let factor = |t: &TensorRef, zero: i32| t.at(&broadcast(i, out, &t.shape)).cast(DType::I32) - zero as i64;
        let product = factor(x, op.a_zero_point) * factor(y, op.b_zero_point);
        let scaled = call(scale(op.mode), [product, Expr::i32(op.multiplier), Expr::i32(op.shift as i32)]);
        let [zero, lo, hi] = [op.zero_point, op.lo, op.hi].map(Expr::i32);
        call(Func::OffsetClamp, [scaled, zero, lo, hi]).cast(DType::I8)
    })
}
