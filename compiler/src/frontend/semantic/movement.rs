//! Moves of elements: parts, repetitions, blocks, and elements that indices choose.

use super::SemanticBuilder;
use crate::frontend::reason::Reason;
use crate::graph::op::{self, BinaryKind, Concat, Expand, Gather, Layout, Select, Slice, Transpose};
use crate::graph::{DType, Tensor, ValueId, strides_of};

/// The data as a matrix: the dimensions before the axis by the others.
pub fn flattened(n: &mut SemanticBuilder, data: ValueId, axis: usize) -> Result<ValueId, Reason> {
    let shape = n.shape(data)?;
    let size = |s: &[usize]| s.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    let (Some(rows), Some(columns)) = (size(&shape[..axis]), size(&shape[axis..])) else {
        return Err("its data are too large".into());
    };
    n.reshape("flatten", data, &[rows, columns])
}

/// Concatenates tensors along a dimension; one tensor stays as it is.
pub fn beside(n: &mut SemanticBuilder, suffix: &str, axis: usize, parts: &[ValueId]) -> Result<ValueId, Reason> {
    match parts {
        [one] => Ok(*one),
        _ => n.node(suffix, Concat { axis }, parts),
    }
}

/// The shape that tensors have together when sizes of 1 are repeated.
pub fn broadcast_shape(n: &SemanticBuilder, tensors: impl IntoIterator<Item = ValueId>) -> Result<Vec<usize>, Reason> {
    let mut common: Vec<usize> = Vec::new();
    for v in tensors {
        let shape = n.shape(v)?;
        while common.len() < shape.len() {
            common.insert(0, 1);
        }
        let before = common.len() - shape.len();
        for (i, &d) in shape.iter().enumerate().filter(|(_, d)| **d != 1) {
            common[before + i] = d;
        }
    }
    Ok(common)
}

/// Part of a dimension: `size` elements from `start` on.
pub fn part(
    n: &mut SemanticBuilder,
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

/// Which elements of a dimension a slice takes. Places below 0 count from the end, as in NumPy, and places outside are
/// moved to the nearest end.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    /// The first element; `None` is the first one in the direction of the step.
    pub start: Option<i64>,
    /// The element before which it ends; `None` is behind the last one.
    pub end: Option<i64>,
    /// Not 0; below 0 it goes backwards.
    pub step: i64,
}

impl Range {
    /// All elements.
    pub const ALL: Range = Range { start: None, end: None, step: 1 };

    /// The first element of `size`, and how many there are.
    fn of(self, size: usize) -> Result<(usize, usize), Reason> {
        let Range { start, end, step } = self;
        if step == 0 {
            return Err("its steps must not be 0".into());
        }
        let all = i64::try_from(size).map_err(|_| "its data are too large")?;
        let (least, most) = if step > 0 { (0, all) } else { (-1, all - 1) };
        let place = |v: i64| (if v < 0 { v.saturating_add(all) } else { v }).clamp(least, most);
        let (first, last) = if step > 0 { (least, most) } else { (most, least) };
        let (first, last) = (start.map_or(first, place), end.map_or(last, place));
        let count = steps_between(first, last, step);
        Ok((if count == 0 { 0 } else { usize::try_from(first).unwrap_or(0) }, usize::try_from(count).unwrap_or(0)))
    }
}

/// Number of elements from `first` to before `last`, `step` apart; both are inside the data or next to it.
fn steps_between(first: i64, last: i64, step: i64) -> i64 {
    let span = if step > 0 { last - first } else { first - last };
    if span <= 0 { 0 } else { (span - 1) / step.saturating_abs() + 1 }
}

/// The elements that the ranges take, one range for each dimension; the data themselves if these are all.
pub fn sliced(n: &mut SemanticBuilder, suffix: &str, data: ValueId, ranges: &[Range]) -> Result<ValueId, Reason> {
    let shape = n.shape(data)?;
    let (mut starts, mut sizes) = (Vec::with_capacity(shape.len()), Vec::with_capacity(shape.len()));
    for (range, &size) in ranges.iter().zip(&shape) {
        let (start, count) = range.of(size)?;
        starts.push(start);
        sizes.push(count);
    }
    if sizes.contains(&0) {
        let t = Tensor::from_bytes(n.ty(data).dtype, &sizes, &[]).ok_or("its result is too large")?;
        return n.constant(suffix, t);
    }
    let steps: Vec<i64> = ranges.iter().map(|range| range.step).collect();
    let whole = sizes == shape && steps.iter().all(|&s| s == 1);
    if whole { Ok(data) } else { n.node(suffix, Slice { starts, sizes, steps }, &[data]) }
}

/// Fails if constant indices are outside a dimension of the data; indices computed at run time are clamped to it.
pub fn check_indices(n: &SemanticBuilder, indices: ValueId, data: ValueId, axis: usize) -> Result<(), Reason> {
    let (Some(known), Some(size)) = (n.constant_of(indices), n.ty(data).dims[axis].known()) else {
        return Ok(());
    };
    Ok(op::check_indices(known, axis, size)?)
}

/// 64-bit indices, with negative ones counted from the end of `size` elements.
pub fn from_end(n: &mut SemanticBuilder, indices: ValueId, size: i64) -> Result<ValueId, Reason> {
    let (zero, size) = (n.made("zero", Tensor::scalar(0i64)), n.made("size", Tensor::scalar(size)));
    let negative = n.binary("negative", BinaryKind::Less, indices, zero)?;
    let wrapped = n.add("wrapped", indices, size)?;
    n.node("from_end", Select {}, &[negative, wrapped, indices])
}

/// Splits index tuples, `[…, width]`, into columns with this shape, one per indexed dimension.
pub fn columns(n: &mut SemanticBuilder, indices: ValueId, shape: &[usize]) -> Result<Vec<ValueId>, Reason> {
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
pub fn flat_index(
    n: &mut SemanticBuilder,
    columns: &[ValueId],
    (data, first): (ValueId, usize),
    outside: Option<usize>,
) -> Result<ValueId, Reason> {
    let sizes = &n.shape(data)?[..first + columns.len()];
    let steps = strides_of(sizes);
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
fn within(n: &mut SemanticBuilder, index: ValueId, size: usize, outside: usize) -> Result<ValueId, Reason> {
    let [zero, size, outside] = [0, size as i64, outside as i64].map(|x| n.made("bound", Tensor::scalar(x)));
    let low = n.binary("low", BinaryKind::LessEqual, zero, index)?;
    let high = n.binary("high", BinaryKind::Less, index, size)?;
    let both = n.binary("within", BinaryKind::And, low, high)?;
    n.node("held", Select {}, &[both, index, outside])
}

/// The slices that index tuples, `[…, width]`, choose behind `batch` dimensions, which data and indices share.
pub fn gather_nd(n: &mut SemanticBuilder, data: ValueId, indices: ValueId, batch: usize) -> Result<ValueId, Reason> {
    let (shape, rows) = (n.shape(data)?, n.shape(indices)?);
    let Some((&width, outer)) = rows.split_last() else { return Err("its indices must have dimensions".into()) };
    if batch > outer.len() || batch + width > shape.len() || shape[..batch] != rows[..batch] {
        return Err(format!("its indices {rows:?} do not match data {shape:?} with batch_dims {batch}").into());
    }
    let columns = columns(n, indices, outer)?;
    let mut flat = flat_index(n, &columns, (data, batch), None)?;
    // All indexed dimensions, including the batch, become one.
    let indexed = &shape[..batch + width];
    for (b, &stride) in strides_of(indexed).iter().enumerate().take(batch) {
        let mut shape = vec![1; outer.len()];
        shape[b] = rows[b];
        let base = n.table("batch", &shape, |i| (i * stride) as i64)?;
        flat = n.add("sum", flat, base)?;
    }
    let mut joined = vec![indexed.iter().product()];
    joined.extend_from_slice(&shape[batch + width..]);
    let rows = n.reshape("data", data, &joined)?;
    n.node("", Gather { axis: 0 }, &[rows, flat])
}

/// The data with sizes of 1 repeated, so that they broadcast with a tensor of this shape.
pub fn expand(n: &mut SemanticBuilder, data: ValueId, to: &[i64]) -> Result<ValueId, Reason> {
    let from = n.shape(data)?;
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
    if shape == from { Ok(data) } else { n.node("", Expand { shape }, &[data]) }
}

/// The same for sizes that are known.
pub fn expand_to(n: &mut SemanticBuilder, data: ValueId, to: &[usize]) -> Result<ValueId, Reason> {
    let to: Vec<i64> = to.iter().map(|&d| i64::try_from(d).unwrap_or(i64::MAX)).collect();
    expand(n, data, &to)
}

/// The data several times in each dimension.
pub fn tile(n: &mut SemanticBuilder, data: ValueId, repeats: &[i64]) -> Result<ValueId, Reason> {
    let shape = n.shape(data)?;
    let repeats = repeats.iter().map(|&r| usize::try_from(r)).collect::<Result<Vec<_>, _>>();
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
    n.reshape("", v, &out)
}

/// How a pixel's channels are divided among the pixels of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockOrder {
    /// The block's pixels are outside: depth, column, row.
    Dcr,
    /// The channels are outside: column, row, depth.
    Crd,
}

/// Sizes of images and their layout: `[images, channels, height, width]`.
fn image(n: &SemanticBuilder, data: ValueId, layout: Layout) -> Result<[usize; 4], Reason> {
    let shape: [usize; 4] = n.shape(data)?.try_into().map_err(|_| "its data must have 4 dimensions")?;
    Ok(match layout {
        Layout::Nchw => shape,
        Layout::Nhwc => [shape[0], shape[3], shape[1], shape[2]],
    })
}

fn moved(
    n: &mut SemanticBuilder,
    data: ValueId,
    apart: &[usize],
    perm: &[usize],
    out: &[usize],
) -> Result<ValueId, Reason> {
    let v = n.reshape("apart", data, apart)?;
    let v = n.node("transpose", Transpose { perm: perm.to_vec() }, &[v])?;
    n.reshape("", v, out)
}

/// Each pixel's channels become a block of `b` by `b` pixels.
pub fn depth_to_space(
    n: &mut SemanticBuilder,
    data: ValueId,
    b: usize,
    order: BlockOrder,
    layout: Layout,
) -> Result<ValueId, Reason> {
    let [images, c, h, w] = image(n, data, layout)?;
    let area = b.checked_mul(b).filter(|&a| a > 0 && c % a == 0);
    let area = area.ok_or_else(|| format!("its block of {b} by {b} must divide its {c} channels"))?;
    let depth = c / area;
    let (high, wide) = h.checked_mul(b).zip(w.checked_mul(b)).ok_or("its block is too large")?;
    match (layout, order) {
        (Layout::Nchw, BlockOrder::Dcr) => {
            moved(n, data, &[images, b, b, depth, h, w], &[0, 3, 4, 1, 5, 2], &[images, depth, high, wide])
        }
        (Layout::Nchw, BlockOrder::Crd) => {
            moved(n, data, &[images, depth, b, b, h, w], &[0, 1, 4, 2, 5, 3], &[images, depth, high, wide])
        }
        (Layout::Nhwc, BlockOrder::Dcr) => {
            moved(n, data, &[images, h, w, b, b, depth], &[0, 1, 3, 2, 4, 5], &[images, high, wide, depth])
        }
        (Layout::Nhwc, BlockOrder::Crd) => {
            moved(n, data, &[images, h, w, depth, b, b], &[0, 1, 4, 2, 5, 3], &[images, high, wide, depth])
        }
    }
}

/// Each block of `b` by `b` pixels becomes the channels of one, the block's pixels outside.
pub fn space_to_depth(n: &mut SemanticBuilder, data: ValueId, b: usize, layout: Layout) -> Result<ValueId, Reason> {
    let [images, c, h, w] = image(n, data, layout)?;
    if b == 0 || h % b != 0 || w % b != 0 {
        return Err(format!("its block of {b} by {b} must divide its height {h} and width {w}").into());
    }
    let deep = c.checked_mul(b).and_then(|c| c.checked_mul(b)).ok_or("its block is too large")?;
    let (high, wide) = (h / b, w / b);
    match layout {
        Layout::Nchw => {
            moved(n, data, &[images, c, high, b, wide, b], &[0, 3, 5, 1, 2, 4], &[images, deep, high, wide])
        }
        Layout::Nhwc => {
            moved(n, data, &[images, high, b, wide, b, c], &[0, 1, 3, 2, 4, 5], &[images, high, wide, deep])
        }
    }
}

/// Keeps the triangle above or below a diagonal, `k` above the main one.
pub fn triangle(n: &mut SemanticBuilder, data: ValueId, k: i64, upper: bool) -> Result<ValueId, Reason> {
    let shape = n.shape(data)?;
    let &[.., rows, columns] = shape.as_slice() else { return Err("its data must have 2 or more dimensions".into()) };
    let keep = |i: usize| {
        let distance = (i % columns) as i64 - (i / columns) as i64;
        if upper { distance >= k } else { distance <= k }
    };
    let mask = n.table("mask", &[rows, columns], keep)?;
    let zero = n.scalar("zero", 0.0);
    let dtype = n.ty(data).dtype;
    let zero = n.cast("zero", zero, dtype)?;
    n.node("", Select {}, &[mask, data, zero])
}

/// The data with the elements of these dimensions in reverse order.
pub fn reversed(n: &mut SemanticBuilder, data: ValueId, axes: &[usize]) -> Result<ValueId, Reason> {
    let mut ranges = vec![Range::ALL; n.ty(data).rank()];
    axes.iter().for_each(|&axis| ranges[axis].step = -1);
    sliced(n, "", data, &ranges)
}

/// Sizes of the dimensions behind the batch that are divided into blocks, and of those behind them.
fn spatial(shape: &[usize], blocks: usize) -> Result<(usize, &[usize], &[usize]), Reason> {
    let (&batch, rest) = shape.split_first().ok_or("its data must have dimensions")?;
    if rest.len() < blocks {
        return Err(
            format!("its blocks have {blocks} dimensions, but its data have {} behind the batch", rest.len()).into()
        );
    }
    let (sizes, behind) = rest.split_at(blocks);
    Ok((batch, sizes, behind))
}

/// Divides the dimensions behind the batch into blocks; an element's place in its block goes into the batch, in front of
/// the data's own: `[b1 * … * batch, s1 / b1, …, rest]`.
pub fn space_to_batch(n: &mut SemanticBuilder, data: ValueId, blocks: &[usize]) -> Result<ValueId, Reason> {
    let shape = n.shape(data)?;
    let (batch, sizes, behind) = spatial(&shape, blocks.len())?;
    if let Some((size, block)) = sizes.iter().zip(blocks).find(|&(size, &block)| block == 0 || size % block != 0) {
        return Err(format!("its blocks of {block} must divide the {size} elements with padding").into());
    }
    let m = blocks.len();
    let (mut apart, mut out) = (vec![batch], vec![batch]);
    for (&size, &block) in sizes.iter().zip(blocks) {
        apart.extend([size / block, block]);
        out[0] = out[0].checked_mul(block).ok_or("its blocks are too large")?;
        out.push(size / block);
    }
    apart.extend(behind);
    out.extend(behind);
    let inside = (0..m).map(|d| 2 + 2 * d);
    let perm: Vec<usize> = inside.chain([0]).chain((0..m).map(|d| 1 + 2 * d)).chain(1 + 2 * m..apart.len()).collect();
    moved(n, data, &apart, &perm, &out)
}

/// The inverse of [`space_to_batch`].
pub fn batch_to_space(n: &mut SemanticBuilder, data: ValueId, blocks: &[usize]) -> Result<ValueId, Reason> {
    let shape = n.shape(data)?;
    let (batch, sizes, behind) = spatial(&shape, blocks.len())?;
    let all = blocks.iter().try_fold(1usize, |all, &block| all.checked_mul(block)).filter(|&all| all > 0);
    let all = all
        .filter(|all| batch % all == 0)
        .ok_or_else(|| format!("its blocks {blocks:?} must divide a batch of {batch}"))?;
    let m = blocks.len();
    let mut apart = blocks.to_vec();
    apart.push(batch / all);
    apart.extend(sizes);
    apart.extend(behind);
    let (mut perm, mut out) = (vec![m], vec![batch / all]);
    for d in 0..m {
        perm.extend([m + 1 + d, d]);
        out.push(sizes[d].checked_mul(blocks[d]).ok_or("its blocks are too large")?);
    }
    perm.extend(2 * m + 1..apart.len());
    out.extend(behind);
    moved(n, data, &apart, &perm, &out)
}

/// Indices along a dimension as large as the data, from indices that broadcast to them.
fn chosen(n: &mut SemanticBuilder, data: ValueId, index: ValueId, axis: usize, rows: usize) -> Result<ValueId, Reason> {
    let mut shape = n.shape(data)?;
    shape[axis] = rows;
    let index = n.node("index/each", Expand { shape }, &[index])?;
    n.node("", op::GatherElements { axis }, &[data, index])
}

/// Numbers along one dimension of `rank`.
fn along(n: &mut SemanticBuilder, v: ValueId, axis: usize, rank: usize) -> Result<ValueId, Reason> {
    let mut shape = vec![1; rank];
    shape[axis] = n.ty(v).element_count().unwrap_or(0);
    n.reshape("along", v, &shape)
}

/// The first elements of each sequence in reverse order; `lengths` has one number for each place of `batch`.
pub fn reversed_sequences(
    n: &mut SemanticBuilder,
    data: ValueId,
    lengths: ValueId,
    batch: usize,
    time: usize,
) -> Result<ValueId, Reason> {
    let shape = n.shape(data)?;
    let lengths = n.cast("lengths", lengths, DType::I64)?;
    let lengths = along(n, lengths, batch, shape.len())?;
    let places = n.table("places", &[shape[time]], |i| i as i64)?;
    let places = along(n, places, time, shape.len())?;
    let one = n.made("one", Tensor::scalar(1i64));
    let last = n.binary("last", BinaryKind::Sub, lengths, one)?;
    let back = n.binary("back", BinaryKind::Sub, last, places)?;
    let inside = n.binary("inside", BinaryKind::Less, places, lengths)?;
    let index = n.node("index", Select {}, &[inside, back, places])?;
    chosen(n, data, index, time, shape[time])
}

/// A cache with rows written along a dimension, from a first place on that each sequence of the first dimension has.
/// Places beyond the end continue at the beginning if `circular`.
pub fn written(
    n: &mut SemanticBuilder,
    past: ValueId,
    update: ValueId,
    first: Option<ValueId>,
    axis: usize,
    circular: bool,
) -> Result<ValueId, Reason> {
    let (shape, rows) = (n.shape(past)?, n.shape(update)?);
    let suits = rows.len() == shape.len() && axis > 0 && rows[axis] > 0 && rows[axis] <= shape[axis];
    if !suits || (0..shape.len()).any(|i| i != axis && rows[i] != shape[i]) {
        return Err(format!("its update {} does not suit the cache {}", n.ty(update), n.ty(past)).into());
    }
    let (size, count) = (shape[axis] as i64, rows[axis]);
    let places = n.table("places", &[shape[axis]], |i| i as i64)?;
    let mut from = along(n, places, axis, shape.len())?;
    if let Some(first) = first {
        let first = n.cast("first", first, DType::I64)?;
        let first = along(n, first, 0, shape.len())?;
        from = n.binary("from", BinaryKind::Sub, from, first)?;
    }
    if circular {
        let size = n.made("size", Tensor::scalar(size));
        from = n.binary("circular", BinaryKind::Mod, from, size)?;
    }
    let [zero, end] = [0, count as i64].map(|x| n.made("end", Tensor::scalar(x)));
    let (low, high) =
        (n.binary("low", BinaryKind::LessEqual, zero, from)?, n.binary("high", BinaryKind::Less, from, end)?);
    let inside = n.binary("inside", BinaryKind::And, low, high)?;
    let index = n.node("index", Select {}, &[inside, from, zero])?;
    let new = chosen(n, update, index, axis, shape[axis])?;
    n.node("written", Select {}, &[inside, new, past])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_every_width_are_counted() {
        for (first, last, step, want) in [(0, 5, 2, 3), (4, -1, -2, 3), (0, 4, 2, 2), (3, 3, 1, 0), (3, 0, 1, 0)] {
            assert_eq!(steps_between(first, last, step), want);
        }
        for step in [i64::MAX, i64::MAX - 1, i64::MIN, i64::MIN + 1] {
            let (first, last) = if step > 0 { (0, 7) } else { (6, -1) };
            assert_eq!(steps_between(first, last, step), 1);
        }
    }

    #[test]
    fn ranges_end_where_the_data_do() {
        let of = |start, end, step| Range { start, end, step }.of(5).map_err(|reason| reason.0);
        assert_eq!(of(None, None, 1), Ok((0, 5)));
        assert_eq!(of(None, None, -2), Ok((4, 3)));
        assert_eq!(of(Some(-2), None, 1), Ok((3, 2)));
        assert_eq!(of(Some(1), Some(i64::MAX), 3), Ok((1, 2)));
        assert_eq!(of(Some(i64::MAX), Some(i64::MIN), -1), Ok((4, 5)));
        assert_eq!(of(Some(9), None, 1), Ok((0, 0)));
        assert!(of(None, None, 0).is_err());
    }
}
