//! Products with constant weights packed for vectors: in blocks of output channels, with a block's channels contiguous.
//!
//! The packed weights and the bias padded to whole blocks are separate tensors that depend only on constants, so the
//! caller can compute them at compile time. Results have whole blocks of channels, and are cut if there are fewer
//! channels.

use super::Blocks;
use super::conv2d::conv_sum;
use super::window::{constant, padded};
use crate::graph::DType;
use crate::graph::op::{Conv2d, Layout};
use crate::te::{Builder, Expr, TensorRef};

/// Returns the number of channels rounded up to whole blocks.
pub(super) fn whole(channels: i64, blocks: Blocks) -> i64 {
    (channels + blocks.channels - 1) / blocks.channels * blocks.channels
}

/// Appends packed weights of this shape. Dimension 0 counts the blocks, and dimension `lane` the channels of a block.
/// `at` returns the weight for a channel and an index of the packed tensor. Weights after the last channel are zeros.
pub(super) fn packed(
    b: &mut Builder,
    channels: i64,
    (shape, lane): (&[i64], usize),
    blocks: Blocks,
    at: impl FnOnce(Expr, &[Expr]) -> Expr,
) -> TensorRef {
    let n = blocks.channels;
    let wide = whole(channels, blocks);
    b.compute("packed", shape, |i| {
        let channel = i[0].clone() * n + i[lane].clone();
        let value = at(channel.clone(), i);
        within(channel, channels, wide, value)
    })
}

/// Returns the shape `[channels / block, steps of the sum.., block]`.
fn in_blocks(channels: i64, steps: &[i64], blocks: Blocks) -> Vec<i64> {
    let outer = whole(channels, blocks) / blocks.channels;
    std::iter::once(outer).chain(steps.iter().copied()).chain([blocks.channels]).collect()
}

/// Returns the value if an index is below `there`, else 0. `wide` is the bound of the index.
pub(super) fn within(index: Expr, there: i64, wide: i64, value: Expr) -> Expr {
    if wide == there {
        return value;
    }
    let zero = constant(value.dtype(), 0);
    index.lt(Expr::int(there)).select(value, zero)
}

/// Returns the index in packed weights of a channel at the given steps of the sum.
pub(super) fn place(channel: &Expr, steps: &[Expr], blocks: Blocks) -> Vec<Expr> {
    let n = blocks.channels;
    let (block, lane) = (channel.clone() / n, channel.clone() % n);
    std::iter::once(block).chain(steps.iter().cloned()).chain([lane]).collect()
}

fn wide_bias(b: &mut Builder, bias: Option<&TensorRef>, channels: i64, blocks: Blocks) -> Option<TensorRef> {
    let wide = whole(channels, blocks);
    let bias = bias?;
    if wide == channels {
        return Some(bias.clone());
    }
    Some(b.compute("bias", &[wide], |i| within(i[0].clone(), channels, wide, bias.at(i))))
}

/// Drops the channels that pad the last block.
pub(super) fn cut(b: &mut Builder, sum: TensorRef, out: &[i64]) -> TensorRef {
    if sum.shape == out { sum } else { b.compute("cut", out, |i| sum.at(i)) }
}

/// Appends a convolution of NHWC images with one group.
pub fn conv2d(
    b: &mut Builder,
    op: &Conv2d,
    x: &TensorRef,
    w: &TensorRef,
    bias: Option<&TensorRef>,
    out: &[i64],
    blocks: Blocks,
) -> TensorRef {
    let source = padded(b, x, Layout::Nhwc, &op.pads, Expr::f32(0.0));
    let channels = w.shape[0];
    let shape = in_blocks(channels, &w.shape[1..], blocks);
    let weights = packed(b, channels, (&shape, 4), blocks, |c, i| w.at(&[&[c], &i[1..4]].concat()));
    let bias = wide_bias(b, bias, channels, blocks);
    let wide = [&out[..3], &[whole(channels, blocks)]].concat();
    let steps = [w.shape[1], w.shape[2], w.shape[3]];
    let sum = conv_sum(b, op, &source, bias.as_ref(), &wide, steps, |c, k| weights.at(&place(&c, k, blocks)));
    cut(b, sum, out)
}

/// Appends a depthwise convolution of NHWC images. Its weights are packed as `[KH, KW, C]`, so that those of
/// neighboring channels are contiguous.
pub fn depthwise(
    b: &mut Builder,
    op: &Conv2d,
    x: &TensorRef,
    w: &TensorRef,
    bias: Option<&TensorRef>,
    out: &[i64],
) -> TensorRef {
    let source = padded(b, x, Layout::Nhwc, &op.pads, constant(x.dtype, op.data_zero_point));
    let shape = [w.shape[1], w.shape[2], w.shape[0]];
    let weights = b.compute("packed", &shape, |i| w.at(&[i[2].clone(), i[0].clone(), i[1].clone(), Expr::int(0)]));
    let steps = [w.shape[1], w.shape[2], 1];
    conv_sum(b, op, &source, bias, out, steps, |c, k| weights.at(&[k[0].clone(), k[1].clone(), c]))
}

/// Appends the product of rows of data with rows of weights.
pub fn dense(
    b: &mut Builder,
    x: &TensorRef,
    w: &TensorRef,
    bias: Option<&TensorRef>,
    out: &[i64],
    blocks: Blocks,
) -> TensorRef {
    let channels = w.shape[0];
    let shape = in_blocks(channels, &w.shape[1..], blocks);
    let weights = packed(b, channels, (&shape, 2), blocks, |c, i| w.at(&[c, i[1].clone()]));
    let bias = wide_bias(b, bias, channels, blocks);
    rows(b, "dense", x, &weights, bias.as_ref(), out, channels, blocks)
}

/// Appends the product of rows of data, with any outer dimensions, and the columns of one matrix.
pub fn matmul(b: &mut Builder, x: &TensorRef, w: &TensorRef, out: &[i64], blocks: Blocks) -> TensorRef {
    let channels = w.shape[1];
    let shape = in_blocks(channels, &w.shape[..1], blocks);
    let weights = packed(b, channels, (&shape, 2), blocks, |c, i| w.at(&[i[1].clone(), c]));
    rows(b, "matmul", x, &weights, None, out, channels, blocks)
}

#[allow(clippy::too_many_arguments, reason = "operands, sizes and their blocks")]
fn rows(
    b: &mut Builder,
    name: &str,
    x: &TensorRef,
    weights: &TensorRef,
    bias: Option<&TensorRef>,
    out: &[i64],
    channels: i64,
    blocks: Blocks,
) -> TensorRef {
    let last = out.len() - 1;
    let wide = [&out[..last], &[whole(channels, blocks)]].concat();
    let depth = x.shape[x.shape.len() - 1];
    let first = |i: &[Expr]| bias.map_or_else(|| Expr::f32(0.0), |bias| bias.at(&i[last..]));
    let sum = b.sum_from(name, &wide, &[("k", depth)], first, |i, r| {
        let skip = last - (x.shape.len() - 1);
        let at = [&i[skip..last], r].concat();
        x.at(&at) * weights.at(&place(&i[last], r, blocks))
    });
    debug_assert_eq!(sum.dtype, DType::F32);
    cut(b, sum, out)
}
