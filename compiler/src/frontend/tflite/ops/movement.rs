//! Operators that move elements.

use super::activation::lookup;
use super::conv::reshape_to;
use super::shape::same_quantization;
use super::{activate, axis, before, expect};
use crate::frontend::reason::Reason;
use crate::frontend::semantic::movement::{self, BlockOrder, Range, check_indices, sliced};
use crate::frontend::semantic::pad;
use crate::frontend::semantic::scatter::{self, Reduction};
use crate::frontend::tflite::flat::Vector;
use crate::frontend::tflite::quant::{Activation, per_tensor};
use crate::frontend::tflite::{NodeContext, wide};
use crate::graph::op::{Clip, Concat, Gather, Layout, Slice};
use crate::graph::{DType, ValueId};
use tilewright_hw::num::offset_clamp;

pub(super) fn concatenation(n: &mut NodeContext) -> Result<(), Reason> {
    let o = n.op.options.ok_or("it has no options")?;
    let act = Activation::from_code(o.i8(1)?)?;
    let first = n.input(0)?;
    let axis = axis("axis", o.i32(0)?.into(), n.ty(first).rank())?;
    let (integer, is_wide) = (n.ty(first).dtype == DType::I8, wide::is_wide(n.output_info()?));
    if is_wide && act != Activation::None {
        return Err("a fused activation on 16 bits is not supported".into());
    }
    let mut parts = Vec::with_capacity(n.op.inputs.len());
    for i in 0..n.op.inputs.len() {
        let v = n.input(i)?;
        if is_wide && wide::scale(n.input_info(i)?)? != n.result()?.scale {
            return Err("parts and result of 16 bits must have the same scale".into());
        }
        parts.push(if integer { to_output_scale(n, i, v)? } else { v });
    }
    let v = n.node(before(act, "concat"), Concat { axis }, &parts)?;
    let v = match (integer, act) {
        (_, Activation::None) => v,
        (true, _) => {
            let (lo, hi) = act.range(n.result()?);
            n.node("", Clip { lo: lo as f32, hi: hi as f32 }, &[v])?
        }
        (false, _) => activate(n, v, act)?,
    };
    n.output(v)
}

/// Converts a part to the scale of the result (`ConcatenationWithScaling`).
fn to_output_scale(n: &mut NodeContext, i: usize, v: ValueId) -> Result<ValueId, Reason> {
    let Some(declared) = n.input_info(i)?.quantization.as_ref().map(|_| n.input_info(i)) else { return Ok(v) };
    let (from, to) = (per_tensor(declared?)?, n.result()?);
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

/// The results of a split, with these sizes along the axis, or those that the file declares.
fn parts(n: &mut NodeContext, v: ValueId, axis: usize, sizes: Option<&[usize]>) -> Result<(), Reason> {
    let shape = n.shape(v)?;
    let mut at = 0usize;
    for i in 0..n.op.outputs.len() {
        let size = match sizes {
            Some(sizes) => *sizes.get(i).ok_or("it has more results than sizes")?,
            None => *n.output_info_at(i)?.shape.get(axis).ok_or("a result has fewer dimensions than its data")?,
        };
        let v = movement::part(n, &format!("part_{i}"), v, axis, at, size)?;
        n.output_at(i, v)?;
        at = at.checked_add(size).ok_or("the sizes of its results are too large")?;
    }
    if at != shape[axis] {
        return Err(format!("its results cover {at} of {} elements along dimension {axis}", shape[axis]).into());
    }
    Ok(())
}

/// Whether the file leaves sizes of a result open.
fn any_is_open(n: &NodeContext) -> Result<bool, Reason> {
    let open = (0..n.op.outputs.len()).map(|i| Ok(n.output_info_at(i)?.is_open()));
    Ok(open.collect::<Result<Vec<_>, Reason>>()?.contains(&true))
}

pub(super) fn split(n: &mut NodeContext) -> Result<(), Reason> {
    let (at, data) = (n.integers(0)?, n.input(1)?);
    let axis = axis("axis", at.first().copied().unwrap_or(0), n.ty(data).rank())?;
    if !any_is_open(n)? {
        return parts(n, data, axis, None);
    }
    let count = n.op.outputs.len();
    let equal = vec![n.shape(data)?[axis] / count.max(1); count];
    parts(n, data, axis, Some(&equal))
}

pub(super) fn split_v(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, at) = (n.input(0)?, n.integers(2)?);
    let axis = axis("axis", at.first().copied().unwrap_or(0), n.ty(data).rank())?;
    if !any_is_open(n)? {
        return parts(n, data, axis, None);
    }
    // One size can be -1: what is left.
    let size = i64::try_from(n.shape(data)?[axis]).map_err(|_| "its data are too large")?;
    let sizes = n.integers(1)?;
    let left = sizes.iter().filter(|&&s| s >= 0).try_fold(size, |left, &s| left.checked_sub(s));
    let sizes = sizes.iter().map(|&s| usize::try_from(if s < 0 { left.unwrap_or(-1) } else { s }));
    let sizes = sizes.collect::<Result<Vec<_>, _>>().map_err(|_| "its sizes are more than its data have")?;
    parts(n, data, axis, Some(&sizes))
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
    if end.len() != given || strides.len() != given || given > 32 {
        return Err("its begin, end and strides must have the same length, at most 32".into());
    }
    if o.i8(5)? != 0 {
        return Err(format!("attribute offset must be 0, found {}", o.i8(5)?).into());
    }
    let masks = [o.i32(0)?, o.i32(1)?, o.i32(2)?, o.i32(3)?, o.i32(4)?];
    let in_mask = |mask: usize, i: usize| masks[mask] >> i & 1 == 1;
    let [first, last, ellipsis, new_axis, shrink] = [0, 1, 2, 3, 4];
    if (0..given).filter(|&i| in_mask(ellipsis, i)).count() > 1 {
        return Err("attribute ellipsis_mask names two places".into());
    }
    // The places that stand for a dimension of the data; an ellipsis is as many as are left.
    let named = (0..given).filter(|&i| !in_mask(ellipsis, i) && !in_mask(new_axis, i)).count();
    let hidden = shape.len().checked_sub(named);
    let hidden = hidden.ok_or_else(|| format!("it names {named} dimensions, but its data have {}", shape.len()))?;
    let mut ranges = Vec::with_capacity(shape.len());
    // For each dimension of the result, that of the data, or none for a new one.
    let mut kept = Vec::new();
    for i in 0..given {
        let d = ranges.len();
        if in_mask(ellipsis, i) {
            kept.extend((d..d + hidden).map(Some));
            ranges.extend(std::iter::repeat_n(Range::ALL, hidden));
        } else if in_mask(new_axis, i) {
            kept.push(None);
        } else {
            let start = (!in_mask(first, i)).then_some(begin[i]);
            let step = strides[i];
            if in_mask(shrink, i) {
                ranges.push(only(start, step, d, shape[d])?);
            } else {
                ranges.push(Range { start, end: (!in_mask(last, i)).then_some(end[i]), step });
                kept.push(Some(d));
            }
        }
    }
    kept.extend((ranges.len()..shape.len()).map(Some));
    ranges.resize(shape.len(), Range::ALL);
    same_quantization(n)?;
    let whole = kept.iter().copied().eq((0..shape.len()).map(Some));
    let v = sliced(n, if whole { "" } else { "slice" }, data, &ranges)?;
    let sizes = n.shape(v)?;
    let out: Vec<usize> = kept.iter().map(|d| d.map_or(1, |d| sizes[d])).collect();
    let v = if whole { v } else { reshape_to(n, v, &out)? };
    n.output(v)
}

/// The one element that a dimension is reduced to.
fn only(start: Option<i64>, step: i64, dimension: usize, size: usize) -> Result<Range, Reason> {
    let all = i64::try_from(size).map_err(|_| "its data are too large")?;
    let at = start.unwrap_or(if step > 0 { 0 } else { all - 1 });
    let place = if at < 0 { at.saturating_add(all) } else { at };
    if !(0..all).contains(&place) {
        return Err(
            format!("its begin {at} is out of range for dimension {dimension}, which has {all} elements").into()
        );
    }
    Ok(Range { start: Some(place), end: Some(place + 1), step: 1 })
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
    let mut one = n.output_info()?.shape.clone();
    let axis = axis("axis", at.into(), one.len())?;
    if n.output_info()?.is_open() {
        let first = n.input(0)?;
        let rank = one.len();
        one = n.shape(first)?;
        if one.len() + 1 != rank {
            return Err(
                format!("its result must have {} dimensions, but the file declares {rank}", one.len() + 1).into()
            );
        }
        one.insert(axis, 1);
    }
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
        let v = movement::part(n, &format!("part_{i}"), data, axis, i, 1)?;
        let rest = || shape.iter().enumerate().filter(|(at, _)| *at != axis).map(|(_, size)| *size).collect();
        let declared = n.declared_shape(i)?.unwrap_or_else(rest);
        let v = reshape_to(n, v, &declared)?;
        n.output_at(i, v)?;
    }
    Ok(())
}

/// Without dimensions of 1: those that the options name, or all of them.
pub(super) fn squeeze(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let (shape, options) = (n.shape(data)?, n.op.options);
    let mut left = Vec::new();
    for at in options.map(|o| o.vector::<4>(0)).transpose()?.iter().flat_map(Vector::words) {
        left.push(axis("squeeze_dims", i32::from_le_bytes(at).into(), shape.len())?);
    }
    let stays = |&(at, size): &(usize, &usize)| *size != 1 || !(left.is_empty() || left.contains(&at));
    let computed = shape.iter().enumerate().filter(stays).map(|(_, size)| *size).collect();
    reshaped(n, data, computed)
}

/// With a dimension of 1 more.
pub(super) fn expand_dims(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, at) = (n.input(0)?, n.integers(1)?);
    let mut computed = n.shape(data)?;
    let at = axis("axis", at.first().copied().unwrap_or(0), computed.len() + 1)?;
    computed.insert(at, 1);
    reshaped(n, data, computed)
}

/// The same elements with the shape that the file declares, or this one if it leaves it open.
fn reshaped(n: &mut NodeContext, data: ValueId, computed: Vec<usize>) -> Result<(), Reason> {
    same_quantization(n)?;
    let shape = n.declared_shape(0)?.unwrap_or(computed);
    let v = n.reshape("", data, &shape)?;
    n.output(v)
}

fn block_size(n: &NodeContext) -> Result<usize, Reason> {
    let size = n.op.options.map_or(Ok(0), |o| o.i32(0))?;
    let b = usize::try_from(size).ok().filter(|&b| b > 0);
    b.ok_or_else(|| format!("attribute block_size must be positive, found {size}").into())
}

pub(super) fn depth_to_space(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, block) = (n.input(0)?, block_size(n)?);
    expect(n, data, &[DType::F32, DType::I8, DType::I16])?;
    same_quantization(n)?;
    let v = movement::depth_to_space(n, data, block, BlockOrder::Dcr, Layout::Nhwc)?;
    n.output(v)
}

pub(super) fn space_to_depth(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, block) = (n.input(0)?, block_size(n)?);
    expect(n, data, &[DType::F32, DType::I8, DType::I16])?;
    same_quantization(n)?;
    let v = movement::space_to_depth(n, data, block, Layout::Nhwc)?;
    n.output(v)
}

pub(super) fn tile(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, repeats) = (n.input(0)?, n.integers(1)?);
    same_quantization(n)?;
    let v = movement::tile(n, data, &repeats)?;
    n.output(v)
}

pub(super) fn broadcast_to(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, shape) = (n.input(0)?, n.integers(1)?);
    same_quantization(n)?;
    let v = movement::expand(n, data, &shape)?;
    n.output(v)
}

pub(super) fn reverse(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, rank) = (n.input(0)?, n.input_info(0)?.shape.len());
    let axes = n.integers(1)?.into_iter().map(|a| axis("axis", a, rank)).collect::<Result<Vec<_>, _>>()?;
    same_quantization(n)?;
    let v = movement::reversed(n, data, &axes)?;
    n.output(v)
}

pub(super) fn gather_nd(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, indices) = (n.input(0)?, n.input(1)?);
    same_quantization(n)?;
    let v = movement::gather_nd(n, data, indices, 0)?;
    n.output(v)
}

/// Sums of updates at the positions that index tuples name, in a tensor of zeros.
pub(super) fn scatter_nd(n: &mut NodeContext) -> Result<(), Reason> {
    let (indices, updates, shape) = (n.input(0)?, n.input(1)?, n.integers(2)?);
    let dtype = expect(n, updates, &[DType::F32, DType::I32, DType::I64])?;
    let zero = n.scalar("zero", 0.0);
    let zero = n.cast("zero", zero, dtype)?;
    let data = movement::expand(n, zero, &shape)?;
    let v = scatter::nd(n, data, indices, updates, Reduction::Add)?;
    n.output(v)
}

/// The sizes of blocks, and what is added or cut off before and after each.
fn blocks(n: &NodeContext) -> Result<(Vec<usize>, pad::Ends), Reason> {
    let sizes = n.integers(1)?.into_iter().map(usize::try_from).collect::<Result<Vec<_>, _>>();
    let sizes = sizes.map_err(|_| "its block_shape must not be negative")?;
    let ends = n.integers(2)?;
    if ends.len() != 2 * sizes.len() || ends.iter().any(|&end| end < 0) {
        return Err(format!("operand 2 must have two numbers for each of {} blocks, none negative", sizes.len()).into());
    }
    Ok((sizes, ends.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()))
}

pub(super) fn space_to_batch(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let dtype = expect(n, data, &[DType::F32, DType::I8, DType::I16])?;
    let (sizes, pads) = blocks(n)?;
    same_quantization(n)?;
    let zero = if dtype == DType::I8 { n.result()?.zero_point as f32 } else { 0.0 };
    let rank = n.ty(data).rank();
    let mut ends = vec![(0, 0)];
    ends.extend(pads);
    if ends.len() > rank {
        return Err(format!("its blocks have {} dimensions, but its data have {rank}", sizes.len()).into());
    }
    ends.resize(rank, (0, 0));
    pad::check(&ends)?;
    let v = pad::constant(n, "pad", data, &ends, zero)?;
    let v = movement::space_to_batch(n, v, &sizes)?;
    n.output(v)
}

pub(super) fn batch_to_space(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let (sizes, crops) = blocks(n)?;
    same_quantization(n)?;
    let v = movement::batch_to_space(n, data, &sizes)?;
    let mut ranges = vec![Range::ALL; n.ty(v).rank()];
    for ((range, size), &(before, after)) in ranges.iter_mut().zip(n.shape(v)?).skip(1).zip(&crops) {
        let end = i64::try_from(size).ok().and_then(|size| size.checked_sub(after)).filter(|&end| end >= before);
        let end = end.ok_or_else(|| format!("its crops {before} and {after} are more than {size} elements"))?;
        *range = Range { start: Some(before), end: Some(end), step: 1 };
    }
    let v = movement::sliced(n, "crop", v, &ranges)?;
    n.output(v)
}
