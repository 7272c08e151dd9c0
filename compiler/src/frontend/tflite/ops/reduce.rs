//! ARG_MAX, ARG_MIN, REDUCE_MAX, REDUCE_MIN, SUM and MEAN of floats.

use super::conv::reshape_to;
use super::shape::same_quantization;
use super::{axis, expect};
use crate::frontend::reason::Reason;
use crate::frontend::tflite::{NodeContext, dtype};
use crate::graph::DType;
use crate::graph::op::{ArgReduce, Reduce, ReduceKind};

pub(super) fn arg_max(n: &mut NodeContext) -> Result<(), Reason> {
    arg(n, true)
}

pub(super) fn arg_min(n: &mut NodeContext) -> Result<(), Reason> {
    arg(n, false)
}

fn arg(n: &mut NodeContext, greatest: bool) -> Result<(), Reason> {
    let (data, at) = (n.input(0)?, n.integers(1)?);
    expect(n, data, &[DType::F32, DType::I8, DType::I32])?;
    let axis = axis("axis", at.first().copied().unwrap_or(0), n.ty(data).rank())?;
    let dtype = dtype(n.output_info()?)?;
    let v = n.node("", ArgReduce { axis, keep_dims: false, greatest, last: false, dtype }, &[data])?;
    n.output(v)
}

pub(super) fn reduce_max(n: &mut NodeContext) -> Result<(), Reason> {
    same_quantization(n)?;
    reduce(n, ReduceKind::Max, &[DType::F32, DType::I8, DType::I32, DType::I64])
}

pub(super) fn reduce_min(n: &mut NodeContext) -> Result<(), Reason> {
    same_quantization(n)?;
    reduce(n, ReduceKind::Min, &[DType::F32, DType::I8, DType::I32, DType::I64])
}

pub(super) fn sum(n: &mut NodeContext) -> Result<(), Reason> {
    reduce(n, ReduceKind::Sum, &[DType::F32, DType::I32, DType::I64])
}

/// The mean over any dimensions.
pub(super) fn mean_of_floats(n: &mut NodeContext) -> Result<(), Reason> {
    reduce(n, ReduceKind::Mean, &[DType::F32])
}

fn reduce(n: &mut NodeContext, kind: ReduceKind, types: &[DType]) -> Result<(), Reason> {
    let data = n.input(0)?;
    expect(n, data, types)?;
    let axes = axes(n)?;
    let declared = n.output_info()?.shape.clone();
    // The declared shape tells whether dimensions are kept.
    let keep_dims = declared.len() == n.ty(data).rank();
    let v = n.node("", Reduce { kind, axes, keep_dims }, &[data])?;
    let v = if n.shape(v)? == declared { v } else { reshape_to(n, v, &declared)? };
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
