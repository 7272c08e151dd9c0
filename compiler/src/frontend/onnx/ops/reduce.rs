//! Reductions, ArgMax and ArgMin, CumSum, TopK and OneHot.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::reduce::{self, Cumulative};
use crate::graph::op::{ArgReduce, BinaryKind, ReduceKind, UnaryKind};
use crate::graph::{DType, ValueId};

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
fn reduction(
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
    reduction(n, ReduceKind::Sum, 13, same, same)
}

pub(super) fn mean(n: &mut NodeContext) -> Result<(), Reason> {
    reduction(n, ReduceKind::Mean, 18, same, same)
}

pub(super) fn max(n: &mut NodeContext) -> Result<(), Reason> {
    reduction(n, ReduceKind::Max, 18, same, same)
}

pub(super) fn min(n: &mut NodeContext) -> Result<(), Reason> {
    reduction(n, ReduceKind::Min, 18, same, same)
}

pub(super) fn product(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let (axes, keep) = axes(n, n.shape(data)?.len(), 18)?;
    let Some(axes) = axes else { return n.output(data) };
    let v = reduce::product(n, data, &axes, keep)?;
    n.output(v)
}

pub(super) fn l1(n: &mut NodeContext) -> Result<(), Reason> {
    reduction(n, ReduceKind::Sum, 18, |n, v| n.unary("abs", UnaryKind::Abs, v), same)
}

pub(super) fn l2(n: &mut NodeContext) -> Result<(), Reason> {
    reduction(n, ReduceKind::Sum, 18, square, |n, v| n.unary("sqrt", UnaryKind::Sqrt, v))
}

pub(super) fn log_sum(n: &mut NodeContext) -> Result<(), Reason> {
    reduction(n, ReduceKind::Sum, 18, same, log)
}

pub(super) fn sum_square(n: &mut NodeContext) -> Result<(), Reason> {
    reduction(n, ReduceKind::Sum, 18, square, same)
}

pub(super) fn log_sum_exp(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let (axes, keep) = axes(n, n.ty(data).rank(), 18)?;
    let Some(axes) = axes else { return n.output(data) };
    let v = reduce::log_sum_exp(n, data, &axes, keep)?;
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

fn cumulative(n: &mut NodeContext, to: Cumulative) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let axis = n.axis(n.number(1)? as i64, n.ty(data).rank())?;
    let ways = (n.int("exclusive").unwrap_or(0) != 0, n.int("reverse").unwrap_or(0) != 0);
    let v = reduce::cumulative(n, data, axis, to, ways)?;
    n.output(v)
}

pub(super) fn cum_sum(n: &mut NodeContext) -> Result<(), Reason> {
    cumulative(n, Cumulative::Sum)
}

pub(super) fn cum_product(n: &mut NodeContext) -> Result<(), Reason> {
    cumulative(n, Cumulative::Product)
}

pub(super) fn top_k(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let axis = n.axis_attribute(-1, n.ty(data).rank())?;
    let k = if n.opset() < 10 { n.int("k").unwrap_or(0) } else { n.number(1)? as i64 };
    let greatest = n.int("largest").unwrap_or(1) != 0;
    let results = reduce::top_k(n, data, axis, k, greatest)?;
    n.outputs(&results)
}

pub(super) fn one_hot(n: &mut NodeContext) -> Result<(), Reason> {
    let (indices, values) = (n.plain(0)?, n.plain(2)?);
    let depth = n.number(1)? as i64;
    let axis = n.int("axis").unwrap_or(-1);
    let v = reduce::one_hot(n, indices, depth, values, axis, true)?;
    n.output(v)
}
