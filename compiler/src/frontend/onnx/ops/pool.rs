//! MaxPool, AveragePool and the global pools.

use super::conv::{as_data, as_image};
use super::{NCHW, spatial, window};
use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::norm::length;
use crate::frontend::semantic::window::{self as sliding, Window, global_averages};
use crate::graph::ValueId;
use crate::graph::op::{MaxPool2d, ReduceKind};

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
    let v = sliding::averages(n, if line { "pool" } else { name }, data, kernel, &w, count_include_pad)?;
    as_data(n, v, line)
}

pub(super) fn lp_pool(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let (data, line) = as_image(n, "data", data)?;
    let kernel = kernel(n, line)?;
    let w = window(n, &n.ty(data).clone(), kernel, line)?;
    let p = n.int("p").unwrap_or(2);
    let v = sliding::norms(n, if line { "pool" } else { "" }, data, kernel, &w, p)?;
    let v = as_data(n, v, line)?;
    n.output(v)
}

pub(super) fn global_lp_pool(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let axes: Vec<usize> = (2..n.ty(data).rank()).collect();
    let p = n.int("p").unwrap_or(2);
    let v = length(n, "", data, p, |n, v| n.reduce("sum", ReduceKind::Sum, &axes, true, v))?;
    n.output(v)
}

pub(super) fn global_average_pool(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let v = global_averages(n, "", data)?;
    n.output(v)
}

pub(super) fn global_max_pool(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let axes: Vec<usize> = (2..n.ty(data).rank()).collect();
    let v = n.reduce("", ReduceKind::Max, &axes, true, data)?;
    n.output_like(v, data)
}
