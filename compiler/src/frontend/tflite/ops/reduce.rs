//! Operators that reduce dimensions, and those that compare or sum along one.

use super::conv::reshape_to;
use super::shape::same_quantization;
use super::{axis, expect};
use crate::frontend::reason::Reason;
use crate::frontend::semantic::reduce::{self, Cumulative};
use crate::frontend::tflite::quant::per_tensor;
use crate::frontend::tflite::wide::{self, Factors};
use crate::frontend::tflite::{NodeContext, dtype};
use crate::graph::DType;
use crate::graph::op::{ArgReduce, Concat, Reduce, ReduceKind};

pub(super) fn arg_max(n: &mut NodeContext) -> Result<(), Reason> {
    arg(n, true)
}

pub(super) fn arg_min(n: &mut NodeContext) -> Result<(), Reason> {
    arg(n, false)
}

fn arg(n: &mut NodeContext, greatest: bool) -> Result<(), Reason> {
    let (data, at) = (n.input(0)?, n.integers(1)?);
    expect(n, data, &[DType::F32, DType::I8, DType::I16, DType::I32])?;
    let axis = axis("axis", at.first().copied().unwrap_or(0), n.ty(data).rank())?;
    let dtype = dtype(n.output_info()?)?;
    let v = n.node("", ArgReduce { axis, keep_dims: false, greatest, last: false, dtype }, &[data])?;
    n.output(v)
}

pub(super) fn reduce_max(n: &mut NodeContext) -> Result<(), Reason> {
    same_quantization(n)?;
    reduction(n, ReduceKind::Max, &[DType::F32, DType::I8, DType::I16, DType::I32, DType::I64])
}

pub(super) fn reduce_min(n: &mut NodeContext) -> Result<(), Reason> {
    same_quantization(n)?;
    reduction(n, ReduceKind::Min, &[DType::F32, DType::I8, DType::I16, DType::I32, DType::I64])
}

pub(super) fn sum(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    if n.ty(data).dtype != DType::I8 {
        return reduction(n, ReduceKind::Sum, &[DType::F32, DType::I32, DType::I64]);
    }
    let (from, to) = (per_tensor(n.input_info(0)?)?, n.result()?);
    let axes = axes(n)?;
    let keep = n.output_info()?.shape.len() == n.ty(data).rank();
    let shape = n.shape(data)?;
    let count = axes.iter().try_fold(255i64, |most, &axis| most.checked_mul(i64::try_from(shape[axis]).ok()?));
    let most = count.ok_or("its data are too large")?;
    let factors = Factors::of_byte(f64::from(from.scale) / f64::from(to.scale))?;
    let v = wide::scaled_sum(n, data, &axes, keep, (&factors, most), [from.zero_point, to.zero_point])?;
    n.output(v)
}

/// The mean over any dimensions.
pub(super) fn mean_of_floats(n: &mut NodeContext) -> Result<(), Reason> {
    reduction(n, ReduceKind::Mean, &[DType::F32])
}

fn reduction(n: &mut NodeContext, kind: ReduceKind, types: &[DType]) -> Result<(), Reason> {
    let data = n.input(0)?;
    expect(n, data, types)?;
    let axes = axes(n)?;
    // The declared shape tells whether dimensions are kept.
    let keep_dims = n.output_info()?.shape.len() == n.ty(data).rank();
    let v = n.node("", Reduce { kind, axes, keep_dims }, &[data])?;
    let v = match n.declared_shape(0)? {
        Some(declared) if n.shape(v)? != declared => reshape_to(n, v, &declared)?,
        _ => v,
    };
    n.output(v)
}

/// The dimensions to reduce, ascending.
pub(super) fn axes(n: &NodeContext) -> Result<Vec<usize>, Reason> {
    let rank = n.input_info(0)?.shape.len();
    let mut axes = n.integers(1)?.into_iter().map(|a| axis("axes", a, rank)).collect::<Result<Vec<_>, _>>()?;
    axes.sort_unstable();
    axes.dedup();
    Ok(axes)
}

pub(super) fn product(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    expect(n, data, &[DType::F32, DType::I32, DType::I64])?;
    let axes = axes(n)?;
    let keep = n.output_info()?.shape.len() == n.ty(data).rank();
    let v = reduce::product(n, data, &axes, keep)?;
    n.output(v)
}

pub(super) fn any(n: &mut NodeContext) -> Result<(), Reason> {
    truth(n, ReduceKind::Max)
}

pub(super) fn all(n: &mut NodeContext) -> Result<(), Reason> {
    truth(n, ReduceKind::Min)
}

/// Truth values have a minimum and a maximum as numbers do.
fn truth(n: &mut NodeContext, kind: ReduceKind) -> Result<(), Reason> {
    let data = n.input(0)?;
    expect(n, data, &[DType::Bool])?;
    let axes = axes(n)?;
    let keep = n.output_info()?.shape.len() == n.ty(data).rank();
    let numbers = n.cast("number", data, DType::I32)?;
    let v = n.reduce("reduced", kind, &axes, keep, numbers)?;
    let v = n.cast("", v, DType::Bool)?;
    n.output(v)
}

pub(super) fn cumulative_sum(n: &mut NodeContext) -> Result<(), Reason> {
    let [exclusive, reverse] = n.op.options.map_or(Ok([0, 0]), |o| Ok::<_, String>([o.i8(0)?, o.i8(1)?]))?;
    let (data, at) = (n.input(0)?, n.integers(1)?);
    expect(n, data, &[DType::F32, DType::I32, DType::I64])?;
    let axis = axis("axis", at.first().copied().unwrap_or(0), n.ty(data).rank())?;
    let v = reduce::cumulative(n, data, axis, Cumulative::Sum, (exclusive != 0, reverse != 0))?;
    n.output(v)
}

/// The greatest elements along the last dimension.
pub(super) fn top_k(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, k) = (n.input(0)?, n.integers(1)?);
    expect(n, data, &[DType::F32, DType::I8, DType::I16, DType::I32, DType::I64])?;
    same_quantization(n)?;
    let axis = n.ty(data).rank().checked_sub(1).ok_or("its data must have a dimension")?;
    let [values, indices] = reduce::top_k(n, data, axis, k.first().copied().unwrap_or(0), true)?;
    let dtype = dtype(n.output_info_at(1)?)?;
    let indices = n.cast("indices", indices, dtype)?;
    n.output_at(0, values)?;
    n.output_at(1, indices)
}

pub(super) fn one_hot(n: &mut NodeContext) -> Result<(), Reason> {
    let axis = n.op.options.map_or(Ok(-1), |o| o.i32(0))?;
    let (indices, depth) = (n.input(0)?, n.integers(1)?);
    let (on, off) = (n.input(2)?, n.input(3)?);
    expect(n, on, &[DType::F32, DType::I32, DType::I64, DType::Bool])?;
    let (on, off) = (n.reshape("on", on, &[1])?, n.reshape("off", off, &[1])?);
    let values = n.node("values", Concat { axis: 0 }, &[off, on])?;
    let v = reduce::one_hot(n, indices, depth.first().copied().unwrap_or(0), values, axis.into(), false)?;
    n.output(v)
}

/// The sum of any number of tensors.
pub(super) fn add_n(n: &mut NodeContext) -> Result<(), Reason> {
    let mut sum = n.input(0)?;
    expect(n, sum, &[DType::F32, DType::I32])?;
    for i in 1..n.op.inputs.len() {
        let next = n.input(i)?;
        let suffix = if i + 1 == n.op.inputs.len() { "" } else { "sum" };
        sum = n.add(suffix, sum, next)?;
    }
    n.output(sum)
}
