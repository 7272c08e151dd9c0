//! MaxPool, AveragePool and the global pools.

use super::{NCHW, channels_last, spatial, window, window_3d};
use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::SemanticBuilder;
use crate::frontend::semantic::conv::{as_data, as_image};
use crate::frontend::semantic::norm::length;
use crate::frontend::semantic::pad;
use crate::frontend::semantic::scatter::{self, Reduction};
use crate::frontend::semantic::volume;
use crate::frontend::semantic::window::{self as sliding, Window, global_averages};
use crate::graph::ValueId;
use crate::graph::op::{MaxPool2d, ReduceKind};

pub(super) fn max_pool(n: &mut NodeContext) -> Result<(), Reason> {
    let given = n.input(0)?;
    if n.ty(given).rank() == 5 {
        let v = in_volume(n, given, |n, v, kernel, w| {
            let Window { strides, pads, dilations, .. } = *w;
            n.node("pool", MaxPool2d { kernel, strides, pads, dilations, layout: NCHW }, &[v])
        })?;
        n.mark_like(v, given);
        return n.outputs_first(v);
    }
    let Maxima { v, image: data, kernel, w, line } = maxima(n, "", given)?;
    n.mark_like(v, given);
    if n.proto.output.get(1).is_none_or(String::is_empty) {
        n.without_effect("storage_order");
        return n.output(v);
    }
    let by_columns = n.int("storage_order").unwrap_or(0) != 0;
    let places = sliding::greatest_places(n, data, kernel, &w, by_columns)?;
    let places = as_data(n, places, line)?;
    n.outputs(&[v, places])
}

/// The greatest elements of the windows that the node's attributes define.
struct Maxima {
    v: ValueId,
    /// The data, with a height of 1 if they are a `line`.
    image: ValueId,
    kernel: [usize; 2],
    w: Window,
    line: bool,
}

fn maxima(n: &mut NodeContext, name: &str, data: ValueId) -> Result<Maxima, Reason> {
    let (image, line) = as_image(n, "data", data)?;
    let kernel = kernel(n, line)?;
    let w = window(n, &n.ty(image).clone(), kernel, line)?;
    let Window { strides, pads, dilations, .. } = w;
    let op = MaxPool2d { kernel, strides, pads, dilations, layout: NCHW };
    let v = n.node(if line { "pool" } else { name }, op, &[image])?;
    let v = as_data(n, v, line)?;
    Ok(Maxima { v, image, kernel, w, line })
}

/// MaxPool of data that have their channels last.
pub(super) fn max_pool_of_last(n: &mut NodeContext) -> Result<(), Reason> {
    let given = n.input(0)?;
    n.without_effect("storage_order");
    let v = channels_last(n, given, |n, data| Ok(maxima(n, "pool", data)?.v))?;
    n.output_like(v, given)
}

/// Puts elements back to the places that MaxPool found them at; the rest is 0.
pub(super) fn max_unpool(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, places) = (n.plain(0)?, n.plain(1)?);
    let shape = n.shape(data)?;
    let line = shape.len() == 3;
    if !line && shape.len() != 4 {
        return Err(format!("its data must have 3 or 4 dimensions, found {}", n.ty(data)).into());
    }
    let kernel = kernel(n, line)?;
    let super::Steps { strides, pads, .. } = super::steps(n, line)?;
    let mut out = shape.clone();
    let first = if line { 1 } else { 0 };
    for (axis, i) in (2..shape.len()).zip(first..) {
        let full = (shape[axis].max(1) - 1).saturating_mul(strides[i]).saturating_add(kernel[i]);
        out[axis] = full.checked_sub(pads[i] + pads[i + 2]).ok_or("its pads are larger than its result")?;
    }
    let wanted = if n.has_input(2) {
        let given = n.integers(2)?.iter().map(|&d| usize::try_from(d)).collect::<Result<Vec<_>, _>>();
        given.map_err(|_| "its output_shape must not be negative")?
    } else {
        out.clone()
    };
    if wanted.len() != out.len() || wanted.iter().zip(&out).any(|(wanted, own)| wanted < own) {
        return Err(format!("its output_shape {wanted:?} must be at least {out:?}").into());
    }
    let all = out.iter().try_fold(1usize, |all, &d| all.checked_mul(d)).ok_or("its result is too large")?;
    let count: usize = shape.iter().product();
    let zeros = n.table("zeros", &[all], |_| 0.0f32)?;
    let dtype = n.ty(data).dtype;
    let zeros = n.cast("zeros", zeros, dtype)?;
    let places = n.reshape("places", places, &[count, 1])?;
    let updates = n.reshape("elements", data, &[count])?;
    let v = scatter::nd(n, zeros, places, updates, Reduction::None)?;
    let v = n.reshape("unpooled", v, &out)?;
    let ends: Vec<(i64, i64)> = wanted.iter().zip(&out).map(|(wanted, own)| (0, (wanted - own) as i64)).collect();
    let v = pad::constant(n, "", v, &ends, 0.0)?;
    n.output(v)
}

/// The images that columns of windows are of.
pub(super) fn col_to_im(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let sizes = |n: &NodeContext, i: usize| -> Result<Vec<usize>, Reason> {
        let list = n.integers(i)?.iter().map(|&d| usize::try_from(d)).collect::<Result<Vec<_>, _>>();
        list.map_err(|_| "its sizes must not be negative".into())
    };
    let (image, kernel) = (sizes(n, 1)?, sizes(n, 2)?);
    let (&[h, w], &[kh, kw]) = (image.as_slice(), kernel.as_slice()) else {
        return Err("only images of two dimensions are supported".into());
    };
    let super::Steps { strides, dilations, pads } = super::steps(n, false)?;
    let (kernel, padding) = ([kh, kw], sliding::Padding::Given(pads));
    let by = sliding::Sliding { kernel, strides, dilations, padding, round_up: false };
    let v = sliding::images_of_columns(n, data, [h, w], by)?;
    n.output(v)
}

/// A pool over volumes with the node's attributes.
fn in_volume(
    n: &mut NodeContext,
    data: ValueId,
    pool: impl FnMut(&mut SemanticBuilder, ValueId, [usize; 2], &Window) -> Result<ValueId, Reason>,
) -> Result<ValueId, Reason> {
    if n.ints("kernel_shape").is_none() {
        return Err("it has no kernel_shape".into());
    }
    let by = window_3d(n, None)?;
    volume::pooled(n, data, by, pool)
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
    let count_include_pad = n.int("count_include_pad").unwrap_or(0) != 0;
    if n.ty(data).rank() == 5 {
        return in_volume(n, data, |n, v, kernel, w| sliding::averages(n, "pool", v, kernel, w, count_include_pad));
    }
    let (data, line) = as_image(n, "data", data)?;
    let kernel = kernel(n, line)?;
    let w = window(n, &n.ty(data).clone(), kernel, line)?;
    let v = sliding::averages(n, if line { "pool" } else { name }, data, kernel, &w, count_include_pad)?;
    as_data(n, v, line)
}

pub(super) fn lp_pool(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let p = n.int("p").unwrap_or(2);
    if n.ty(data).rank() == 5 {
        let v = in_volume(n, data, |n, v, kernel, w| sliding::norms(n, "pool", v, kernel, w, p))?;
        return n.output(v);
    }
    let (data, line) = as_image(n, "data", data)?;
    let kernel = kernel(n, line)?;
    let w = window(n, &n.ty(data).clone(), kernel, line)?;
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
