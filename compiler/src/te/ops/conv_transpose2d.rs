//! `conv_transpose2d`: spreads the data by the strides in a separate stage, then takes one sum over taps and channels.

use super::conv2d::product;
use super::window::{constant, index, parts};
use crate::graph::DType;
use crate::graph::op::ConvTranspose2d;
use crate::te::{Builder, Expr, TensorRef};

/// Appends a transposed convolution. Floats start the sum with the bias; integers subtract the zero points and sum
/// products in i32.
pub fn conv_transpose2d(
    b: &mut Builder,
    op: &ConvTranspose2d,
    x: &TensorRef,
    w: &TensorRef,
    bias: Option<&TensorRef>,
    out: &[i64],
) -> TensorRef {
    let source = spread(b, op, x, w, out);
    let (kernel, depth) = ([w.shape[1], w.shape[2]], w.shape[3]);
    let per_group = w.shape[0] / op.groups.max(1) as i64;
    let sum = if x.dtype.is_float() { x.dtype } else { DType::I32 };
    let reduce = [("kh", kernel[0]), ("kw", kernel[1]), ("ci", depth)];
    let first = |i: &[Expr]| match bias {
        Some(bias) => bias.at(&[i[op.layout.channel_axis()].clone()]),
        None => constant(sum, 0),
    };
    b.sum_from("conv_transpose2d", out, &reduce, first, |i, r| {
        let [n, h, wd, c] = parts(i, op.layout);
        let channel = if op.groups == 1 { r[2].clone() } else { c.clone() / per_group.max(1) * depth + r[2].clone() };
        let at = |o: Expr, i: usize| o + r[i].clone() * op.dilations[i] as i64;
        let data = source.at(&index(op.layout, n, at(h, 0), at(wd, 1), channel));
        // The kernel is flipped: the first tap that reaches an output position is the kernel's last.
        let flipped = |i: usize| Expr::int(kernel[i] - 1) - r[i].clone();
        let weight = w.at(&[c, flipped(0), flipped(1), r[2].clone()]);
        product(data, weight, op.data_zero_point, op.weight_zero_point)
    })
}

/// Appends the data with its elements `strides` apart. The gaps and the border hold the zero point.
fn spread(b: &mut Builder, op: &ConvTranspose2d, x: &TensorRef, w: &TensorRef, out: &[i64]) -> TensorRef {
    let axes = op.layout.spatial_axes();
    let reach = [0, 1].map(|i| (w.shape[i + 1] - 1) * op.dilations[i] as i64);
    let mut shape = out.to_vec();
    shape[op.layout.channel_axis()] = x.shape[op.layout.channel_axis()];
    axes.iter().zip(reach).for_each(|(&a, r)| shape[a] += r);
    let zero = constant(x.dtype, op.data_zero_point);
    b.compute("spread", &shape, |i| {
        let mut at = i.to_vec();
        let mut inside: Option<Expr> = None;
        for (k, &a) in axes.iter().enumerate() {
            let (stride, size) = (op.strides[k] as i64, x.shape[a]);
            let from = i[a].clone() - (reach[k] - op.pads[k] as i64);
            let here = Expr::int(0).le(from.clone()).and(from.clone().lt(Expr::int((size - 1) * stride + 1)));
            let here = if stride == 1 { here } else { here.and((from.clone() % stride).equals(Expr::int(0))) };
            inside = Some(match inside.take() {
                Some(other) => other.and(here),
                None => here,
            });
            at[a] = from / stride;
        }
        match inside {
            Some(c) => c.select(x.at(&at), zero),
            None => x.at(&at),
        }
    })
}
