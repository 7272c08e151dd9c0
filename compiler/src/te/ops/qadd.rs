//! `qadd` and `qsquared_difference`: `num::quantized_add` and `num::quantized_squared_difference`.

use tilewright_hw::num::{Qadd, QaddOperand};

use super::{broadcast, call};
use crate::graph::DType;
use crate::graph::op::{QAdd, QSquaredDifference};
use crate::te::{Builder, Expr, Func, TensorRef};

/// Appends a quantized sum: converts both operands to a common scale, adds, and converts to the output's scale.
pub fn qadd(b: &mut Builder, op: &QAdd, x: &TensorRef, y: &TensorRef, out: &[i64]) -> TensorRef {
    let q = &op.params;
    b.compute("qadd", out, |i| finish(q, term(x, i, out, q, &q.a) + term(y, i, out, q, &q.b)))
}

/// Appends a quantized squared difference: converts both operands to a common scale, subtracts, squares, and converts
/// to the output's scale.
pub fn qsquared_difference(
    b: &mut Builder,
    op: &QSquaredDifference,
    x: &TensorRef,
    y: &TensorRef,
    out: &[i64],
) -> TensorRef {
    let q = &op.params;
    let d = b.compute("difference", out, |i| term(x, i, out, q, &q.a) - term(y, i, out, q, &q.b));
    b.compute("qsquared_difference", out, |i| finish(q, d.at(i) * d.at(i)))
}

fn scale(x: Expr, o: &QaddOperand) -> Expr {
    call(Func::ScaleDouble, [x, Expr::i32(o.multiplier), Expr::i32(o.shift as i32)])
}

/// Converts an operand to the common scale.
fn term(t: &TensorRef, i: &[Expr], out: &[i64], q: &Qadd, o: &QaddOperand) -> Expr {
    let v = t.at(&broadcast(i, out, &t.shape)).cast(DType::I32) - o.zero_point as i64;
    scale(v << (q.left_shift & 31) as i64, o)
}

/// Converts to the output's scale.
fn finish(q: &Qadd, sum: Expr) -> Expr {
    let sum = scale(sum, &q.out);
    call(Func::OffsetClamp, [sum, Expr::i32(q.out.zero_point), Expr::i32(q.lo), Expr::i32(q.hi)]).cast(DType::I8)
}
