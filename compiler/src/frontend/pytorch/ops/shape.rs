//! Views: other shapes, orders and parts of the same elements.

use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::movement::{Range, part, sliced};
use crate::graph::op::{Bitcast, Expand, Gather};
use crate::graph::{DType, Tensor, TensorType, ValueId};
use std::collections::HashMap;

pub(super) fn same(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["memory_format", "src"]);
    Ok(n.tensor("self")?.into())
}

/// Inference drops nothing.
pub(super) fn dropout(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["p"]);
    if n.flag("train", false)? {
        return Err("it drops elements, as in training; export the module after `eval()`".into());
    }
    let name = if matches!(n.value("input")?, Value::None) { "self" } else { "input" };
    Ok(n.tensor(name)?.into())
}

pub(super) fn dropout_native(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = dropout(n)?;
    Ok(Value::List(vec![v, Value::None]))
}

/// A conversion to an element type; devices and layouts in memory have no effect.
pub(super) fn to(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["dtype", "layout", "device", "pin_memory", "non_blocking", "copy", "memory_format", "other"]);
    let v = n.tensor("self")?;
    let to = n.result_scalar(0)?;
    let own = n.proto.inputs.iter().find_map(|input| match &input.arg {
        crate::frontend::pytorch::schema::Argument::AsTensor(of) if input.name == "self" => n.cx.scalar_type(&of.name),
        _ => None,
    });
    if own == Some(to) {
        return Ok(v.into());
    }
    Ok(n.converted("", v, to)?.into())
}

/// A shape in which one size can be -1: what is left.
fn filled(n: &NodeContext, v: ValueId, shape: &[i64]) -> Result<Vec<usize>, Reason> {
    let count: usize = n.shape(v)?.iter().product();
    let known = shape.iter().filter(|&&d| d >= 0).try_fold(1usize, |all, &d| all.checked_mul(usize::try_from(d).ok()?));
    let known = known.ok_or("its shape is too large")?;
    let size = |&d: &i64| match usize::try_from(d) {
        Ok(d) => d,
        Err(_) => count / known.max(1),
    };
    let shape: Vec<usize> = shape.iter().map(size).collect();
    if shape.iter().try_fold(1usize, |all, d| all.checked_mul(*d)) != Some(count) {
        return Err(format!("its shape {shape:?} does not suit {}", n.ty(v)).into());
    }
    Ok(shape)
}

pub(super) fn view(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    if n.scalar_type("dtype").is_some() {
        let dtype = n.result_type(0)?;
        return Ok(n.node("", Bitcast { dtype }, &[v])?.into());
    }
    let shape = match n.ints("size")? {
        Some(shape) => shape,
        None => n.ints("shape")?.ok_or("it has no shape")?,
    };
    let shape = filled(n, v, &shape)?;
    Ok(n.reshape("", v, &shape)?.into())
}

pub(super) fn view_as(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, other) = (n.tensor("self")?, n.tensor("other")?);
    let shape = n.shape(other)?;
    Ok(n.reshape("", v, &shape)?.into())
}

pub(super) fn flatten(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let shape = n.shape(v)?;
    let (first, last) = (n.dim_of_any("start_dim", 0, shape.len())?, n.dim_of_any("end_dim", -1, shape.len())?);
    if shape.is_empty() {
        return Ok(n.reshape("", v, &[1])?.into());
    }
    if first > last {
        return Err(format!("its dimension {first} is behind its dimension {last}").into());
    }
    let mut out = shape[..first].to_vec();
    out.push(shape[first..=last].iter().product());
    out.extend_from_slice(&shape[last + 1..]);
    Ok(n.reshape("", v, &out)?.into())
}

pub(super) fn unflatten(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let shape = n.shape(v)?;
    let axis = n.dim("dim", 0, shape.len())?;
    let sizes = n.ints("sizes")?.ok_or("it has no sizes")?;
    let mut out: Vec<i64> = shape.iter().map(|&d| i64::try_from(d).unwrap_or(i64::MAX)).collect();
    out.splice(axis..=axis, sizes);
    let out = filled(n, v, &out)?;
    Ok(n.reshape("", v, &out)?.into())
}

pub(super) fn squeeze(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let shape = n.shape(v)?;
    let axes = match n.ints("dim")? {
        Some(list) if shape.is_empty() || list.is_empty() => Vec::new(),
        Some(list) => n.axes(&list, shape.len())?,
        None => (0..shape.len()).collect(),
    };
    let out: Vec<usize> = (0..shape.len()).filter(|i| !axes.contains(i) || shape[*i] != 1).map(|i| shape[i]).collect();
    Ok(n.reshape("", v, &out)?.into())
}

pub(super) fn unsqueeze(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let mut shape = n.shape(v)?;
    let axis = n.dim("dim", 0, shape.len() + 1)?;
    shape.insert(axis, 1);
    Ok(n.reshape("", v, &shape)?.into())
}

/// Elements at strides of the data's storage, which has the data in the order that the program declares.
pub(super) fn strided(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let shape = n.shape(v)?;
    let (own, first) = n.declared_strides("self").ok_or("the program does not declare the strides of its data")?;
    let list = |n: &mut NodeContext, name: &str| {
        let list = n.ints(name)?.unwrap_or_default();
        let list = list.iter().map(|&d| usize::try_from(d)).collect::<Result<Vec<_>, _>>();
        list.map_err(|_| Reason(format!("its {name} must not be negative")))
    };
    let (sizes, strides) = (list(n, "size")?, list(n, "stride")?);
    // The offset is that of the storage, in which the data have one of their own.
    let given = n.optional_int("storage_offset")?.map_or(Ok(first), usize::try_from);
    let offset = given.ok().and_then(|offset| offset.checked_sub(first));
    let offset = offset.ok_or("it reads elements in front of its data")?;
    if sizes.len() != strides.len() || own.len() != shape.len() {
        return Err("its sizes and strides must have the same number".into());
    }
    let place = |i: usize, sizes: &[usize], strides: &[usize]| {
        let (mut rest, mut at) = (i, 0usize);
        for (size, stride) in sizes.iter().zip(strides).rev() {
            at = at.saturating_add((rest % size.max(&1)).saturating_mul(*stride));
            rest /= size.max(&1);
        }
        at
    };
    // Where each element of the storage is in the data.
    let count: usize = shape.iter().product();
    n.reserve(&TensorType::new(DType::I64, &[count, 4]))?;
    let stored: HashMap<usize, i64> = (0..count).map(|i| (place(i, &shape, &own), i as i64)).collect();
    let wanted = sizes.iter().try_fold(1usize, |all, d| all.checked_mul(*d)).ok_or("its result is too large")?;
    n.reserve(&TensorType::new(DType::I64, &[wanted]))?;
    let at = |i: usize| stored.get(&offset.saturating_add(place(i, &sizes, &strides))).copied();
    let index: Option<Vec<i64>> = (0..wanted).map(at).collect();
    let index = index.ok_or("it reads elements that its data do not have")?;
    if index.iter().copied().eq(0..count as i64) {
        return Ok(n.reshape("", v, &sizes)?.into());
    }
    let index = n.made("index", Tensor::vector(index));
    let flat = n.reshape("flat", v, &[count])?;
    let v = n.node("elements", Gather { axis: 0 }, &[flat, index])?;
    Ok(n.reshape("", v, &sizes)?.into())
}

/// The data with their dimensions in this order.
fn permuted(n: &mut NodeContext, v: ValueId, perm: &[usize]) -> Result<Value, Reason> {
    if perm.iter().copied().eq(0..perm.len()) {
        return Ok(v.into());
    }
    Ok(n.transposed("", v, perm)?.into())
}

pub(super) fn permute(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let rank = n.ty(v).rank();
    let dims = n.ints("dims")?.unwrap_or_default();
    let perm = dims.iter().map(|&d| n.axis(d, rank)).collect::<Result<Vec<_>, _>>()?;
    n.axes(&dims, rank)?;
    permuted(n, v, &perm)
}

pub(super) fn transpose(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let rank = n.ty(v).rank();
    let names = if matches!(n.value("axis0")?, Value::None) { ["dim0", "dim1"] } else { ["axis0", "axis1"] };
    let (a, b) = (n.dim_of_any(names[0], 0, rank)?, n.dim_of_any(names[1], 0, rank)?);
    let mut perm: Vec<usize> = (0..rank).collect();
    if rank > 0 {
        perm.swap(a, b);
    }
    permuted(n, v, &perm)
}

/// The last two dimensions swapped; data of fewer dimensions stay.
pub(super) fn transpose_matrices(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let rank = n.ty(v).rank();
    let mut perm: Vec<usize> = (0..rank).collect();
    if rank >= 2 {
        perm.swap(rank - 2, rank - 1);
    }
    permuted(n, v, &perm)
}

pub(super) fn move_dims(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let rank = n.ty(v).rank();
    let (from, to) = (n.ints("source")?.unwrap_or_default(), n.ints("destination")?.unwrap_or_default());
    let dims = |n: &NodeContext, list: &[i64]| list.iter().map(|&d| n.axis(d, rank)).collect::<Result<Vec<_>, _>>();
    let (from, to) = (dims(n, &from)?, dims(n, &to)?);
    let mut perm = vec![usize::MAX; rank];
    for (from, to) in from.iter().zip(&to) {
        perm[*to] = *from;
    }
    let mut rest = (0..rank).filter(|d| !from.contains(d));
    for place in perm.iter_mut().filter(|place| **place == usize::MAX) {
        *place = rest.next().ok_or("it names a dimension twice")?;
    }
    permuted(n, v, &perm)
}

/// The data repeated so that they have this shape; -1 keeps a size.
pub(super) fn expanded(n: &mut NodeContext, v: ValueId, to: &[i64]) -> Result<Value, Reason> {
    let shape = n.shape(v)?;
    let before = to.len().checked_sub(shape.len()).ok_or("its shape has fewer dimensions than its data")?;
    let own = |i: usize| i.checked_sub(before).and_then(|i| shape.get(i)).copied();
    let size = |(i, &d): (usize, &i64)| match usize::try_from(d) {
        Ok(d) => Ok(d),
        Err(_) => own(i).ok_or(Reason("its shape must not be negative".into())),
    };
    let out = to.iter().enumerate().map(size).collect::<Result<Vec<_>, _>>()?;
    if (0..out.len()).any(|i| own(i).is_some_and(|d| d != 1 && d != out[i])) {
        return Err(format!("its data {} do not expand to {out:?}", n.ty(v)).into());
    }
    Ok(if out == shape { v } else { n.node("", Expand { shape: out }, &[v])? }.into())
}

pub(super) fn expand(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["implicit"]);
    let v = n.tensor("self")?;
    let to = n.ints("size")?.unwrap_or_default();
    expanded(n, v, &to)
}

pub(super) fn expand_as(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, other) = (n.tensor("self")?, n.tensor("other")?);
    let to: Vec<i64> = n.shape(other)?.iter().map(|&d| i64::try_from(d).unwrap_or(i64::MAX)).collect();
    expanded(n, v, &to)
}

pub(super) fn select(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let mut shape = n.shape(v)?;
    let axis = n.dim("dim", 0, shape.len())?;
    let index = n.int("index", 0)?;
    let size = *shape.get(axis).ok_or("its data have no dimensions")?;
    let index = n.axis(index, size).map_err(|_| format!("its index {index} is out of range for {size} elements"))?;
    let v = part(n, "part", v, axis, index, 1)?;
    shape.remove(axis);
    Ok(n.reshape("", v, &shape)?.into())
}

/// The range of a dimension that `start`, `end` and `step` say.
pub(super) fn ranges(n: &mut NodeContext, rank: usize) -> Result<Vec<Range>, Reason> {
    let axis = n.dim("dim", 0, rank)?;
    let range = Range { start: n.optional_int("start")?, end: n.optional_int("end")?, step: n.int("step", 1)? };
    let mut ranges = vec![Range::ALL; rank];
    *ranges.get_mut(axis).ok_or("its data have no dimensions")? = range;
    Ok(ranges)
}

pub(super) fn slice(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let ranges = ranges(n, n.ty(v).rank())?;
    Ok(sliced(n, "", v, &ranges)?.into())
}

pub(super) fn narrow(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let shape = n.shape(v)?;
    let axis = n.dim("dim", 0, shape.len())?;
    let (start, length) = (n.int("start", 0)?, n.int("length", 0)?);
    let start = if start < 0 { start + i64::try_from(shape[axis]).unwrap_or(0) } else { start };
    let mut ranges = vec![Range::ALL; shape.len()];
    ranges[axis] = Range { start: Some(start), end: Some(start.saturating_add(length)), step: 1 };
    Ok(sliced(n, "", v, &ranges)?.into())
}

/// Parts of a dimension with these sizes.
fn parts(n: &mut NodeContext, v: ValueId, axis: usize, sizes: &[usize]) -> Result<Value, Reason> {
    let size = n.shape(v)?[axis];
    if sizes.iter().try_fold(0usize, |all, d| all.checked_add(*d)) != Some(size) {
        return Err(format!("its parts {sizes:?} are not {size} elements").into());
    }
    let (mut all, mut at) = (Vec::new(), 0);
    for (i, &count) in sizes.iter().enumerate() {
        all.push(part(n, &format!("{i}"), v, axis, at, count)?);
        at += count;
    }
    Ok(all.into())
}

/// Splits a dimension into parts of `each` elements; the last part can be smaller.
fn equal_parts(n: &mut NodeContext, v: ValueId, axis: usize, each: usize) -> Result<Value, Reason> {
    let size = n.shape(v)?[axis];
    if each == 0 {
        return Err("its parts must not be empty".into());
    }
    let count = size.div_ceil(each).max(1);
    n.reserve_nodes(count)?;
    let sizes: Vec<usize> = (0..count).map(|i| (size - i * each).min(each)).collect();
    parts(n, v, axis, &sizes)
}

pub(super) fn split(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let axis = n.dim("dim", 0, n.ty(v).rank())?;
    let each = usize::try_from(n.int("split_size", 0)?).unwrap_or(0);
    equal_parts(n, v, axis, each)
}

pub(super) fn chunk(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let shape = n.shape(v)?;
    let axis = n.dim("dim", 0, shape.len())?;
    let count = usize::try_from(n.int("chunks", 0)?).ok().filter(|count| *count > 0);
    let each = shape[axis].div_ceil(count.ok_or("its chunks must be above 0")?);
    equal_parts(n, v, axis, each.max(1))
}

pub(super) fn split_with_sizes(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let axis = n.dim("dim", 0, n.ty(v).rank())?;
    let sizes = n.ints("split_sizes")?.unwrap_or_default();
    let sizes = sizes.iter().map(|&d| usize::try_from(d)).collect::<Result<Vec<_>, _>>();
    parts(n, v, axis, &sizes.map_err(|_| "its split_sizes must not be negative")?)
}

pub(super) fn unbind(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let mut shape = n.shape(v)?;
    let axis = n.dim("dim", 0, shape.len())?;
    let Value::List(list) = equal_parts(n, v, axis, 1)? else { return Err("it has no parts".into()) };
    shape.remove(axis);
    let own = |(i, value)| match value {
        Value::Tensor(v) => Ok(Value::Tensor(n.reshape(&format!("{i}/row"), v, &shape)?)),
        other => Ok(other),
    };
    list.into_iter().enumerate().map(own).collect::<Result<Vec<_>, Reason>>().map(Value::List)
}

/// Windows of `size` elements, `step` apart, as a new last dimension.
pub(super) fn unfold(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let shape = n.shape(v)?;
    let axis = n.dim("dimension", 0, shape.len())?;
    let positive = |x: i64| usize::try_from(x).ok().filter(|x| *x > 0).ok_or("its size and step must be above 0");
    let (size, step) = (positive(n.int("size", 1)?)?, positive(n.int("step", 1)?)?);
    let count = shape[axis].checked_sub(size).ok_or("its windows are larger than its data")? / step + 1;
    let index = n.table("index", &[count, size], |i| (i / size * step + i % size) as i64)?;
    let v = n.node("windows", Gather { axis }, &[v, index])?;
    let mut perm: Vec<usize> = (0..=shape.len()).collect();
    let window = perm.remove(axis + 1);
    perm.push(window);
    permuted(n, v, &perm)
}

/// A diagonal of two dimensions, as the last dimension.
pub(super) fn diagonal(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let shape = n.shape(v)?;
    let offset = n.int("offset", 0)?.clamp(-(1 << 40), 1 << 40);
    let (a, b) = (n.dim("dim1", 0, shape.len())?, n.dim("dim2", 1, shape.len())?);
    if a == b {
        return Err("its dimensions must differ".into());
    }
    let mut perm: Vec<usize> = (0..shape.len()).filter(|d| *d != a && *d != b).collect();
    let mut out: Vec<usize> = perm.iter().map(|&d| shape[d]).collect();
    perm.extend([a, b]);
    let Value::Tensor(v) = permuted(n, v, &perm)? else { return Err("its operand is no tensor".into()) };
    let (rows, columns) = (shape[a] as i64, shape[b] as i64);
    let (row, column) = ((-offset).max(0), offset.max(0));
    let count = (rows - row).min(columns - column).max(0);
    let mut flat = out.clone();
    flat.push(shape[a] * shape[b]);
    let v = n.reshape("flat", v, &flat)?;
    let index: Vec<i64> = (0..count).map(|i| (row + i) * columns + column + i).collect();
    let index = n.constant("index", Tensor::vector(index))?;
    out.push(usize::try_from(count).unwrap_or(0));
    let v = n.node("diagonal", Gather { axis: out.len() - 1 }, &[v, index])?;
    Ok(n.reshape("", v, &out)?.into())
}
