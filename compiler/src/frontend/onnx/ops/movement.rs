//! Operators that move elements: concatenation, parts, gathered slices, repetition and blocks.

use super::NCHW;
use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::movement::{self, BlockOrder, Range, check_indices, part};
use crate::frontend::semantic::pad;
use crate::graph::ValueId;
use crate::graph::op::{Concat, Gather, GatherElements};

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
    let v = concatenated(n, parts, axis)?;
    n.output_like(v, first)
}

/// Tensors joined along an axis that the first has.
pub(super) fn concatenated(n: &mut NodeContext, parts: Vec<ValueId>, axis: usize) -> Result<ValueId, Reason> {
    // Many writers use one-dimensional tensors without elements for nothing.
    let parts: Vec<ValueId> = match parts.len() {
        1 => parts,
        _ => {
            let some: Vec<_> = parts.iter().copied().filter(|&v| n.ty(v).element_count() != Some(0)).collect();
            if some.is_empty() { parts } else { some }
        }
    };
    match parts.as_slice() {
        [one] => Ok(*one),
        _ => n.node("", Concat { axis }, &parts),
    }
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
        Some(list) => list.into_iter().map(i128::from).collect(),
        None => {
            let count = match n.int("num_outputs") {
                Some(k) => usize::try_from(k).ok().filter(|&k| k > 0).ok_or("its `num_outputs` must be positive")?,
                None => outputs.max(1),
            };
            let each = size.div_ceil(count);
            (0..count).map(|i| size.saturating_sub(i.saturating_mul(each)).min(each) as i128).collect::<Vec<_>>()
        }
    };
    let parts = parts(n, data, axis, &sizes, outputs)?;
    n.outputs(&parts)
}

/// The first parts, `count` of them, of a tensor that is split into parts of these sizes along an axis.
pub(super) fn parts(
    n: &mut NodeContext,
    data: ValueId,
    axis: usize,
    sizes: &[i128],
    count: usize,
) -> Result<Vec<ValueId>, Reason> {
    let size = n.shape(data)?[axis];
    let negative = |_| "its `split` must not be negative";
    let sizes = sizes.iter().map(|&s| usize::try_from(s)).collect::<Result<Vec<_>, _>>().map_err(negative)?;
    if sizes.len() < count || sizes.iter().try_fold(0usize, |n, &s| n.checked_add(s)) != Some(size) {
        return Err(format!("its `split` {sizes:?} does not match {count} outputs of {size} elements").into());
    }
    let mut start = 0;
    let mut parts = Vec::new();
    for (i, &s) in sizes.iter().enumerate().take(count) {
        let v = part(n, &format!("{i}"), data, axis, start, s)?;
        n.mark_like(v, data);
        parts.push(v);
        start += s;
    }
    Ok(parts)
}

pub(super) fn slice(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let rank = n.shape(data)?.len();
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
    let mut ranges = vec![Range::ALL; rank];
    for (i, &a) in axes.iter().enumerate() {
        ranges[a] = Range { start: Some(starts[i]), end: Some(ends[i]), step: steps[i] };
    }
    let v = movement::sliced(n, "", data, &ranges)?;
    n.output_like(v, data)
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

pub(super) fn gather_nd(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, indices) = (n.input(0)?, n.plain(1)?);
    let batch = usize::try_from(n.int("batch_dims").unwrap_or(0)).map_err(|_| "its batch_dims must not be negative")?;
    let v = movement::gather_nd(n, data, indices, batch)?;
    n.output_like(v, data)
}

pub(super) fn expand(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, to) = (n.input(0)?, n.integers(1)?);
    let v = movement::expand(n, data, &to)?;
    n.output_like(v, data)
}

pub(super) fn tile(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, repeats) = (n.input(0)?, n.integers(1)?);
    let v = movement::tile(n, data, &repeats)?;
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

fn block_size(n: &NodeContext) -> Result<usize, Reason> {
    let block = n.int("blocksize").and_then(|b| usize::try_from(b).ok()).filter(|&b| b > 0);
    block.ok_or_else(|| "its blocksize must be positive".into())
}

pub(super) fn depth_to_space(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, block) = (n.input(0)?, block_size(n)?);
    let order = match n.word("mode").as_deref() {
        None | Some("DCR") => BlockOrder::Dcr,
        Some("CRD") => BlockOrder::Crd,
        Some(other) => return Err(format!("unknown mode `{other}`; use DCR or CRD").into()),
    };
    let v = movement::depth_to_space(n, data, block, order, NCHW)?;
    n.output_like(v, data)
}

pub(super) fn space_to_depth(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, block) = (n.input(0)?, block_size(n)?);
    let v = movement::space_to_depth(n, data, block, NCHW)?;
    n.output_like(v, data)
}

pub(super) fn trilu(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let k = if n.has_input(1) { n.number(1)? as i64 } else { 0 };
    let upper = n.int("upper").unwrap_or(1) != 0;
    let v = movement::triangle(n, data, k, upper)?;
    n.output(v)
}

/// Cuts or fills the ends of dimensions alike; an odd element goes to the end.
pub(super) fn center_crop_pad(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let (shape, sizes) = (n.shape(data)?, n.integers(1)?);
    let axes = match n.ints("axes") {
        Some(list) => list.iter().map(|&axis| n.axis(axis, shape.len())).collect::<Result<Vec<_>, _>>()?,
        None => (0..shape.len()).collect(),
    };
    if axes.len() != sizes.len() {
        return Err(format!("its shape must have {} sizes, found {}", axes.len(), sizes.len()).into());
    }
    let mut ends = vec![(0, 0); shape.len()];
    for (axis, size) in axes.into_iter().zip(sizes) {
        let more = size - shape[axis] as i64;
        // A crop begins at half of what is cut, rounded down.
        let before = if more < 0 { -(-more / 2) } else { more / 2 };
        ends[axis] = (before, more - before);
    }
    pad::check(&ends)?;
    let zero = if n.unsigned(data) { -128.0 } else { 0.0 };
    let v = pad::constant(n, "", data, &ends, zero)?;
    n.output_like(v, data)
}

/// The first elements of each sequence in reverse order.
pub(super) fn reverse_sequence(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, lengths) = (n.input(0)?, n.plain(1)?);
    let shape = n.shape(data)?;
    let (batch, time) = (n.int("batch_axis").unwrap_or(1), n.int("time_axis").unwrap_or(0));
    let (batch, time) = (n.axis(batch, shape.len())?, n.axis(time, shape.len())?);
    if batch == time || n.shape(lengths)? != [shape[batch]] {
        return Err("its lengths must be one number for each sequence".into());
    }
    let v = movement::reversed_sequences(n, data, lengths, batch, time)?;
    n.output_like(v, data)
}

/// Writes rows into a cache from the place of each sequence on.
pub(super) fn tensor_scatter(n: &mut NodeContext) -> Result<(), Reason> {
    let (past, update) = (n.input(0)?, n.input(1)?);
    let rank = n.ty(past).rank();
    let axis = n.axis(n.int("axis").unwrap_or(-2), rank)?;
    let circular = match n.word("mode").as_deref() {
        None | Some("linear") => false,
        Some("circular") => true,
        Some(other) => return Err(format!("unknown mode `{other}`; use linear or circular").into()),
    };
    let first = n.optional(2)?;
    let v = movement::written(n, past, update, first, axis, circular)?;
    n.output_like(v, past)
}
