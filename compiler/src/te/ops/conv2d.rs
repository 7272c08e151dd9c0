//! `conv2d`: padding as a separate stage, then one sum over taps and channels.

use super::window::{constant, index, padded, parts, tap};
use crate::graph::DType;
use crate::graph::op::Conv2d;
use crate::te::{Builder, Expr, TensorRef};

/// Appends a convolution. Floats start the sum with the bias; integers subtract the zero points and sum products in
/// i32.
pub fn conv2d(
    b: &mut Builder,
    op: &Conv2d,
    x: &TensorRef,
    w: &TensorRef,
    bias: Option<&TensorRef>,
    out: &[i64],
) -> TensorRef {
    let source = padded(b, x, op.layout, &op.pads, constant(x.dtype, op.data_zero_point));
    let steps = [w.shape[1], w.shape[2], w.shape[3]];
    conv_sum(b, op, &source, bias, out, steps, |c, k| w.at(&[&[c], k].concat()))
}

/// Appends the sum over taps and channels (`steps`) of a padded image. `weight` returns a channel's weight at a step.
pub(super) fn conv_sum(
    b: &mut Builder,
    op: &Conv2d,
    source: &TensorRef,
    bias: Option<&TensorRef>,
    out: &[i64],
    steps: [i64; 3],
    weight: impl FnOnce(Expr, &[Expr]) -> Expr,
) -> TensorRef {
    let depth = steps[2];
    let per_group = out[op.layout.channel_axis()] / op.groups.max(1) as i64;
    let sum = if source.dtype.is_float() { source.dtype } else { DType::I32 };
    let reduce = [("kh", steps[0]), ("kw", steps[1]), ("ci", depth)];
    let first = |i: &[Expr]| match bias {
        Some(bias) => bias.at(&[i[op.layout.channel_axis()].clone()]),
        None => constant(sum, 0),
    };
    b.sum_from("conv2d", out, &reduce, first, |i, r| {
        let [n, h, wd, c] = parts(i, op.layout);
        let channel = match (op.groups, depth) {
            (1, _) => r[2].clone(),
            // Depthwise: keep the index affine.
            (_, 1) if per_group == 1 => c.clone(),
            (_, _) if per_group == 1 => c.clone() * depth + r[2].clone(),
            _ => c.clone() / per_group * depth + r[2].clone(),
        };
        let at = index(
            op.layout,
            n,
            tap(&h, &r[0], op.strides[0], op.dilations[0]),
            tap(&wd, &r[1], op.strides[1], op.dilations[1]),
            channel,
        );
        product(source.at(&at), weight(c, r), op.data_zero_point, op.weight_zero_point)
    })
}

/// Returns `(x - zero point) * (w - zero point)`, in i32 for integers.
pub fn product(x: Expr, w: Expr, x_zero: i32, w_zero: i32) -> Expr {
    if x.dtype().is_float() {
        return x * w;
    }
    let less = |v: Expr, zero: i32| {
        let v = v.cast(DType::I32);
        if zero == 0 { v } else { v - zero as i64 }
    };
    less(x, x_zero) * less(w, w_zero)
}
