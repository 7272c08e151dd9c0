//! Reads convolutions and fully connected layers of the graph as layers.

use super::op::Conv;
use super::rest::split;
use crate::codegen::accel::finish::{Finish, Slope};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::view::View;
use crate::graph::op::{self, Layout};
use crate::graph::{Node, NodeId, ValueId};

/// Reads a convolution.
pub fn conv(reader: &Reader<'_>, id: NodeId, node: &Node, op: &op::Conv2d) -> Read<(Layer, Conv)> {
    reader.int8(node.inputs[0])?;
    let input = reader.image(node.inputs[0], op.layout)?;
    let output = reader.image(node.output(), op.layout)?;
    let shape = reader.shape(node.inputs[1])?;
    let (weights, weight_zero_point) = weights(reader, node.inputs[1], op.weight_zero_point)?;
    let (weights, rest) = split(&weights);
    let (mut nodes, mut finish, mut slope) = reader.finished(id, node, op.layout.channel_axis())?;
    fold_zero_point(&mut finish, slope.as_mut(), &weights, &rest, op.data_zero_point);
    reader.fuse_clip(&mut nodes, &mut finish.lo, &mut finish.hi);
    let conv = Conv {
        kernel: [shape[1], shape[2]],
        strides: op.strides,
        pads: op.pads,
        dilations: op.dilations,
        groups: op.groups,
        weights,
        rest,
        weight_zero_point,
        pad_value: op.data_zero_point as i8,
        finish,
        slope,
        epilogue: Vec::new(),
    };
    Ok((reader.layer(nodes, vec![(node.inputs[0], input)], output)?, conv))
}

/// Reads a fully connected layer as a convolution over columns, or over a flattened image with the image as the window.
pub fn dense(reader: &Reader<'_>, id: NodeId, node: &Node, op: &op::Dense) -> Read<(Layer, Conv)> {
    let data = node.inputs[0];
    reader.int8(data)?;
    let (shape, weight) = (reader.shape(data)?, reader.shape(node.inputs[1])?);
    let (raw, weight_zero_point) = weights(reader, node.inputs[1], op.weight_zero_point)?;
    let (m, k, n) = (shape[0], shape[1], weight[0]);
    let held = (reader.known)(data).filter(|v| v.n == m && v.c * v.h * v.w == k);
    let input = held.unwrap_or_else(|| View::rows(&shape));
    let (kernel, output) = match held {
        Some(v) => ([v.h, v.w], View::new(Layout::Nhwc, v.n, n, 1, 1)),
        None => ([1, 1], View::rows(&[m, n])),
    };
    let mut weights = Vec::with_capacity(raw.len());
    for o in 0..n {
        for y in 0..kernel[0] {
            for x in 0..kernel[1] {
                weights.extend((0..input.c).map(|c| raw[o * k + input.index(c, y, x) % k]));
            }
        }
    }
    let (weights, rest) = split(&weights);
    let (mut nodes, mut finish, mut slope) = reader.finished(id, node, 1)?;
    fold_zero_point(&mut finish, slope.as_mut(), &weights, &rest, op.data_zero_point);
    reader.fuse_clip(&mut nodes, &mut finish.lo, &mut finish.hi);
    let conv = Conv {
        kernel,
        strides: [1, 1],
        pads: [0; 4],
        dilations: [1, 1],
        groups: 1,
        weights,
        rest,
        weight_zero_point,
        pad_value: op.data_zero_point as i8,
        finish,
        slope,
        epilogue: Vec::new(),
    };
    Ok((reader.layer(nodes, vec![(data, input)], output)?, conv))
}

/// Returns the weights minus their zero point, and the zero point; `None` if the graph has already subtracted it.
pub fn weights(reader: &Reader<'_>, value: ValueId, zero_point: i32) -> Read<(Vec<i32>, Option<i32>)> {
    let tensor = reader.graph.constant(value).ok_or("its weights are not constant")?;
    let Ok(wide) = tensor.as_slice::<i32>() else {
        let less = reader.bytes(value)?.iter().map(|&w| i32::from(w) - zero_point).collect();
        return Ok((less, Some(zero_point)));
    };
    match wide.iter().find(|w| !(-255..=255).contains(*w)) {
        Some(far) => Err(format!("a weight minus its zero point is {far}; it must be within -255..=255")),
        None => Ok((wide.to_vec(), None)),
    }
}

/// Folds the data's zero point into the biases: `sum (x - z) w = sum x w - z sum w`. Padding with the zero point then
/// adds nothing.
pub fn fold_zero_point(finish: &mut Finish, slope: Option<&mut Slope>, weights: &[i8], rest: &[i16], zero: i32) {
    let channels = finish.bias.len().max(1);
    let mut biases = vec![&mut finish.bias];
    biases.extend(slope.map(|s| &mut s.bias));
    for bias in biases {
        fold(bias, channels, weights, zero);
        fold(bias, channels, rest, zero);
    }
}

fn fold<T: Copy + Into<i32>>(biases: &mut [i32], channels: usize, weights: &[T], zero: i32) {
    let depth = weights.len() / channels;
    for (bias, row) in biases.iter_mut().zip(weights.chunks(depth.max(1))) {
        let sum = row.iter().fold(0i32, |sum, &w| sum.wrapping_add(w.into()));
        *bias = bias.wrapping_sub(zero.wrapping_mul(sum));
    }
}
