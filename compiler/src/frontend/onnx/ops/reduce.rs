//! Reductions, ArgMax and ArgMin, CumSum, TopK and OneHot.

use super::movement::from_end;
use crate::frontend::onnx::node::{NodeContext, Reason};
use crate::graph::op::{
    ArgReduce, BinaryKind, Concat, Expand, Gather, GatherElements, ReduceKind, Select, Slice, UnaryKind,
};
use crate::graph::{DType, Tensor, ValueId};

/// The dimensions to reduce and whether they are kept; `None` if nothing is reduced.
fn axes(n: &NodeContext, rank: usize, operand_since: i64) -> Result<(Option<Vec<usize>>, bool), Reason> {
    let keep = n.int("keepdims").unwrap_or(1) != 0;
    let noop = n.int("noop_with_empty_axes").unwrap_or(0) != 0;
    let given = if n.opset() >= operand_since {
        if n.has_input(1) { Some(n.integers(1)?) } else { None }
    } else {
        n.ints("axes").map(<[i64]>::to_vec)
    };
    match given.filter(|g| !g.is_empty()) {
        Some(list) => Ok((Some(n.axes(&list, rank)?), keep)),
        None if noop => Ok((None, keep)),
        None => Ok((Some((0..rank).collect()), keep)),
    }
}

/// A reduction, with a function of the data before it and a function of the result after it.
fn reduce(
    n: &mut NodeContext,
    kind: ReduceKind,
    operand_since: i64,
    before: impl Fn(&mut NodeContext, ValueId) -> Result<ValueId, Reason>,
    after: impl Fn(&mut NodeContext, ValueId) -> Result<ValueId, Reason>,
) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let (axes, keep) = axes(n, n.ty(data).rank(), operand_since)?;
    // Booleans have a minimum and a maximum as numbers do.
    let truth = n.ty(data).dtype == DType::Bool;
    let data = if truth { n.cast("number", data, DType::I32)? } else { data };
    let v = before(n, data)?;
    let v = match axes {
        Some(axes) if !axes.is_empty() => n.reduce("", kind, &axes, keep, v)?,
        _ => v,
    };
    let v = after(n, v)?;
    let v = if truth { n.cast("truth", v, DType::Bool)? } else { v };
    n.output(v)
}

fn same(_: &mut NodeContext, v: ValueId) -> Result<ValueId, Reason> {
    Ok(v)
}

fn square(n: &mut NodeContext, v: ValueId) -> Result<ValueId, Reason> {
    n.binary("square", BinaryKind::Mul, v, v)
}

fn log(n: &mut NodeContext, v: ValueId) -> Result<ValueId, Reason> {
    n.unary("log", UnaryKind::Log, v)
}

pub(super) fn sum(n: &mut NodeContext) -> Result<(), Reason> {
    reduce(n, ReduceKind::Sum, 13, same, same)
}

pub(super) fn mean(n: &mut NodeContext) -> Result<(), Reason> {
    reduce(n, ReduceKind::Mean, 18, same, same)
}

pub(super) fn max(n: &mut NodeContext) -> Result<(), Reason> {
    reduce(n, ReduceKind::Max, 18, same, same)
}

pub(super) fn min(n: &mut NodeContext) -> Result<(), Reason> {
    reduce(n, ReduceKind::Min, 18, same, same)
}

/// Computes a product slice by slice: files use it for sizes, which are known.
pub(super) fn product(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let shape = n.shape(data)?;
    let (axes, keep) = axes(n, shape.len(), 18)?;
    let Some(axes) = axes else { return n.output(data) };
    let mut v = data;
    for &axis in &axes {
        let size = n.shape(v)?[axis];
        if size == 0 || size > 64 {
            return Err(format!("a product of {size} elements is not supported; use 1 to 64").into());
        }
        let part = |n: &mut NodeContext, i: usize| {
            let mut sizes = n.shape(v)?;
            let (mut starts, steps) = (vec![0; sizes.len()], vec![1; sizes.len()]);
            (starts[axis], sizes[axis]) = (i, 1);
            n.node("part", Slice { starts, sizes, steps }, &[v])
        };
        let mut all = part(n, 0)?;
        for i in 1..size {
            let next = part(n, i)?;
            all = n.binary("product", BinaryKind::Mul, all, next)?;
        }
        v = all;
    }
    let out: Vec<usize> = (0..shape.len())
        .filter(|i| keep || !axes.contains(i))
        .map(|i| if axes.contains(&i) { 1 } else { shape[i] })
        .collect();
    let v = n.reshape("", v, &out)?;
    n.output(v)
}

pub(super) fn l1(n: &mut NodeContext) -> Result<(), Reason> {
    reduce(n, ReduceKind::Sum, 18, |n, v| n.unary("abs", UnaryKind::Abs, v), same)
}

pub(super) fn l2(n: &mut NodeContext) -> Result<(), Reason> {
    reduce(n, ReduceKind::Sum, 18, square, |n, v| n.unary("sqrt", UnaryKind::Sqrt, v))
}

pub(super) fn log_sum(n: &mut NodeContext) -> Result<(), Reason> {
    reduce(n, ReduceKind::Sum, 18, same, log)
}

pub(super) fn sum_square(n: &mut NodeContext) -> Result<(), Reason> {
    reduce(n, ReduceKind::Sum, 18, square, same)
}

/// `max + log(sum(exp(x - max)))`, with 0 for a maximum that is infinite, because infinity cannot be subtracted.
pub(super) fn log_sum_exp(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let (axes, keep) = axes(n, n.ty(data).rank(), 18)?;
    let Some(axes) = axes else { return n.output(data) };
    let most = n.reduce("max", ReduceKind::Max, &axes, true, data)?;
    let size = n.unary("size", UnaryKind::Abs, most)?;
    let (infinity, zero) = (n.scalar("infinity", f32::INFINITY), n.scalar("zero", 0.0));
    let infinite = n.binary("infinite", BinaryKind::Equal, size, infinity)?;
    let most = n.node("finite", Select {}, &[infinite, zero, most])?;
    let less = n.binary("sub", BinaryKind::Sub, data, most)?;
    let exp = n.unary("exp", UnaryKind::Exp, less)?;
    let sum = n.reduce("sum", ReduceKind::Sum, &axes, true, exp)?;
    let log = log(n, sum)?;
    let v = n.add("add", log, most)?;
    let shape = n.shape(v)?;
    let out: Vec<usize> = (0..shape.len()).filter(|i| keep || !axes.contains(i)).map(|i| shape[i]).collect();
    let v = n.reshape("", v, &out)?;
    n.output(v)
}

fn arg(n: &mut NodeContext, greatest: bool) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let axis = n.axis_attribute(0, n.ty(data).rank())?;
    let keep_dims = n.int("keepdims").unwrap_or(1) != 0;
    let last = n.int("select_last_index").unwrap_or(0) != 0;
    let v = n.node("", ArgReduce { axis, keep_dims, greatest, last, dtype: DType::I64 }, &[data])?;
    n.output(v)
}

pub(super) fn arg_max(n: &mut NodeContext) -> Result<(), Reason> {
    arg(n, true)
}

pub(super) fn arg_min(n: &mut NodeContext) -> Result<(), Reason> {
    arg(n, false)
}

/// Each step adds sums of twice as many elements, so a dimension needs as many steps as its size has bits.
pub(super) fn cum_sum(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let shape = n.shape(data)?;
    let axis = n.axis(n.number(1)? as i64, shape.len())?;
    let size = shape[axis];
    let (exclusive, reverse) = (n.int("exclusive").unwrap_or(0) != 0, n.int("reverse").unwrap_or(0) != 0);
    let mut v = if exclusive && size > 0 { delayed(n, data, axis, 1, reverse)? } else { data };
    let mut by = 1;
    while by < size {
        let before = delayed(n, v, axis, by, reverse)?;
        v = n.add("sums", before, v)?;
        by *= 2;
    }
    n.output(v)
}

/// The elements moved by `by` positions forward, or back, with zeros filled in.
fn delayed(n: &mut NodeContext, v: ValueId, axis: usize, by: usize, reverse: bool) -> Result<ValueId, Reason> {
    let dtype = n.ty(v).dtype;
    let mut sizes = n.shape(v)?;
    let (mut starts, steps) = (vec![0; sizes.len()], vec![1; sizes.len()]);
    let mut shape = sizes.clone();
    shape[axis] = by;
    sizes[axis] -= by;
    starts[axis] = if reverse { by } else { 0 };
    let zero = n.scalar("zero", 0.0);
    let zero = n.cast("zero", zero, dtype)?;
    let zeros = n.node("zeros", Expand { shape }, &[zero])?;
    let rest = n.node("rest", Slice { starts, sizes, steps }, &[v])?;
    let parts = if reverse { [rest, zeros] } else { [zeros, rest] };
    n.node("delayed", Concat { axis }, &parts)
}

/// Finds each of the `k` results by the position of the extreme, which is then excluded; for small `k`.
///
/// A position has rank 0 if it is taken, 2 if it holds the extreme of the remaining ones, else 1, so that the first
/// position with the highest rank is a new one whatever the elements are. NaN is greater than every number: it is
/// compared as infinity and has rank 3 among the greatest; among the least, numbers have rank 3.
pub(super) fn top_k(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let shape = n.shape(data)?;
    let axis = n.axis_attribute(-1, shape.len())?;
    let k = if n.opset() < 10 { n.int("k").unwrap_or(0) } else { n.number(1)? as i64 };
    let size = shape[axis];
    let k = usize::try_from(k).ok().filter(|&k| k <= size && k > 0);
    let k = k.ok_or_else(|| Reason(format!("its k must be from 1 to {size}")))?;
    if k > 64 {
        return Err(format!("its k of {k} is not supported; the maximum is 64").into());
    }
    let greatest = n.int("largest").unwrap_or(1) != 0;
    let mut places = vec![1; shape.len()];
    places[axis] = size;
    let places = n.table("places", &places, |i| i as i64)?;
    let worst = n.scalar("worst", if greatest { f32::NEG_INFINITY } else { f32::INFINITY });
    // The cast saturates at the limit of the type.
    let worst = n.cast("worst", worst, n.ty(data).dtype)?;
    let first = |greatest| ArgReduce { axis, keep_dims: true, greatest, last: false, dtype: DType::I64 };
    let kind = if greatest { ReduceKind::Max } else { ReduceKind::Min };
    let [zero, one, two, three] = [0, 1, 2, 3].map(|rank| n.made("rank", Tensor::scalar(rank)));
    // The values to compare, and the rank of their extreme.
    let (order, extreme_rank) = if n.ty(data).dtype == DType::F32 {
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
    n.outputs(&[values, indices])
}

/// Compares the position along a dimension with each index.
pub(super) fn one_hot(n: &mut NodeContext) -> Result<(), Reason> {
    let indices = n.plain(0)?;
    let depth = n.number(1)? as i64;
    let depth = usize::try_from(depth)
        .ok()
        .filter(|&d| d > 0 && d < 1 << 20)
        .ok_or("its depth must be positive and below 2^20")?;
    let mut shape = n.shape(indices)?;
    let axis = n.axis_attribute(-1, shape.len() + 1)?;
    let indices = n.cast("indices", indices, DType::I64)?;
    shape.insert(axis, 1);
    let indices = n.reshape("column", indices, &shape)?;
    // Indices outside -depth..depth match no position.
    let indices = from_end(n, indices, depth as i64)?;
    let mut places = vec![1; shape.len()];
    places[axis] = depth;
    let places = n.table("places", &places, |i| i as i64)?;
    let hot = n.binary("hot", BinaryKind::Equal, indices, places)?;
    let values = n.plain(2)?;
    let at = |n: &mut NodeContext, i: i64| {
        let index = n.made("which", Tensor::scalar(i));
        n.node("value", Gather { axis: 0 }, &[values, index])
    };
    let (off, on) = (at(n, 0)?, at(n, 1)?);
    let v = n.node("", Select {}, &[hot, on, off])?;
    n.output(v)
}
