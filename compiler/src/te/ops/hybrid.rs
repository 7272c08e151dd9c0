//! `hybrid_dense` and `hybrid_conv2d`: float rows or images, quantized at run time, times int8 weights.

use super::call;
use super::window::{constant, index, padded, parts, tap};
use crate::graph::DType;
use crate::graph::op::{HybridConv2d, HybridDense, Layout};
use crate::te::{BinOp, Builder, Combiner, Expr, Func, TensorRef};

/// Appends a hybrid dense layer: quantized rows, their sums, then scale and bias. `None` if an operand is missing.
pub fn dense(b: &mut Builder, op: &HybridDense, args: &[TensorRef], out: &[i64]) -> Option<TensorRef> {
    let [x, w, scale, bias] = args else { return None };
    let (quantized, step) = quantize(b, op.asymmetric, x);
    let sum = b.sum_from(
        "sum",
        out,
        &[("k", w.shape[1])],
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

/// Appends a hybrid convolution: quantized images, their sums over windows, then scale and bias. `None` if an operand
/// is missing.
pub fn conv2d(b: &mut Builder, op: &HybridConv2d, args: &[TensorRef], out: &[i64]) -> Option<TensorRef> {
    let [x, w, scale, bias] = args else { return None };
    let layout = Layout::Nhwc;
    let (quantized, step) = quantize(b, op.asymmetric, x);
    let source = padded(b, &quantized, layout, &op.pads, constant(DType::I32, 0));
    let depth = w.shape[3];
    let per_group = (w.shape[0] / op.groups.max(1) as i64).max(1);
    let reduce = [("kh", w.shape[1]), ("kw", w.shape[2]), ("ci", depth)];
    let sum = b.sum_from(
        "sum",
        out,
        &reduce,
        |_| constant(DType::I32, 0),
        |i, r| {
            let [n, h, wd, c] = parts(i, layout);
            let channel = match (op.groups, depth) {
                (1, _) => r[2].clone(),
                // Depthwise: keep the index affine.
                (_, 1) if per_group == 1 => c.clone(),
                _ => c.clone() / per_group * depth + r[2].clone(),
            };
            let (h, wd) =
                (tap(&h, &r[0], op.strides[0], op.dilations[0]), tap(&wd, &r[1], op.strides[1], op.dilations[1]));
            let data = source.at(&index(layout, n, h, wd, channel));
            data * w.at(&[c, r[0].clone(), r[1].clone(), r[2].clone()]).cast(DType::I32)
        },
    );
    Some(b.compute("hybrid_conv2d", out, |i| {
        let (image, channel) = (&i[..1], &i[3..]);
        sum.at(i).cast(DType::F32) * (scale.at(channel) * step.at(image)) + bias.at(channel)
    }))
}

/// Appends the quantized rows along the first dimension, minus their zero points, and the scale of each row.
fn quantize(b: &mut Builder, asymmetric: bool, x: &TensorRef) -> (TensorRef, TensorRef) {
    let m = x.shape[0];
    let names = ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"];
    let axes: Vec<(&str, i64)> = names.into_iter().zip(x.shape[1..].iter().copied()).collect();
    let zero = || Expr::f32(0.0);
    let mut range = |name: &str, combiner, pick: fn(Expr, Expr) -> Expr| {
        b.reduce(name, DType::F32, &[m], &axes, combiner, |i, r| {
            let at: Vec<Expr> = i.iter().chain(r).cloned().collect();
            pick(x.at(&at), zero())
        })
    };
    let lo = range("lo", Combiner::Min, Expr::min);
    let hi = range("hi", Combiner::Max, Expr::max);
    let step = b.compute("step", &[m], |i| {
        if asymmetric {
            (hi.at(i) - lo.at(i)) / Expr::f32(255.0)
        } else {
            hi.at(i).max(zero() - lo.at(i)) / Expr::f32(127.0)
        }
    });
    let inverse = b.compute("inverse", &[m], |i| {
        let one =
            if asymmetric { Expr::f32(1.0) / step.at(i) } else { Expr::f32(127.0) / hi.at(i).max(zero() - lo.at(i)) };
        let empty = Expr::binary(BinOp::Eq, hi.at(i).max(zero() - lo.at(i)), zero());
        empty.select(zero(), one)
    });
    let offset = b.compute("offset", &[m], |i| {
        if !asymmetric {
            return zero();
        }
        let (below, above) = (lo.at(i) * inverse.at(i), hi.at(i) * inverse.at(i));
        let nearer = (Expr::f32(128.0) - below.clone()).lt(Expr::f32(127.0) + above.clone());
        let z = nearer.select(Expr::f32(-128.0) - below, Expr::f32(127.0) - above);
        call(Func::RoundAway, [z]).max(Expr::f32(-128.0)).min(Expr::f32(127.0))
    });
    let least = if asymmetric { -128 } else { -127 };
    let quantized = b.compute("quantized", &x.shape, |i| {
        let row = &i[..1];
        let q = call(Func::RoundAway, [offset.at(row) + x.at(i) * inverse.at(row)]).cast(DType::I32);
        let q = call(Func::OffsetClamp, [q, Expr::i32(0), Expr::i32(least), Expr::i32(127)]);
        q - offset.at(row).cast(DType::I32)
    });
    (quantized, step)
}
