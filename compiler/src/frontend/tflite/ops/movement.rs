//! Operators that move elements: CONCATENATION, SPLIT, SLICE, STRIDED_SLICE, GATHER, PACK, SQUEEZE, EXPAND_DIMS.

use super::activation::lookup;
use super::conv::reshape_to;
use super::shape::same_quantization;
use super::{activate, axis, before, expect};
use crate::frontend::reason::Reason;
use crate::frontend::semantic::movement::{self, BlockOrder, Range, check_indices, sliced};
use crate::frontend::tflite::NodeContext;
use crate::frontend::tflite::quant::{Activation, per_tensor};
use crate::graph::op::{Clip, Concat, Gather, Layout, Slice};
use crate::graph::{DType, ValueId};
use tilewright_hw::num::offset_clamp;

pub(super) fn concatenation(n: &mut NodeContext) -> Result<(), Reason> {
    let o = n.op.options.ok_or("it has no options")?;
    let act = Activation::from_code(o.i8(1)?)?;
    let first = n.input(0)?;
    let axis = axis("axis", o.i32(0)?.into(), n.ty(first).rank())?;
    let integer = n.ty(first).dtype == DType::I8;
    let mut parts = Vec::with_capacity(n.op.inputs.len());
    for i in 0..n.op.inputs.len() {
        let v = n.input(i)?;
        parts.push(if integer { to_output_scale(n, i, v)? } else { v });
    }
    let v = n.node(before(act, "concat"), Concat { axis }, &parts)?;
    let v = match (integer, act) {
        (_, Activation::None) => v,
        (true, _) => {
            let (lo, hi) = act.range(per_tensor(n.output_info()?)?);
            n.node("", Clip { lo: lo as f32, hi: hi as f32 }, &[v])?
        }
        (false, _) => activate(n, v, act)?,
    };
    n.output(v)
}

/// Converts a part to the scale of the result (`ConcatenationWithScaling`).
fn to_output_scale(n: &mut NodeContext, i: usize, v: ValueId) -> Result<ValueId, Reason> {
    let Some(declared) = n.input_info(i)?.quantization.as_ref().map(|_| n.input_info(i)) else { return Ok(v) };
    let (from, to) = (per_tensor(declared?)?, per_tensor(n.output_info()?)?);
    if from == to {
        return Ok(v);
    }
    // In the kernel, bytes and zero points are unsigned.
    let scale = from.scale * (1.0 / to.scale);
    let bias = -((from.zero_point + 128) as f32) * scale;
    lookup(n, &format!("part_{i}"), v, |x| {
        offset_clamp(((x + 128) as f32 * scale + bias).round() as i32, to.zero_point, -128, 127)
    })
}

/// The part of `v` that begins at `starts` and has these sizes.
fn part(
    n: &mut NodeContext,
    suffix: &str,
    v: ValueId,
    starts: Vec<usize>,
    sizes: Vec<usize>,
) -> Result<ValueId, Reason> {
    let steps = vec![1; starts.len()];
    n.node(suffix, Slice { starts, sizes, steps }, &[v])
}

/// The results of a split; the file declares their sizes along the axis.
fn parts(n: &mut NodeContext, v: ValueId, axis: usize) -> Result<(), Reason> {
    let shape = n.shape(v)?;
    let mut at = 0usize;
    for i in 0..n.op.outputs.len() {
        let declared = &n.output_info_at(i)?.shape;
        let size = *declared.get(axis).ok_or("a result has fewer dimensions than its data")?;
        let (mut starts, mut sizes) = (vec![0; shape.len()], shape.clone());
        (starts[axis], sizes[axis]) = (at, size);
        let suffix = format!("part_{i}");
        let v = part(n, &suffix, v, starts, sizes)?;
        n.output_at(i, v)?;
        at = at.checked_add(size).ok_or("the sizes of its results are too large")?;
    }
    if at != shape[axis] {
        return Err(format!("its results cover {at} of {} elements along dimension {axis}", shape[axis]).into());
    }
    Ok(())
}

pub(super) fn split(n: &mut NodeContext) -> Result<(), Reason> {
    let (at, data) = (n.integers(0)?, n.input(1)?);
    let axis = axis("axis", at.first().copied().unwrap_or(0), n.ty(data).rank())?;
    parts(n, data, axis)
}

pub(super) fn split_v(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, at) = (n.input(0)?, n.integers(2)?);
    let axis = axis("axis", at.first().copied().unwrap_or(0), n.ty(data).rank())?;
    parts(n, data, axis)
}

pub(super) fn slice(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let shape = n.shape(data)?;
    let (begin, size) = (n.integers(1)?, n.integers(2)?);
    if begin.len() != shape.len() || size.len() != shape.len() {
        return Err(format!("its begin and size must have {} values, one per dimension", shape.len()).into());
    }
    let starts = begin.iter().map(|&b| usize::try_from(b)).collect::<Result<Vec<_>, _>>();
    let starts = starts.map_err(|_| "its begin must not be negative")?;
    let sizes = size.iter().enumerate().map(|(d, &s)| match s {
        -1 => shape[d].checked_sub(starts[d]),
        s => usize::try_from(s).ok(),
    });
    let sizes = sizes.collect::<Option<Vec<_>>>().ok_or("its size must be -1 or not negative, and within its data")?;
    same_quantization(n)?;
    let v = part(n, "", data, starts, sizes)?;
    n.output(v)
}

pub(super) fn strided_slice(n: &mut NodeContext) -> Result<(), Reason> {
    let o = n.op.options.ok_or("it has no options")?;
    let data = n.input(0)?;
    let shape = n.shape(data)?;
    let [begin, end, strides] = [n.integers(1)?, n.integers(2)?, n.integers(3)?];
    let given = begin.len();
    if end.len() != given || strides.len() != given || given > shape.len() {
        let rank = shape.len();
        return Err(format!("its begin, end and strides must have the same length, at most {rank}").into());
    }
    for (i, name) in [(2, "ellipsis_mask"), (3, "new_axis_mask"), (5, "offset")] {
        let v = if i == 5 { o.i8(i)?.into() } else { o.i32(i)? };
        if v != 0 {
            return Err(format!("attribute {name} must be 0, found {v}").into());
        }
    }
    let mask = |i: usize, d: usize| -> Result<bool, Reason> { Ok(d < 32 && o.i32(i)? >> d & 1 == 1) };
    let (mut ranges, mut kept) = (vec![Range::ALL; shape.len()], shape.clone());
    let mut shrunk = Vec::new();
    for (d, range) in ranges.iter_mut().enumerate().take(given) {
        let start = (!mask(0, d)?).then_some(begin[d]);
        *range = Range { start, end: (!mask(1, d)?).then_some(end[d]), step: strides[d] };
        if mask(4, d)? {
            // One element, which is not left out if it lies outside.
            let size = i64::try_from(shape[d]).map_err(|_| "its data are too large")?;
            let at = start.unwrap_or(if strides[d] > 0 { 0 } else { size - 1 });
            let place = if at < 0 { at.saturating_add(size) } else { at };
            if !(0..size).contains(&place) {
                return Err(
                    format!("its begin {at} is out of range for dimension {d}, which has {size} elements").into()
                );
            }
            *range = Range { start: Some(place), end: Some(place + 1), step: 1 };
            shrunk.push(d);
        }
    }
    same_quantization(n)?;
    let v = sliced(n, if shrunk.is_empty() { "" } else { "slice" }, data, &ranges)?;
    kept.clone_from(&n.shape(v)?);
    let kept: Vec<usize> = (0..kept.len()).filter(|d| !shrunk.contains(d)).map(|d| kept[d]).collect();
    let v = if shrunk.is_empty() { v } else { reshape_to(n, v, &kept)? };
    n.output(v)
}

pub(super) fn gather(n: &mut NodeContext) -> Result<(), Reason> {
    let (at, batch) = n.op.options.map_or(Ok((0, 0)), |o| Ok::<_, String>((o.i32(0)?, o.i32(1)?)))?;
    if batch != 0 {
        return Err(format!("attribute batch_dims must be 0, found {batch}").into());
    }
    let (data, indices) = (n.input(0)?, n.input(1)?);
    let axis = axis("axis", at.into(), n.ty(data).rank())?;
    check_indices(n, indices, data, axis)?;
    same_quantization(n)?;
    let v = n.node("", Gather { axis }, &[data, indices])?;
    n.output(v)
}

pub(super) fn pack(n: &mut NodeContext) -> Result<(), Reason> {
    let at = n.op.options.map_or(Ok(0), |o| o.i32(1))?;
    let shape = n.output_info()?.shape.clone();
    let axis = axis("axis", at.into(), shape.len())?;
    let mut one = shape;
    one[axis] = 1;
    let mut parts = Vec::with_capacity(n.op.inputs.len());
    for i in 0..n.op.inputs.len() {
        let v = n.input(i)?;
        parts.push(reshape_to(n, v, &one)?);
    }
    same_quantization(n)?;
    let v = n.node("", Concat { axis }, &parts)?;
    n.output(v)
}

pub(super) fn unpack(n: &mut NodeContext) -> Result<(), Reason> {
    let at = n.op.options.map_or(Ok(0), |o| o.i32(1))?;
    let data = n.input(0)?;
    let shape = n.shape(data)?;
    let axis = axis("axis", at.into(), shape.len())?;
    if n.op.outputs.len() != shape[axis] {
        return Err(format!("it has {} results for {} elements", n.op.outputs.len(), shape[axis]).into());
    }
    for i in 0..n.op.outputs.len() {
        let (mut starts, mut sizes) = (vec![0; shape.len()], shape.clone());
        (starts[axis], sizes[axis]) = (i, 1);
        let suffix = format!("part_{i}");
        let v = part(n, &suffix, data, starts, sizes)?;
        let declared = n.output_info_at(i)?.shape.clone();
        let v = reshape_to(n, v, &declared)?;
        n.output_at(i, v)?;
    }
    Ok(())
}

/// The same elements with the shape that the file declares.
pub(super) fn squeeze(n: &mut NodeContext) -> Result<(), Reason> {
    super::shape::reshape(n)
}

fn block_size(n: &NodeContext) -> Result<usize, Reason> {
    let size = n.op.options.map_or(Ok(0), |o| o.i32(0))?;
    let b = usize::try_from(size).ok().filter(|&b| b > 0);
    b.ok_or_else(|| format!("attribute block_size must be positive, found {size}").into())
}

pub(super) fn depth_to_space(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, block) = (n.input(0)?, block_size(n)?);
    expect(n, data, &[DType::F32, DType::I8])?;
    same_quantization(n)?;
    let v = movement::depth_to_space(n, data, block, BlockOrder::Dcr, Layout::Nhwc)?;
    n.output(v)
}

pub(super) fn space_to_depth(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, block) = (n.input(0)?, block_size(n)?);
    expect(n, data, &[DType::F32, DType::I8])?;
    same_quantization(n)?;
    let v = movement::space_to_depth(n, data, block, Layout::Nhwc)?;
    n.output(v)
}
