//! Moves of elements that make new tensors: joined, repeated, turned and rearranged.

use super::shape::expanded;
use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::movement::{self, BlockOrder, part};
use crate::graph::ValueId;
use crate::graph::op::{Concat, Expand, Layout};

pub(super) fn broadcast_tensors(n: &mut NodeContext) -> Result<Value, Reason> {
    let list = n.tensors("tensors")?;
    let out = movement::broadcast_shape(n, list.iter().copied())?;
    let out: Vec<i64> = out.into_iter().map(|d| i64::try_from(d).unwrap_or(i64::MAX)).collect();
    list.into_iter().map(|v| expanded(n, v, &out)).collect::<Result<Vec<_>, _>>().map(Value::List)
}

/// Tensors in the type of the result.
fn alike(n: &mut NodeContext) -> Result<Vec<ValueId>, Reason> {
    let dtype = n.result_type(0)?;
    let list = n.tensors("tensors")?;
    list.into_iter().map(|v| n.cast("part", v, dtype)).collect()
}

fn joined(n: &mut NodeContext, parts: &[ValueId], axis: usize) -> Result<Value, Reason> {
    if parts.is_empty() {
        return Err("it joins no tensors".into());
    }
    Ok(movement::beside(n, "", axis, parts)?.into())
}

pub(super) fn concatenate(n: &mut NodeContext) -> Result<Value, Reason> {
    let all = alike(n)?;
    // Tensors of no elements and one dimension join with any.
    let some: Vec<ValueId> = all.iter().copied().filter(|&v| n.ty(v).element_count() != Some(0)).collect();
    let parts = if some.is_empty() { all } else { some };
    let rank = parts.first().map_or(0, |&v| n.ty(v).rank());
    let axis = n.dim("dim", 0, rank)?;
    joined(n, &parts, axis)
}

pub(super) fn stack(n: &mut NodeContext) -> Result<Value, Reason> {
    let all = alike(n)?;
    let rank = all.first().map_or(0, |&v| n.ty(v).rank());
    let axis = n.dim("dim", 0, rank + 1)?;
    let own = |v| {
        let mut shape = n.shape(v)?;
        shape.insert(axis, 1);
        n.reshape("part", v, &shape)
    };
    let parts = all.into_iter().map(own).collect::<Result<Vec<_>, _>>()?;
    joined(n, &parts, axis)
}

pub(super) fn stack_rows(n: &mut NodeContext) -> Result<Value, Reason> {
    let own = |n: &mut NodeContext, v| match n.shape(v)?.as_slice() {
        [] => n.reshape("part", v, &[1, 1]),
        &[d] => n.reshape("part", v, &[1, d]),
        _ => Ok(v),
    };
    let parts = alike(n)?.into_iter().map(|v| own(n, v)).collect::<Result<Vec<_>, _>>()?;
    joined(n, &parts, 0)
}

pub(super) fn stack_columns(n: &mut NodeContext) -> Result<Value, Reason> {
    let own = |n: &mut NodeContext, v| if n.ty(v).rank() == 0 { n.reshape("part", v, &[1]) } else { Ok(v) };
    let parts = alike(n)?.into_iter().map(|v| own(n, v)).collect::<Result<Vec<_>, _>>()?;
    let axis = usize::from(parts.first().is_some_and(|&v| n.ty(v).rank() > 1));
    joined(n, &parts, axis)
}

pub(super) fn repeat(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let mut repeats = match n.ints("repeats")? {
        Some(repeats) => repeats,
        None => n.ints("dims")?.unwrap_or_default(),
    };
    let mut shape = n.shape(v)?;
    while repeats.len() < shape.len() {
        repeats.insert(0, 1);
    }
    while shape.len() < repeats.len() {
        shape.insert(0, 1);
    }
    let v = n.reshape("shape", v, &shape)?;
    Ok(movement::tile(n, v, &repeats)?.into())
}

/// Each element several times, one after the other.
pub(super) fn repeat_interleave(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["output_size"]);
    let mut v = n.tensor("self")?;
    let times = usize::try_from(n.int("repeats", 1)?).map_err(|_| "its repeats must not be negative")?;
    let axis = match n.optional_int("dim")? {
        Some(axis) => n.axis(axis, n.ty(v).rank())?,
        None => {
            let count = n.shape(v)?.iter().product();
            v = n.reshape("flat", v, &[count])?;
            0
        }
    };
    let shape = n.shape(v)?;
    let (mut apart, mut wide, mut out) = (shape.clone(), shape.clone(), shape.clone());
    apart.insert(axis + 1, 1);
    wide.insert(axis + 1, times);
    out[axis] = shape[axis].checked_mul(times).ok_or("its result is too large")?;
    let v = n.reshape("apart", v, &apart)?;
    let v = n.node("wide", Expand { shape: wide }, &[v])?;
    Ok(n.reshape("", v, &out)?.into())
}

pub(super) fn flip(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let dims = n.ints("dims")?.unwrap_or_default();
    let axes = n.axes(&dims, n.ty(v).rank())?;
    Ok(movement::reversed(n, v, &axes)?.into())
}

pub(super) fn flip_rows(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let axis = n.axis(0, n.ty(v).rank())?;
    Ok(movement::reversed(n, v, &[axis])?.into())
}

pub(super) fn flip_columns(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let axis = n.axis(1, n.ty(v).rank())?;
    Ok(movement::reversed(n, v, &[axis])?.into())
}

pub(super) fn roll(n: &mut NodeContext) -> Result<Value, Reason> {
    let given = n.tensor("self")?;
    let shape = n.shape(given)?;
    let (shifts, dims) = (n.ints("shifts")?.unwrap_or_default(), n.ints("dims")?.unwrap_or_default());
    let flat = dims.is_empty();
    let mut v = if flat { n.reshape("flat", given, &[shape.iter().product()])? } else { given };
    let axes =
        if flat { vec![0] } else { dims.iter().map(|&d| n.axis(d, shape.len())).collect::<Result<Vec<_>, _>>()? };
    if axes.len() != shifts.len() {
        return Err("its shifts and dims must have the same number".into());
    }
    for (axis, shift) in axes.into_iter().zip(shifts) {
        let size = n.shape(v)?[axis];
        let by = usize::try_from(shift.rem_euclid(i64::try_from(size.max(1)).unwrap_or(1))).unwrap_or(0);
        if by == 0 {
            continue;
        }
        let (front, back) = (part(n, "front", v, axis, 0, size - by)?, part(n, "back", v, axis, size - by, by)?);
        v = n.node("rolled", Concat { axis }, &[back, front])?;
    }
    Ok(if flat { n.reshape("", v, &shape)? } else { v }.into())
}

/// One tensor of each vector, all of the shape that their sizes make.
pub(super) fn mesh(n: &mut NodeContext) -> Result<Value, Reason> {
    let is_transposed = n.text("indexing")?.as_deref() == Some("xy");
    let list = n.tensors("tensors")?;
    let sizes = list.iter().map(|&v| Ok(n.shape(v)?.iter().product())).collect::<Result<Vec<usize>, Reason>>()?;
    let place = |i: usize| if is_transposed && i < 2 { 1 - i } else { i };
    let shape: Vec<usize> = (0..sizes.len()).map(|i| sizes[if sizes.len() > 1 { place(i) } else { i }]).collect();
    let own = |(i, v): (usize, ValueId)| {
        let mut one = vec![1; sizes.len()];
        one[if sizes.len() > 1 { place(i) } else { i }] = sizes[i];
        let v = n.reshape(&format!("{i}/line"), v, &one)?;
        n.node(&format!("{i}"), Expand { shape: shape.clone() }, &[v])
    };
    Ok(list.into_iter().enumerate().map(own).collect::<Result<Vec<_>, _>>()?.into())
}

pub(super) fn pixel_shuffle(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let block =
        usize::try_from(n.int("upscale_factor", 1)?).ok().filter(|b| *b > 0).ok_or("its factor must be above 0")?;
    images(n, v, |n, v| movement::depth_to_space(n, v, block, BlockOrder::Crd, Layout::Nchw))
}

/// The inverse of [`pixel_shuffle`].
pub(super) fn pixel_unshuffle(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let b =
        usize::try_from(n.int("downscale_factor", 1)?).ok().filter(|b| *b > 0).ok_or("its factor must be above 0")?;
    images(n, v, |n, v| {
        let shape = n.shape(v)?;
        let &[images, c, h, w] = shape.as_slice() else { return Err("its data must be images".into()) };
        if h % b != 0 || w % b != 0 {
            return Err(format!("its factor {b} must divide height and width, {h} and {w}").into());
        }
        let v = n.reshape("blocks", v, &[images, c, h / b, b, w / b, b])?;
        let v = n.transposed("order", v, &[0, 1, 3, 5, 2, 4])?;
        n.reshape("", v, &[images, c * b * b, h / b, w / b])
    })
}

/// Applies a function of `[N, C, H, W]` to data whose dimensions before the last three are joined, or are missing.
fn images(
    n: &mut NodeContext,
    v: ValueId,
    f: impl FnOnce(&mut NodeContext, ValueId) -> Result<ValueId, Reason>,
) -> Result<Value, Reason> {
    let shape = n.shape(v)?;
    let outer = shape.len().checked_sub(3).ok_or("its data must have 3 dimensions or more")?;
    let mut flat = vec![shape[..outer].iter().product()];
    flat.extend_from_slice(&shape[outer..]);
    let v = n.reshape("images", v, &flat)?;
    let v = f(n, v)?;
    let made = n.shape(v)?;
    let out = [&shape[..outer], &made[1..]].concat();
    Ok(n.reshape("shape", v, &out)?.into())
}

pub(super) fn channel_shuffle(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let shape = n.shape(v)?;
    let groups = usize::try_from(n.int("groups", 1)?).ok().filter(|g| *g > 0 && shape.len() > 1 && shape[1] % g == 0);
    let groups = groups.ok_or("its groups must divide the channels")?;
    let rest: usize = shape[2..].iter().product();
    let v = n.reshape("groups", v, &[shape[0], groups, shape[1] / groups, rest])?;
    let v = n.transposed("order", v, &[0, 2, 1, 3])?;
    Ok(n.reshape("", v, &shape)?.into())
}
