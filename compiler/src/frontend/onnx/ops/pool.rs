//! MaxPool, AveragePool and GlobalAveragePool.

use super::{NCHW, window};
use crate::frontend::onnx::node::{NodeContext, Reason};
use crate::graph::op::{AvgPool2d, GlobalAvgPool, MaxPool2d};

pub(super) fn max_pool(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let kernel = n.sizes::<2>("kernel_shape", 0)?;
    let w = window(n, &n.ty(data).clone(), kernel)?;
    let (strides, pads, dilations) = (w.strides, w.pads, w.dilations);
    let v = n.node("", MaxPool2d { kernel, strides, pads, dilations, layout: NCHW }, &[data])?;
    n.output_like(v, data)
}

pub(super) fn average_pool(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let kernel = n.sizes::<2>("kernel_shape", 0)?;
    let w = window(n, &n.ty(data).clone(), kernel)?;
    if w.dilations != [1, 1] {
        return Err("its dilations must be 1".into());
    }
    let count_include_pad = n.int("count_include_pad").unwrap_or(0) != 0;
    if count_include_pad && w.ceil {
        return Err("ceil_mode with count_include_pad is not supported where it adds a window".into());
    }
    let (strides, pads) = (w.strides, w.pads);
    let op = AvgPool2d { kernel, strides, pads, count_include_pad, layout: NCHW, lo: -128, hi: 127, unsigned: false };
    let v = n.node("", op, &[data])?;
    n.output(v)
}

pub(super) fn global_average_pool(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let v = n.node("", GlobalAvgPool { layout: NCHW, lo: -128, hi: 127 }, &[data])?;
    n.output(v)
}
