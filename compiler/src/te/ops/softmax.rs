//! `softmax`: exponentials of the distance to the greatest element, divided by their sum.

use super::call;
use crate::graph::DType;
use crate::graph::op::Softmax;
use crate::te::{Builder, Combiner, Expr, Func, TensorRef};

/// Appends a softmax in four stages: greatest element, exponentials, their sum, quotients.
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
    let greatest = b.reduce("greatest", x.dtype, &rows, &[("k", n)], Combiner::Max, |i, k| x.at(&full(i, &k[0])));
    let exp = b.compute("exp", out, |i| {
        let exponent = if x.dtype == DType::F32 {
            (x.at(i) - greatest.at(&row(i))) * Expr::f32(op.beta)
        } else {
            let distance = greatest.at(&row(i)).cast(DType::I32) - x.at(i).cast(DType::I32);
            Expr::f32(-op.input_scale * op.beta) * distance.cast(DType::F32)
        };
        call(Func::Exp, [exponent])
    });
    let sum = b.reduce("sum", DType::F32, &rows, &[("k", n)], Combiner::Sum, |i, k| exp.at(&full(i, &k[0])));
    b.compute("softmax", out, |i| {
        if x.dtype == DType::F32 {
            return exp.at(i) / sum.at(&row(i));
        }
        let inverse = Expr::f32(1.0) / (sum.at(&row(i)) * Expr::f32(op.output_scale));
        let q = call(Func::RoundAway, [exp.at(i) * inverse]).cast(DType::I32);
        let bounds = [Expr::i32(op.output_zero_point), Expr::i32(-128), Expr::i32(127)];
        let [zero, lo, hi] = bounds;
        call(Func::OffsetClamp, [q, zero, lo, hi]).cast(DType::I8)
    })
}
