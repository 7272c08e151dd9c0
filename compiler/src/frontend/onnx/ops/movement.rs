//! Operators that move elements: concatenation, parts, gathered slices, repetition and blocks.

use crate::frontend::onnx::node::{NodeContext, Reason};
use crate::graph::op::{self, BinaryKind, Concat, Expand, Gather, GatherElements, Select, Slice, Transpose};
use crate::graph::{DType, Tensor, ValueId};

/// Operands in the same form: stored as int8 if all of them are uint8, else as in the file.
pub(super) fn alike(n: &mut NodeContext, count: usize) -> Result<(Vec<ValueId>, bool), Reason> {
    let stored = (0..count).map(|i| n.input(i)).collect::<Result<Vec<_>, _>>()?;
    if stored.iter().all(|&v| n.unsigned(v)) {
        return Ok((stored, true));
    }
    Ok(((0..count).map(|i| n.plain(i)).collect::<Result<_, _>>()?, false))
}

pub(super) fn concat(n: &mut NodeContext) -> Result<(), Reason> {
    let (parts, _) = alike(n, n.proto.input.len())?;
    let first = *parts.first().ok_or("it has no operands")?;
    let rank = n.ty(first).rank();
    let axis = if n.opset() < 4 { n.int("axis").unwrap_or(1) } else { n.int("axis").ok_or("it has no `axis`")? };
    let axis = n.axis(axis, rank)?;
    // Many writers use one-dimensional tensors without elements for nothing.
    let parts: Vec<ValueId> = match parts.len() {
        1 => parts,
        _ => {
            let some: Vec<_> = parts.iter().copied().filter(|&v| n.ty(v).element_count() != Some(0)).collect();
            if some.is_empty() { parts } else { some }
        }
    };
    let v = match parts.as_slice() {
        [one] => *one,
        _ => n.node("", Concat { axis }, &parts)?,
    };
    n.output_like(v, first)
}

/// Part of a dimension: `size` elements from `start` on.
pub(super) fn part(
    n: &mut NodeContext,
    suffix: &str,
    v: ValueId,
    axis: usize,
    start: usize,
    size: usize,
) -> Result<ValueId, Reason> {
    let mut sizes = n.shape(v)?;
    let mut starts = vec![0; sizes.len()];
    (starts[axis], sizes[axis]) = (start, size);
    let steps = vec![1; sizes.len()];
    n.node(suffix, Slice { starts, sizes, steps }, &[v])
}

pub(super) fn split(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let axis = n.axis_attribute(0, n.ty(data).rank())?;
    let size = n.shape(data)?[axis];
    let outputs = n.proto.output.len();
    let given = if n.opset() >= 13 {
        if n.has_input(1) { Some(n.integers(1)?) } else { None }
    } else {
        n.ints("split").map(<[i64]>::to_vec)
    };
    let sizes = match given {
        Some(list) => list
            .iter()
            .map(|&s| usize::try_from(s))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| "its `split` must not be negative")?,
        None => {
            let count = match n.int("num_outputs") {
                Some(k) => usize::try_from(k).ok().filter(|&k| k > 0).ok_or("its `num_outputs` must be positive")?,
                None => outputs.max(1),
            };
            let each = size.div_ceil(count);
            (0..count).map(|i| size.saturating_sub(i.saturating_mul(each)).min(each)).collect()
        }
    };
    if sizes.len() < outputs || sizes.iter().try_fold(0usize, |n, &s| n.checked_add(s)) != Some(size) {
        return Err(format!("its `split` {sizes:?} does not match {outputs} outputs of {size} elements").into());
    }
    let mut start = 0;
    let mut parts = Vec::new();
    for (i, &s) in sizes.iter().enumerate().take(outputs) {
        let v = part(n, &format!("{i}"), data, axis, start, s)?;
        if n.unsigned(data) {
            n.cx.unsigned.insert(v);
        }
        parts.push(v);
        start += s;
    }
    n.outputs(&parts)
}

pub(super) fn slice(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let shape = n.shape(data)?;
    let rank = shape.len();
    let (starts, ends, axes, steps) = if n.opset() < 10 {
        let list = |name: &str| n.ints(name).map(<[i64]>::to_vec);
        (list("starts").ok_or("it has no `starts`")?, list("ends").ok_or("it has no `ends`")?, list("axes"), None)
    } else {
        let axes = if n.has_input(3) { Some(n.integers(3)?) } else { None };
        let steps = if n.has_input(4) { Some(n.integers(4)?) } else { None };
        (n.integers(1)?, n.integers(2)?, axes, steps)
    };
    let axes = match axes {
        Some(list) => list.iter().map(|&a| n.axis(a, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..starts.len()).collect(),
    };
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    if ends.len() != starts.len() || axes.len() != starts.len() || steps.len() != starts.len() || axes.len() > rank {
        return Err("its starts, ends, axes and steps must have the same length".into());
    }
    let mut op = Slice { starts: vec![0; rank], sizes: shape.clone(), steps: vec![1; rank] };
    for (i, &a) in axes.iter().enumerate() {
        let (size, step) = (shape[a] as i64, steps[i]);
        if step == 0 {
            return Err("its steps must not be 0".into());
        }
        let from_end = |v: i64| if v < 0 { v.saturating_add(size) } else { v };
        let (lo, hi) = if step > 0 { (0, size) } else { (-1, size - 1) };
        let start = from_end(starts[i]).clamp(if step > 0 { 0 } else { -1 }, if step > 0 { size } else { size - 1 });
        let end = from_end(ends[i]).clamp(lo, hi);
        let span = if step > 0 { end - start } else { start - end };
        let count = if span <= 0 { 0 } else { (span - 1) / step.saturating_abs() + 1 };
        op.sizes[a] = usize::try_from(count).unwrap_or(0);
        op.starts[a] = if count > 0 { usize::try_from(start).unwrap_or(0) } else { 0 };
        op.steps[a] = step;
    }
    if op.sizes.contains(&0) {
        let t = Tensor::from_bytes(n.ty(data).dtype, &op.sizes, &[]).ok_or("its result is too large")?;
        let v = n.constant("", t)?;
        return n.output_like(v, data);
    }
    let whole = op.sizes == shape && op.steps.iter().all(|&s| s == 1);
    let v = if whole { data } else { n.node("", op, &[data])? };
    n.output_like(v, data)
}

/// Fails if constant indices are outside a dimension of the data; indices computed at run time are clamped to it.
pub(super) fn check_indices(n: &NodeContext, indices: ValueId, data: ValueId, axis: usize) -> Result<(), Reason> {
    let (Some(known), Some(size)) = (n.cx.builder.constant_of(indices), n.ty(data).dims[axis].known()) else {
        return Ok(());
    };
    Ok(op::check_indices(known, axis, size)?)
}

pub(super) fn gather(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, indices) = (n.input(0)?, n.plain(1)?);
    let axis = n.axis_attribute(0, n.ty(data).rank())?;
    check_indices(n, indices, data, axis)?;
    let v = n.node("", Gather { axis }, &[data, indices])?;
    n.output_like(v, data)
}

pub(super) fn gather_elements(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, indices) = (n.input(0)?, n.plain(1)?);
    let axis = n.axis_attribute(0, n.ty(data).rank())?;
    check_indices(n, indices, data, axis)?;
    let v = n.node("", GatherElements { axis }, &[data, indices])?;
    n.output_like(v, data)
}

/// 64-bit indices, with negative ones counted from the end of `size` elements.
pub(super) fn from_end(n: &mut NodeContext, indices: ValueId, size: i64) -> Result<ValueId, Reason> {
    let (zero, size) = (n.made("zero", Tensor::scalar(0i64)), n.made("size", Tensor::scalar(size)));
    let negative = n.binary("negative", BinaryKind::Less, indices, zero)?;
    let wrapped = n.add("wrapped", indices, size)?;
    n.node("from_end", Select {}, &[negative, wrapped, indices])
}

/// Splits index tuples, `[…, width]`, into columns with this shape, one per indexed dimension.
pub(super) fn columns(n: &mut NodeContext, indices: ValueId, shape: &[usize]) -> Result<Vec<ValueId>, Reason> {
    let (outer, width) = match n.shape(indices)?.split_last() {
        Some((&width, outer)) => (outer.len(), width),
        None => return Err("its indices must have dimensions".into()),
    };
    let column = |k| {
        let column = part(n, &format!("column{k}"), indices, outer, k, 1)?;
        n.reshape(&format!("index{k}"), column, shape)
    };
    (0..width).map(column).collect()
}

/// Combines the columns of index tuples into one 64-bit index into the data, flattened over the dimensions up to the
/// last indexed one; `first` is the first indexed one. Negative indices count from the end. With `outside`, an index
/// found out of range at run time becomes that number instead.
pub(super) fn flat_index(
    n: &mut NodeContext,
    columns: &[ValueId],
    (data, first): (ValueId, usize),
    outside: Option<usize>,
) -> Result<ValueId, Reason> {
    let sizes = &n.shape(data)?[..first + columns.len()];
    let steps = crate::graph::strides_of(sizes);
    let mut flat = None;
    for (k, &column) in columns.iter().enumerate() {
        let axis = first + k;
        check_indices(n, column, data, axis)?;
        let column = n.cast("index", column, DType::I64)?;
        let mut column = from_end(n, column, sizes[axis] as i64)?;
        if let Some(outside) = outside {
            column = within(n, column, sizes[axis], outside)?;
        }
        let step = n.made("step", Tensor::scalar(steps[axis] as i64));
        let term = n.binary("term", BinaryKind::Mul, column, step)?;
        flat = Some(match flat {
            Some(sum) => n.add("sum", sum, term)?,
            None => term,
        });
    }
    flat.ok_or_else(|| "its indices must not be empty".into())
}

/// The index if it is in `0..size`, else `outside`.
fn within(n: &mut NodeContext, index: ValueId, size: usize, outside: usize) -> Result<ValueId, Reason> {
    let [zero, size, outside] = [0, size as i64, outside as i64].map(|x| n.made("bound", Tensor::scalar(x)));
    let low = n.binary("low", BinaryKind::LessEqual, zero, index)?;
    let high = n.binary("high", BinaryKind::Less, index, size)?;
    let both = n.binary("within", BinaryKind::And, low, high)?;
    n.node("held", Select {}, &[both, index, outside])
}

/// Combines the index tuples into one index into the data, flattened over the indexed dimensions.
pub(super) fn gather_nd(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, indices) = (n.input(0)?, n.plain(1)?);
    let (shape, rows) = (n.shape(data)?, n.shape(indices)?);
    let batch = usize::try_from(n.int("batch_dims").unwrap_or(0)).map_err(|_| "its batch_dims must not be negative")?;
    let Some((&width, outer)) = rows.split_last() else { return Err("its indices must have dimensions".into()) };
    if batch > outer.len() || batch + width > shape.len() || shape[..batch] != rows[..batch] {
        return Err(format!("its indices {rows:?} do not match data {shape:?} with batch_dims {batch}").into());
    }
    let columns = columns(n, indices, outer)?;
    let mut flat = flat_index(n, &columns, (data, batch), None)?;
    // All indexed dimensions, including the batch, become one.
    let indexed = &shape[..batch + width];
    for (b, &stride) in crate::graph::strides_of(indexed).iter().enumerate().take(batch) {
        let mut shape = vec![1; outer.len()];
        shape[b] = rows[b];
        let base = n.table("batch", &shape, |i| (i * stride) as i64)?;
        flat = n.add("sum", flat, base)?;
    }
    let mut joined = vec![indexed.iter().product()];
    joined.extend_from_slice(&shape[batch + width..]);
    let rows = n.reshape("data", data, &joined)?;
    let v = n.node("", Gather { axis: 0 }, &[rows, flat])?;
    n.output_like(v, data)
}

pub(super) fn expand(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let (from, to) = (n.shape(data)?, n.integers(1)?);
    let rank = from.len().max(to.len());
    let mut shape = vec![1usize; rank];
    for (i, &d) in to.iter().enumerate() {
        shape[rank - to.len() + i] = usize::try_from(d).map_err(|_| "its shape must not be negative")?;
    }
    for (i, &d) in from.iter().enumerate() {
        let s = &mut shape[rank - from.len() + i];
        if *s == 1 {
            *s = d;
        }
    }
    let v = if shape == from { data } else { n.node("", Expand { shape }, &[data])? };
    n.output_like(v, data)
}

pub(super) fn tile(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let shape = n.shape(data)?;
    let repeats = n.integers(1)?.iter().map(|&r| usize::try_from(r)).collect::<Result<Vec<_>, _>>();
    let repeats = repeats.map_err(|_| "its repeats must not be negative")?;
    if repeats.len() != shape.len() {
        return Err(format!("its repeats must have {} values, found {}", shape.len(), repeats.len()).into());
    }
    let (mut apart, mut wide, mut out) = (Vec::new(), Vec::new(), Vec::new());
    for (&d, &r) in shape.iter().zip(&repeats) {
        if r != 1 {
            apart.push(1);
            wide.push(r);
        }
        apart.push(d);
        wide.push(d);
        out.push(d.checked_mul(r).ok_or("its result is too large")?);
    }
    let v = n.reshape("apart", data, &apart)?;
    let v = n.node("expand", Expand { shape: wide }, &[v])?;
    let v = n.reshape("", v, &out)?;
    n.output_like(v, data)
}

/// Axes of Squeeze and Unsqueeze: an attribute, or an operand from set 13 on.
fn said_axes(n: &NodeContext) -> Result<Option<Vec<i64>>, Reason> {
    if n.opset() < 13 {
        return Ok(n.ints("axes").map(<[i64]>::to_vec));
    }
    if n.has_input(1) { n.integers(1).map(Some) } else { Ok(None) }
}

pub(super) fn squeeze(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let shape = n.shape(data)?;
    let axes = match said_axes(n)? {
        Some(list) => n.axes(&list, shape.len())?,
        None => (0..shape.len()).filter(|&i| shape[i] == 1).collect(),
    };
    if let Some(a) = axes.iter().find(|&&a| shape[a] != 1) {
        return Err(format!("its axis {a} has {} elements, not 1", shape[*a]).into());
    }
    let out: Vec<usize> = (0..shape.len()).filter(|i| !axes.contains(i)).map(|i| shape[i]).collect();
    let v = n.reshape("", data, &out)?;
    n.output_like(v, data)
}

pub(super) fn unsqueeze(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let shape = n.shape(data)?;
    let list = said_axes(n)?.ok_or("it has no axes")?;
    let axes = n.axes(&list, shape.len() + list.len())?;
    let mut out = shape;
    axes.iter().for_each(|&a| out.insert(a, 1));
    let v = n.reshape("", data, &out)?;
    n.output_like(v, data)
}

/// The block size, and the data with their sizes.
fn blocks(n: &mut NodeContext) -> Result<(usize, ValueId, [usize; 4]), Reason> {
    let data = n.input(0)?;
    let shape: [usize; 4] = n.shape(data)?.try_into().map_err(|_| "its data must have 4 dimensions")?;
    let block = n.int("blocksize").and_then(|b| usize::try_from(b).ok()).filter(|&b| b > 0);
    Ok((block.ok_or("its blocksize must be positive")?, data, shape))
}

fn moved(n: &mut NodeContext, data: ValueId, apart: &[usize], perm: &[usize], out: &[usize]) -> Result<(), Reason> {
    let v = n.reshape("apart", data, apart)?;
    let v = n.node("transpose", Transpose { perm: perm.to_vec() }, &[v])?;
    let v = n.reshape("", v, out)?;
    n.output_like(v, data)
}

pub(super) fn depth_to_space(n: &mut NodeContext) -> Result<(), Reason> {
    let (b, data, [batch, c, h, w]) = blocks(n)?;
    let area = b.checked_mul(b).filter(|a| c % a == 0).ok_or("its blocksize squared must divide the channels")?;
    let depth = c / area;
    let (high, wide) = h.checked_mul(b).zip(w.checked_mul(b)).ok_or("its blocksize is too large")?;
    let (apart, perm) = match n.word("mode").as_deref() {
        None | Some("DCR") => ([batch, b, b, depth, h, w], [0, 3, 4, 1, 5, 2]),
        Some("CRD") => ([batch, depth, b, b, h, w], [0, 1, 4, 2, 5, 3]),
        Some(other) => return Err(format!("unknown mode `{other}`; use DCR or CRD").into()),
    };
    moved(n, data, &apart, &perm, &[batch, depth, high, wide])
}

pub(super) fn space_to_depth(n: &mut NodeContext) -> Result<(), Reason> {
    let (b, data, [batch, c, h, w]) = blocks(n)?;
    if h % b != 0 || w % b != 0 {
        return Err("its blocksize must divide height and width".into());
    }
    let deep = c.checked_mul(b).and_then(|c| c.checked_mul(b)).ok_or("its blocksize is too large")?;
    moved(n, data, &[batch, c, h / b, b, w / b, b], &[0, 3, 5, 1, 2, 4], &[batch, deep, h / b, w / b])
}

/// Keeps the triangle above or below a diagonal.
pub(super) fn trilu(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let shape = n.shape(data)?;
    let &[.., rows, columns] = shape.as_slice() else { return Err("its data must have 2 or more dimensions".into()) };
    let k = if n.has_input(1) { n.number(1)? as i64 } else { 0 };
    let upper = n.int("upper").unwrap_or(1) != 0;
    let keep = |i: usize| {
        let distance = (i % columns) as i64 - (i / columns) as i64;
        if upper { distance >= k } else { distance <= k }
    };
    let mask = n.table("mask", &[rows, columns], keep)?;
    let zero = n.scalar("zero", 0.0);
    let zero = n.cast("zero", zero, n.ty(data).dtype)?;
    let v = n.node("", Select {}, &[mask, data, zero])?;
    n.output(v)
}
