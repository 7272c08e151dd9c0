//! Reductions of dimensions, and running sums.

use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::{NodeContext, Operand};
use crate::frontend::reason::Reason;
use crate::frontend::semantic::norm::length;
use crate::frontend::semantic::reduce::{self, Cumulative};
use crate::graph::op::{ArgReduce, BinaryKind, Concat, ReduceKind, UnaryKind};
use crate::graph::{DType, ValueId};

/// Data in a type, the dimensions to reduce, and whether they are kept.
fn reduced(n: &mut NodeContext, dtype: DType) -> Result<(ValueId, Vec<usize>, bool), Reason> {
    n.ignore(&["dtype"]);
    let v = n.tensor("self")?;
    let v = n.as_type("self", Operand::Tensor(v), dtype)?;
    let axes = n.dims("dim", n.ty(v).rank())?;
    Ok((v, axes, n.flag("keepdim", false)?))
}

fn plain(n: &mut NodeContext, kind: ReduceKind) -> Result<Value, Reason> {
    let dtype = n.result_type(0)?;
    let (v, axes, keep) = reduced(n, dtype)?;
    Ok(if axes.is_empty() { v } else { n.reduce("", kind, &axes, keep, v)? }.into())
}

pub(super) fn sum(n: &mut NodeContext) -> Result<Value, Reason> {
    plain(n, ReduceKind::Sum)
}

pub(super) fn mean(n: &mut NodeContext) -> Result<Value, Reason> {
    plain(n, ReduceKind::Mean)
}

pub(super) fn greatest(n: &mut NodeContext) -> Result<Value, Reason> {
    plain(n, ReduceKind::Max)
}

pub(super) fn least(n: &mut NodeContext) -> Result<Value, Reason> {
    plain(n, ReduceKind::Min)
}

pub(super) fn extremes(n: &mut NodeContext) -> Result<Value, Reason> {
    let dtype = n.result_type(0)?;
    let (v, axes, keep) = reduced(n, dtype)?;
    let both =
        [n.reduce("least", ReduceKind::Min, &axes, keep, v)?, n.reduce("greatest", ReduceKind::Max, &axes, keep, v)?];
    Ok(both.into())
}

/// The extreme of all elements, of two tensors, or along a dimension with its index.
fn extreme(n: &mut NodeContext, greatest: bool) -> Result<Value, Reason> {
    let (kind, pair) = if greatest { (ReduceKind::Max, BinaryKind::Max) } else { (ReduceKind::Min, BinaryKind::Min) };
    if !matches!(n.value("other")?, Value::None) {
        let (a, b) = (n.tensor("self")?, n.tensor("other")?);
        let dtype = n.result_type(0)?;
        let (a, b) = (n.cast("a", a, dtype)?, n.cast("b", b, dtype)?);
        return Ok(n.binary("", pair, a, b)?.into());
    }
    if n.optional_int("dim")?.is_none() {
        return plain(n, kind);
    }
    let dtype = n.result_type(0)?;
    let (v, axes, keep_dims) = reduced(n, dtype)?;
    let Some(&axis) = axes.first() else {
        let zero = n.whole("index", 0, DType::I64)?;
        return Ok([v, zero].into());
    };
    let value = n.reduce("value", kind, &axes, keep_dims, v)?;
    let index = ArgReduce { axis, keep_dims, greatest, last: false, dtype: DType::I64 };
    Ok([value, n.node("index", index, &[v])?].into())
}

pub(super) fn max(n: &mut NodeContext) -> Result<Value, Reason> {
    extreme(n, true)
}

pub(super) fn min(n: &mut NodeContext) -> Result<Value, Reason> {
    extreme(n, false)
}

fn arg(n: &mut NodeContext, greatest: bool) -> Result<Value, Reason> {
    let mut v = n.tensor("self")?;
    let keep_dims = n.flag("keepdim", false)?;
    let shape = n.shape(v)?;
    let axis = match n.optional_int("dim")? {
        Some(axis) if !shape.is_empty() => n.axis(axis, shape.len())?,
        _ => {
            v = n.reshape("flat", v, &[shape.iter().product()])?;
            0
        }
    };
    let op = ArgReduce { axis, keep_dims, greatest, last: false, dtype: DType::I64 };
    let v = n.node("", op, &[v])?;
    // Over all elements, each dimension is kept.
    let is_flat = keep_dims && n.ty(v).rank() != shape.len();
    Ok(if is_flat { n.reshape("shape", v, &vec![1; shape.len()])? } else { v }.into())
}

pub(super) fn arg_greatest(n: &mut NodeContext) -> Result<Value, Reason> {
    arg(n, true)
}

pub(super) fn arg_least(n: &mut NodeContext) -> Result<Value, Reason> {
    arg(n, false)
}

/// Truth values have a least and a greatest one, as numbers do.
fn truth(n: &mut NodeContext, kind: ReduceKind) -> Result<Value, Reason> {
    let (v, axes, keep) = reduced(n, DType::Bool)?;
    if n.ty(v).element_count() == Some(0) {
        return Err("a reduction of no elements is not supported".into());
    }
    let v = n.cast("number", v, DType::I32)?;
    let v = if axes.is_empty() { v } else { n.reduce("reduced", kind, &axes, keep, v)? };
    Ok(n.cast("", v, DType::Bool)?.into())
}

pub(super) fn any(n: &mut NodeContext) -> Result<Value, Reason> {
    truth(n, ReduceKind::Max)
}

pub(super) fn all(n: &mut NodeContext) -> Result<Value, Reason> {
    truth(n, ReduceKind::Min)
}

pub(super) fn count_nonzero(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, axes, _) = reduced(n, DType::Bool)?;
    let v = n.cast("number", v, DType::I64)?;
    Ok(n.reduce("", ReduceKind::Sum, &axes, false, v)?.into())
}

pub(super) fn product(n: &mut NodeContext) -> Result<Value, Reason> {
    let dtype = n.result_type(0)?;
    let is_along = n.optional_int("dim")?.is_some();
    let (mut v, mut axes, keep) = reduced(n, dtype)?;
    if !is_along {
        let count = n.shape(v)?.iter().product();
        v = n.reshape("flat", v, &[count])?;
        axes = vec![0];
    }
    Ok(reduce::product(n, v, &axes, keep)?.into())
}

pub(super) fn log_sum_exp(n: &mut NodeContext) -> Result<Value, Reason> {
    let dtype = n.result_type(0)?;
    let (v, axes, keep) = reduced(n, dtype)?;
    Ok(reduce::log_sum_exp(n, v, &axes, keep)?.into())
}

fn cumulative(n: &mut NodeContext, to: Cumulative) -> Result<Value, Reason> {
    n.ignore(&["dtype"]);
    let v = n.tensor("self")?;
    let dtype = n.result_type(0)?;
    let v = n.cast("self", v, dtype)?;
    let rank = n.ty(v).rank();
    let axis = n.dim_of_any("dim", 0, rank)?;
    if rank == 0 {
        return Ok(v.into());
    }
    Ok(reduce::cumulative(n, v, axis, to, (false, false))?.into())
}

pub(super) fn cumulative_sum(n: &mut NodeContext) -> Result<Value, Reason> {
    cumulative(n, Cumulative::Sum)
}

pub(super) fn cumulative_product(n: &mut NodeContext) -> Result<Value, Reason> {
    cumulative(n, Cumulative::Product)
}

/// The root of the sum of powers, or the extreme of the sizes for an infinite power.
pub(super) fn norm(n: &mut NodeContext) -> Result<Value, Reason> {
    let order = n.number("ord")?.unwrap_or(2.0);
    let dtype = n.result_type(0)?;
    let (v, axes, keep) = reduced(n, dtype)?;
    if order.is_infinite() {
        let kind = if order > 0.0 { ReduceKind::Max } else { ReduceKind::Min };
        let size = n.unary("size", UnaryKind::Abs, v)?;
        return Ok(n.reduce("", kind, &axes, keep, size)?.into());
    }
    if order.fract() != 0.0 || !(1.0..=64.0).contains(&order) {
        return Err(format!("a norm of order {order} is not supported; use a whole number from 1, or infinity").into());
    }
    Ok(length(n, "", v, order as i64, |n, v| n.reduce("sum", ReduceKind::Sum, &axes, keep, v))?.into())
}

/// The variance, and the mean in the same form.
fn moments(n: &mut NodeContext) -> Result<[ValueId; 2], Reason> {
    let dtype = n.result_type(0)?;
    let correction = match n.number("correction")? {
        Some(correction) => correction,
        None => f64::from(u8::from(n.flag("unbiased", true)?)),
    };
    let (v, axes, keep) = reduced(n, dtype)?;
    let shape = n.shape(v)?;
    let count: usize = axes.iter().map(|&axis| shape[axis]).product();
    let mean = n.reduce("mean", ReduceKind::Mean, &axes, true, v)?;
    let less = n.binary("less", BinaryKind::Sub, v, mean)?;
    let square = n.binary("square", BinaryKind::Mul, less, less)?;
    let sum = n.reduce("sum", ReduceKind::Sum, &axes, keep, square)?;
    let count = n.numeral("count", (count as f64 - correction).max(0.0), dtype)?;
    let variance = n.binary("variance", BinaryKind::Div, sum, count)?;
    let shape = n.shape(variance)?;
    Ok([variance, n.reshape("mean/shape", mean, &shape)?])
}

pub(super) fn variance(n: &mut NodeContext) -> Result<Value, Reason> {
    Ok(moments(n)?[0].into())
}

pub(super) fn deviation(n: &mut NodeContext) -> Result<Value, Reason> {
    let [variance, _] = moments(n)?;
    Ok(n.unary("", UnaryKind::Sqrt, variance)?.into())
}

pub(super) fn variance_mean(n: &mut NodeContext) -> Result<Value, Reason> {
    Ok(moments(n)?.into())
}

pub(super) fn deviation_mean(n: &mut NodeContext) -> Result<Value, Reason> {
    let [variance, mean] = moments(n)?;
    Ok([n.unary("root", UnaryKind::Sqrt, variance)?, mean].into())
}

/// Differences of neighbors.
pub(super) fn difference(n: &mut NodeContext) -> Result<Value, Reason> {
    use crate::frontend::semantic::movement::part;
    let mut v = n.tensor("self")?;
    let (times, rank) = (n.int("n", 1)?, n.ty(v).rank());
    let axis = n.dim("dim", -1, rank)?;
    let parts = [n.optional("prepend")?, Some(v), n.optional("append")?];
    let parts: Vec<ValueId> = parts.into_iter().flatten().collect();
    if parts.len() > 1 {
        v = n.node("joined", Concat { axis }, &parts)?;
    }
    if !(0..=64).contains(&times) {
        return Err(format!("differences of {times} steps are not supported; use up to 64").into());
    }
    for _ in 0..times {
        let size = n.shape(v)?[axis];
        let left = size.checked_sub(1).ok_or("its data are too short")?;
        let (next, own) = (part(n, "next", v, axis, 1, left)?, part(n, "own", v, axis, 0, left)?);
        let kind = if n.ty(v).dtype == DType::Bool { BinaryKind::Xor } else { BinaryKind::Sub };
        v = n.binary("difference", kind, next, own)?;
    }
    Ok(v.into())
}
