//! `hybrid_dense`: rows of floats quantized as they come, times rows of int8 weights.

use super::call;
use super::window::constant;
use crate::graph::DType;
use crate::graph::op::HybridDense;
use crate::te::{Builder, Combiner, Expr, Func, TensorRef};

/// Four stages: each row's range (two reductions), its integers, their sums; then scale and bias.
pub fn hybrid_dense(b: &mut Builder, op: &HybridDense, args: &[TensorRef], out: &[i64]) -> Option<TensorRef> {
    let [x, w, scale, bias] = args else { return None };
    let (m, k) = (out[0], w.shape[1]);
    let zero = || Expr::f32(0.0);
    let mut range = |name: &str, combiner, pick: fn(Expr, Expr) -> Expr| {
        b.reduce(name, DType::F32, &[m], &[("k", k)], combiner, |i, r| {
            pick(x.at(&[i[0].clone(), r[0].clone()]), zero())
        })
    };
    let lo = range("lo", Combiner::Min, Expr::min);
    let hi = range("hi", Combiner::Max, Expr::max);
    let step = b.compute("step", &[m], |i| {
        if op.asymmetric {
            (hi.at(i) - lo.at(i)) / Expr::f32(255.0)
        } else {
            hi.at(i).max(zero() - lo.at(i)) / Expr::f32(127.0)
        }
    });
    let inverse = b.compute("inverse", &[m], |i| {
        let one = if op.asymmetric {
            Expr::f32(1.0) / step.at(i)
        } else {
            Expr::f32(127.0) / hi.at(i).max(zero() - lo.at(i))
        };
        let empty = Expr::binary(crate::te::BinOp::Eq, hi.at(i).max(zero() - lo.at(i)), zero());
        empty.select(zero(), one)
    });
    let offset = b.compute("offset", &[m], |i| {
        if !op.asymmetric {
            return zero();
        }
        let (below, above) = (lo.at(i) * inverse.at(i), hi.at(i) * inverse.at(i));
        let nearer = (Expr::f32(128.0) - below.clone()).lt(Expr::f32(127.0) + above.clone());
        let z = nearer.select(Expr::f32(-128.0) - below, Expr::f32(127.0) - above);
        call(Func::RoundAway, [z]).max(Expr::f32(-128.0)).min(Expr::f32(127.0))
    });
    let least = if op.asymmetric { -128 } else { -127 };
    let quantized = b.compute("quantized", &[m, k], |i| {
        let row = &i[..1];
        let q = call(Func::RoundAway, [offset.at(row) + x.at(i) * inverse.at(row)]).cast(DType::I32);
        let q = call(Func::OffsetClamp, [q, Expr::i32(0), Expr::i32(least), Expr::i32(127)]);
        q - offset.at(row).cast(DType::I32)
    });
    let sum = b.sum_from(
        "sum",
        out,
        &[("k", k)],
        |_| constant(DType::I32, 0),
        |i, r| {
            let data = quantized.at(&[i[0].clone(), r[0].clone()]);
            data * w.at(&[i[1].clone(), r[0].clone()]).cast(DType::I32)
        },
    );
    Some(b.compute("hybrid_dense", out, |i| {
        let (row, column) = (&i[..1], &i[1..]);
        bias.at(column) + sum.at(i).cast(DType::F32) * (step.at(row) * scale.at(column))
    }))
}
