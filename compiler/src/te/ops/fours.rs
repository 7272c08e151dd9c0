//! Products of bytes with constant weights, in sums of four, for processors with an instruction that multiplies four
//! pairs of bytes and adds them.
//!
//! Such an instruction takes signed weights and, depending on the processor, signed or unsigned data. For unsigned
//! data, 128 is added to each element. Four inputs are contiguous. To compensate for the 128 and for the zero point,
//! each sum starts with `-(128 + zero point)` times the sum of the channel's weights. Everything wraps in i32, so the
//! results equal those of the plain product.

use super::Blocks;
use super::blocked::{cut, packed, place, whole, within};
use super::window::{border, constant, tap};
use crate::graph::DType;
use crate::graph::op::Conv2d;
use crate::te::{Builder, Combiner, Expr, TensorRef};

/// Inputs per instruction.
pub const INPUTS: i64 = 4;

/// Returns the offset that is added to the data.
fn more(blocks: Blocks) -> i32 {
    if blocks.signed { 0 } else { 128 }
}

/// Appends the data in the processor's format. The last dimension is padded to a multiple of four; padding holds the
/// zero point.
fn in_fours(
    b: &mut Builder,
    x: &TensorRef,
    (before, shape): (&[i64], &[i64]),
    zero_point: i32,
    blocks: Blocks,
) -> TensorRef {
    let mut shape = shape.to_vec();
    if let Some(depth) = shape.last_mut() {
        *depth = (*depth + INPUTS - 1) / INPUTS * INPUTS;
    }
    if blocks.signed && shape == x.shape {
        return x.clone();
    }
    let whole = border(b, x, before, &shape, constant(DType::I8, zero_point));
    b.compute("data", &shape, |i| match more(blocks) {
        0 => whole.at(i),
        more => (whole.at(i).cast(DType::I32) + i64::from(more)).cast(DType::U8),
    })
}

/// Appends weights in blocks of channels, with inputs in groups of four: `[blocks, steps.., fours, channels of a block,
/// 4]`.
fn weights(b: &mut Builder, w: &TensorRef, blocks: Blocks) -> TensorRef {
    let (depth, steps) = (w.shape[w.shape.len() - 1], &w.shape[1..w.shape.len() - 1]);
    let fours = (depth + INPUTS - 1) / INPUTS;
    let mut shape = vec![whole(w.shape[0], blocks) / blocks.channels];
    shape.extend(steps.iter().chain([&fours, &blocks.channels, &INPUTS]));
    let lane = shape.len() - 2;
    packed(b, w.shape[0], (&shape, lane), blocks, |c, i| {
        let last = i.len() - 1;
        let input = i[last - 2].clone() * INPUTS + i[last].clone();
        let at = [&[c], &i[1..last - 2], std::slice::from_ref(&input)].concat();
        within(input, depth, fours * INPUTS, w.at(&at))
    })
}

/// Appends the start value of each channel's sum.
fn firsts(b: &mut Builder, w: &TensorRef, zero_point: i32, blocks: Blocks) -> TensorRef {
    let (channels, wide) = (w.shape[0], whole(w.shape[0], blocks));
    let steps: Vec<(String, i64)> = w.shape[1..].iter().enumerate().map(|(i, n)| (format!("k{i}"), *n)).collect();
    let steps: Vec<(&str, i64)> = steps.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    let sums = b.reduce("weights", DType::I32, &[wide], &steps, Combiner::Sum, |i, r| {
        within(i[0].clone(), channels, wide, w.at(&[i, r].concat())).cast(DType::I32)
    });
    b.compute("first", &[wide], |i| sums.at(i) * -i64::from(more(blocks) + zero_point))
}

fn product(x: Expr, w: Expr) -> Expr {
    x.cast(DType::I32) * w.cast(DType::I32)
}

/// Appends a convolution of NHWC images with one group and weights without a zero point.
pub fn conv2d(b: &mut Builder, op: &Conv2d, x: &TensorRef, w: &TensorRef, out: &[i64], blocks: Blocks) -> TensorRef {
    let pads = op.pads.map(|p| p as i64);
    let shape = [x.shape[0], x.shape[1] + pads[0] + pads[2], x.shape[2] + pads[1] + pads[3], x.shape[3]];
    let data = in_fours(b, x, (&[0, pads[0], pads[1], 0], &shape), op.data_zero_point, blocks);
    let weights = weights(b, w, blocks);
    let first = firsts(b, w, op.data_zero_point, blocks);
    let wide = [&out[..3], &[whole(w.shape[0], blocks)]].concat();
    let steps = [("kh", w.shape[1]), ("kw", w.shape[2]), ("ci", data.shape[3] / INPUTS), ("four", INPUTS)];
    let sum = b.sum_from(
        "conv2d",
        &wide,
        &steps,
        |i| first.at(&i[3..]),
        |i, r| {
            let at = [
                i[0].clone(),
                tap(&i[1], &r[0], op.strides[0], op.dilations[0]),
                tap(&i[2], &r[1], op.strides[1], op.dilations[1]),
                r[2].clone() * INPUTS + r[3].clone(),
            ];
            let weight = [place(&i[3], &r[..3], blocks), vec![r[3].clone()]].concat();
            product(data.at(&at), weights.at(&weight))
        },
    );
    cut(b, sum, out)
}

/// Appends the product of rows of data, with any outer dimensions, and rows of weights without a zero point.
pub fn dense(b: &mut Builder, x: &TensorRef, w: &TensorRef, zero_point: i32, out: &[i64], blocks: Blocks) -> TensorRef {
    let last = out.len() - 1;
    let data = in_fours(b, x, (&vec![0; x.shape.len()], &x.shape), zero_point, blocks);
    let weights = weights(b, w, blocks);
    let first = firsts(b, w, zero_point, blocks);
    let wide = [&out[..last], &[whole(w.shape[0], blocks)]].concat();
    let steps = [("k", data.shape[last] / INPUTS), ("four", INPUTS)];
    let sum = b.sum_from(
        "dense",
        &wide,
        &steps,
        |i| first.at(&i[last..]),
        |i, r| {
            let at = [&i[..last], &[r[0].clone() * INPUTS + r[1].clone()]].concat();
            let weight = [place(&i[last], &r[..1], blocks), vec![r[1].clone()]].concat();
            product(data.at(&at), weights.at(&weight))
        },
    );
    cut(b, sum, out)
}
