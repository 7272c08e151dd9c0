//! Products, logarithms of sums, running sums, the greatest elements, and indices as vectors.

use super::SemanticBuilder;
use super::movement::{from_end, part};
use crate::frontend::reason::Reason;
use crate::graph::op::{
    ArgReduce, BinaryKind, Concat, Expand, Gather, GatherElements, ReduceKind, Select, Slice, UnaryKind,
};
use crate::graph::{DType, Tensor, ValueId};

/// The shape with reduced dimensions as 1, or without them.
fn reduced(shape: &[usize], axes: &[usize], keep: bool) -> Vec<usize> {
    let kept = (0..shape.len()).filter(|i| keep || !axes.contains(i));
    kept.map(|i| if axes.contains(&i) { 1 } else { shape[i] }).collect()
}

/// The product over dimensions, slice by slice: files use it for sizes, which are known.
pub fn product(n: &mut SemanticBuilder, data: ValueId, axes: &[usize], keep: bool) -> Result<ValueId, Reason> {
    let shape = n.shape(data)?;
    let mut v = data;
    for &axis in axes {
        let size = n.shape(v)?[axis];
        if size == 0 || size > 64 {
            return Err(format!("a product of {size} elements is not supported; use 1 to 64").into());
        }
        let mut all = part(n, "part", v, axis, 0, 1)?;
        for i in 1..size {
            let next = part(n, "part", v, axis, i, 1)?;
            all = n.binary("product", BinaryKind::Mul, all, next)?;
        }
        v = all;
    }
    n.reshape("", v, &reduced(&shape, axes, keep))
}

/// `max + log(sum(exp(x - max)))`, with 0 for a maximum that is infinite, because infinity cannot be subtracted.
pub fn log_sum_exp(n: &mut SemanticBuilder, data: ValueId, axes: &[usize], keep: bool) -> Result<ValueId, Reason> {
    let most = n.reduce("max", ReduceKind::Max, axes, true, data)?;
    let size = n.unary("size", UnaryKind::Abs, most)?;
    let (infinity, zero) = (n.scalar("infinity", f32::INFINITY), n.scalar("zero", 0.0));
    let infinite = n.binary("infinite", BinaryKind::Equal, size, infinity)?;
    let most = n.node("finite", Select {}, &[infinite, zero, most])?;
    let less = n.binary("sub", BinaryKind::Sub, data, most)?;
    let exp = n.unary("exp", UnaryKind::Exp, less)?;
    let sum = n.reduce("sum", ReduceKind::Sum, axes, true, exp)?;
    let log = n.unary("log", UnaryKind::Log, sum)?;
    let v = n.add("add", log, most)?;
    let shape = n.shape(v)?;
    n.reshape("", v, &reduced(&shape, axes, keep))
}

/// `x - max - log(sum(exp(x - max)))` along a dimension.
pub fn log_softmax(n: &mut SemanticBuilder, data: ValueId, axis: usize) -> Result<ValueId, Reason> {
    let most = n.reduce("max", ReduceKind::Max, &[axis], true, data)?;
    let less = n.binary("sub", BinaryKind::Sub, data, most)?;
    let exp = n.unary("exp", UnaryKind::Exp, less)?;
    let sum = n.reduce("sum", ReduceKind::Sum, &[axis], true, exp)?;
    let log = n.unary("log", UnaryKind::Log, sum)?;
    n.binary("", BinaryKind::Sub, less, log)
}

/// What elements are joined to, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cumulative {
    Sum,
    Product,
}

/// The sum or the product of the elements up to each one; without it if `exclusive`, of those from it on if `reverse`.
/// Each step joins twice as many elements, so a dimension needs as many steps as its size has bits.
pub fn cumulative(
    n: &mut SemanticBuilder,
    data: ValueId,
    axis: usize,
    to: Cumulative,
    (exclusive, reverse): (bool, bool),
) -> Result<ValueId, Reason> {
    let size = n.shape(data)?[axis];
    let neutral = if to == Cumulative::Sum { 0.0 } else { 1.0 };
    let mut v = if exclusive && size > 0 { delayed(n, data, axis, 1, (reverse, neutral))? } else { data };
    let mut by = 1;
    while by < size {
        let before = delayed(n, v, axis, by, (reverse, neutral))?;
        v = match to {
            Cumulative::Sum => n.add("sums", before, v)?,
            Cumulative::Product => n.binary("products", BinaryKind::Mul, before, v)?,
        };
        by *= 2;
    }
    Ok(v)
}

/// The elements moved by `by` positions forward, or back, with a number filled in.
fn delayed(
    n: &mut SemanticBuilder,
    v: ValueId,
    axis: usize,
    by: usize,
    (reverse, fill): (bool, f32),
) -> Result<ValueId, Reason> {
    let dtype = n.ty(v).dtype;
    let mut sizes = n.shape(v)?;
    let (mut starts, steps) = (vec![0; sizes.len()], vec![1; sizes.len()]);
    let mut shape = sizes.clone();
    shape[axis] = by;
    sizes[axis] -= by;
    starts[axis] = if reverse { by } else { 0 };
    let fill = n.scalar("zero", fill);
    let fill = n.cast("zero", fill, dtype)?;
    let filled = n.node("zeros", Expand { shape }, &[fill])?;
    let rest = n.node("rest", Slice { starts, sizes, steps }, &[v])?;
    let parts = if reverse { [rest, filled] } else { [filled, rest] };
    n.node("delayed", Concat { axis }, &parts)
}

/// The `k` greatest or least elements along a dimension, in order, and their indices.
///
/// Finds each of the `k` results by the position of the extreme, which is then excluded; for small `k`.
///
/// A position has rank 0 if it is taken, 2 if it holds the extreme of the remaining ones, else 1, so that the first
/// position with the highest rank is a new one whatever the elements are. NaN is greater than every number: it is
/// compared as infinity and has rank 3 among the greatest; among the least, numbers have rank 3.
pub fn top_k(
    n: &mut SemanticBuilder,
    data: ValueId,
    axis: usize,
    k: i64,
    greatest: bool,
) -> Result<[ValueId; 2], Reason> {
    let shape = n.shape(data)?;
    let size = shape[axis];
    let k = usize::try_from(k).ok().filter(|&k| k <= size && k > 0);
    let k = k.ok_or_else(|| Reason(format!("its k must be from 1 to {size}")))?;
    if k > 64 {
        return Err(format!("its k of {k} is not supported; the maximum is 64").into());
    }
    let mut places = vec![1; shape.len()];
    places[axis] = size;
    let places = n.table("places", &places, |i| i as i64)?;
    let worst = n.scalar("worst", if greatest { f32::NEG_INFINITY } else { f32::INFINITY });
    // The cast saturates at the limit of the type.
    let dtype = n.ty(data).dtype;
    let worst = n.cast("worst", worst, dtype)?;
    let first = |greatest| ArgReduce { axis, keep_dims: true, greatest, last: false, dtype: DType::I64 };
    let kind = if greatest { ReduceKind::Max } else { ReduceKind::Min };
    let [zero, one, two, three] = [0, 1, 2, 3].map(|rank| n.made("rank", Tensor::scalar(rank)));
    // The values to compare, and the rank of their extreme.
    let (order, extreme_rank) = if n.ty(data).dtype.is_float() {
        let number = n.binary("number", BinaryKind::Equal, data, data)?;
        let infinity = n.scalar("infinity", f32::INFINITY);
        let order = n.node("order", Select {}, &[number, data, infinity])?;
        let ranks = if greatest { [number, two, three] } else { [number, three, two] };
        (order, n.node("extreme_rank", Select {}, &ranks)?)
    } else {
        (data, two)
    };
    let mut indices: Vec<ValueId> = Vec::new();
    let mut taken: Option<ValueId> = None;
    for i in 0..k {
        if i == 0 && (greatest || order == data) {
            indices.push(n.node("index0", first(greatest), &[data])?);
            continue;
        }
        if let Some(&last) = indices.last() {
            let last = n.binary("last", BinaryKind::Equal, places, last)?;
            taken = Some(match taken {
                Some(taken) => n.binary("taken", BinaryKind::Or, taken, last)?,
                None => last,
            });
        }
        let rest = match taken {
            Some(taken) => n.node("rest", Select {}, &[taken, worst, order])?,
            None => order,
        };
        let extreme = n.reduce("extreme", kind, &[axis], true, rest)?;
        let found = n.binary("found", BinaryKind::Equal, rest, extreme)?;
        let mut rank = n.node("left", Select {}, &[found, extreme_rank, one])?;
        if let Some(taken) = taken {
            rank = n.node("rank", Select {}, &[taken, zero, rank])?;
        }
        indices.push(n.node(&format!("index{i}"), first(true), &[rank])?);
    }
    let indices = match indices.as_slice() {
        [one] => *one,
        _ => n.node("indices", Concat { axis }, &indices)?,
    };
    let values = n.node("", GatherElements { axis }, &[data, indices])?;
    Ok([values, indices])
}

/// For each index, a vector of `depth` elements along a new dimension: the second of two values at the index, the first
/// everywhere else. Indices below 0 count from the end if `wraps`; those outside are nowhere.
pub fn one_hot(
    n: &mut SemanticBuilder,
    indices: ValueId,
    depth: i64,
    values: ValueId,
    axis: i64,
    wraps: bool,
) -> Result<ValueId, Reason> {
    let depth = usize::try_from(depth)
        .ok()
        .filter(|&d| d > 0 && d < 1 << 20)
        .ok_or("its depth must be positive and below 2^20")?;
    let mut shape = n.shape(indices)?;
    let axis = n.axis(axis, shape.len() + 1)?;
    let indices = n.cast("indices", indices, DType::I64)?;
    shape.insert(axis, 1);
    let indices = n.reshape("column", indices, &shape)?;
    // Indices outside -depth..depth match no position.
    let indices = if wraps { from_end(n, indices, depth as i64)? } else { indices };
    let mut places = vec![1; shape.len()];
    places[axis] = depth;
    let places = n.table("places", &places, |i| i as i64)?;
    let hot = n.binary("hot", BinaryKind::Equal, indices, places)?;
    let at = |n: &mut SemanticBuilder, i: i64| {
        let index = n.made("which", Tensor::scalar(i));
        n.node("value", Gather { axis: 0 }, &[values, index])
    };
    let (off, on) = (at(n, 0)?, at(n, 1)?);
    n.node("", Select {}, &[hot, on, off])
}

/// 1 at the first greatest element along a dimension, else 0.
pub fn hardmax(n: &mut SemanticBuilder, data: ValueId, axis: usize) -> Result<ValueId, Reason> {
    let shape = n.shape(data)?;
    let first = ArgReduce { axis, keep_dims: true, greatest: true, last: false, dtype: DType::I64 };
    let first = n.node("first", first, &[data])?;
    let mut places = vec![1; shape.len()];
    places[axis] = shape[axis];
    let places = n.table("places", &places, |i| i as i64)?;
    let here = n.binary("here", BinaryKind::Equal, places, first)?;
    let dtype = n.ty(data).dtype;
    n.cast("", here, dtype)
}
