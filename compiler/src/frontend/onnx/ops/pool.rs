//! MaxPool, AveragePool and the global pools.

use super::conv::{as_data, as_image};
use super::{NCHW, Window, spatial, window};
use crate::frontend::onnx::node::{NodeContext, Reason};
use crate::graph::op::{AvgPool2d, BinaryKind, GlobalAvgPool, MaxPool2d, Pad, ReduceKind};
use crate::graph::{DType, ValueId};

pub(super) fn max_pool(n: &mut NodeContext) -> Result<(), Reason> {
    let given = n.input(0)?;
    let (data, line) = as_image(n, "data", given)?;
    let kernel = kernel(n, line)?;
    let Window { strides, pads, dilations, .. } = window(n, &n.ty(data).clone(), kernel, line)?;
    let v =
        n.node(if line { "pool" } else { "" }, MaxPool2d { kernel, strides, pads, dilations, layout: NCHW }, &[data])?;
    let v = as_data(n, v, line)?;
    if n.unsigned(given) {
        n.cx.unsigned.insert(v);
    }
    n.outputs_first(v)
}

fn kernel(n: &NodeContext, line: bool) -> Result<[usize; 2], Reason> {
    if n.ints("kernel_shape").is_none() {
        return Err("it has no kernel_shape".into());
    }
    spatial(n, "kernel_shape", 1, line)
}

pub(super) fn average_pool(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let v = averages(n, "", data)?;
    n.output(v)
}

/// The averages of the windows that the node's attributes define.
pub(super) fn averages(n: &mut NodeContext, name: &str, data: ValueId) -> Result<ValueId, Reason> {
    let (data, line) = as_image(n, "data", data)?;
    let kernel = kernel(n, line)?;
    let w = window(n, &n.ty(data).clone(), kernel, line)?;
    let count_include_pad = n.int("count_include_pad").unwrap_or(0) != 0;
    let suffix = if line { "pool" } else { name };
    let op = |kernel, strides, pads, count_include_pad| AvgPool2d {
        kernel,
        strides,
        pads,
        count_include_pad,
        layout: NCHW,
        lo: -128,
        hi: 127,
        unsigned: false,
    };
    let v = if w.dilations != [1, 1] || (w.ceil && count_include_pad) {
        if n.ty(data).dtype != DType::F32 {
            return Err("its dilations must be 1 with integers".into());
        }
        windows(n, data, &w, kernel, count_include_pad, suffix)?
    } else if !count_include_pad && (0..2).any(|i| w.pads[i] >= kernel[i] || w.pads[i + 2] >= kernel[i]) {
        return Err("its pads must be smaller than its kernel".into());
    } else {
        n.node(suffix, op(kernel, w.strides, w.pads, count_include_pad), &[data])?
    };
    as_data(n, v, line)
}

/// Sums of windows, by a depthwise convolution with ones, divided by the number of elements in each.
fn windows(
    n: &mut NodeContext,
    data: ValueId,
    w: &Window,
    kernel: [usize; 2],
    count_pads: bool,
    suffix: &str,
) -> Result<ValueId, Reason> {
    use crate::graph::op::Conv2d;
    let shape = n.shape(data)?;
    let (channels, [h, width]) = (shape[1], [shape[2], shape[3]]);
    let conv = |groups, pads| Conv2d {
        strides: w.strides,
        pads,
        dilations: w.dilations,
        groups,
        layout: NCHW,
        data_zero_point: 0,
        weight_zero_point: 0,
    };
    let ones = |n: &mut NodeContext, c: usize| n.table("ones", &[c, kernel[0], kernel[1], 1], |_| 1f32);
    let taps = ones(n, channels)?;
    let sums = n.node("sums", conv(channels, w.pads), &[data, taps])?;
    // Counts the image, and its padding if the file says so, but not what `ceil_mode` added.
    let image = n.table("counted", &[1, 1, h, width], |_| 1f32)?;
    let tap = ones(n, 1)?;
    let (image, pads) = if count_pads {
        let p = w.given;
        let border = Pad { before: vec![0, 0, p[0], p[1]], after: vec![0, 0, p[2], p[3]], value: 1.0 };
        let rest = [0, 0, w.pads[2] - p[2], w.pads[3] - p[3]];
        (n.node("counted", border, &[image])?, rest)
    } else {
        (image, w.pads)
    };
    let counts = n.node("counts", conv(1, pads), &[image, tap])?;
    n.binary(suffix, BinaryKind::Div, sums, counts)
}

pub(super) fn global_average_pool(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let v = global_averages(n, "", data)?;
    n.output(v)
}

/// The averages over all dimensions after batch and channels.
pub(super) fn global_averages(n: &mut NodeContext, name: &str, data: ValueId) -> Result<ValueId, Reason> {
    match n.ty(data).rank() {
        4 => n.node(name, GlobalAvgPool { layout: NCHW, lo: -128, hi: 127 }, &[data]),
        rank => n.reduce(name, ReduceKind::Mean, &(2..rank).collect::<Vec<_>>(), true, data),
    }
}

pub(super) fn global_max_pool(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let axes: Vec<usize> = (2..n.ty(data).rank()).collect();
    let v = n.reduce("", ReduceKind::Max, &axes, true, data)?;
    n.output_like(v, data)
}
