//! `softmax`: exponentials of the distance to the greatest element, divided by their sum.

use super::{call, lanes};
use crate::graph::DType;
use crate::graph::op::Softmax;
use crate::te::{Builder, Combiner, Expr, Func, TensorRef};

/// Appends a softmax in stages: greatest element, exponentials, their sum, quotients.
pub fn softmax(b: &mut Builder, op: &Softmax, x: &TensorRef, out: &[i64]) -> TensorRef {
    let mut rows = out.to_vec();
    let n = rows.remove(op.axis);
    let full = |i: &[Expr], k: &Expr| {
        let mut at = i.to_vec();
        at.insert(op.axis, k.clone());
        at
    };
    let row = |i: &[Expr]| {
        let mut at = i.to_vec();
        at.remove(op.axis);
        at
    };
    // Rows of neighboring elements, or rows of strided ones, which the schedule computes side by side.
    let whole = |b: &mut Builder, name: &str, dtype: DType, combiner: Combiner, t: &TensorRef| {
        let at = |i: &[Expr], k: &Expr| t.at(&full(i, k));
        match op.axis + 1 == out.len() {
            true => lanes::reduce(b, name, dtype, &rows, n, combiner, at),
            false => b.reduce(name, dtype, &rows, &[("k", n)], combiner, |i, k| at(i, &k[0])),
        }
    };
    let greatest = whole(b, "greatest", x.dtype, Combiner::Max, x);
    let exp = b.compute("exp", out, |i| {
        let exponent = if x.dtype.is_float() {
            (x.at(i) - greatest.at(&row(i))) * Expr::number(op.beta.into(), x.dtype)
        } else {
            let distance = greatest.at(&row(i)).cast(DType::I32) - x.at(i).cast(DType::I32);
            Expr::f32(-op.input_scale * op.beta) * distance.cast(DType::F32)
        };
        call(Func::Exp, [exponent])
    });
    let sum = whole(b, "sum", exp.dtype, Combiner::Sum, &exp);
    b.compute("softmax", out, |i| {
        if x.dtype.is_float() {
            return exp.at(i) / sum.at(&row(i));
        }
        let inverse = Expr::f32(1.0) / (sum.at(&row(i)) * Expr::f32(op.output_scale));
        let q = call(Func::RoundAway, [exp.at(i) * inverse]).cast(DType::I32);
        let bounds = [Expr::i32(op.output_zero_point), Expr::i32(-128), Expr::i32(127)];
        let [zero, lo, hi] = bounds;
        call(Func::OffsetClamp, [q, zero, lo, hi]).cast(DType::I8)
    })
}
