//! Shapes, padding and constants.

use super::expect;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::pad::{self, Border};
use crate::frontend::tflite::flat::Vector;
use crate::frontend::tflite::quant::per_tensor;
use crate::frontend::tflite::{NodeContext, dtype};
use crate::graph::op::{Expand, Reshape, Transpose};
use crate::graph::{DType, Tensor, ValueId};

pub(super) fn reshape(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    // The file declares the shape of the result, whether an operand or an option defines it, unless it leaves it open.
    let shape = match n.declared_shape(0)? {
        None if n.has_input(1) => n.integers(1)?,
        None if n.op.options.is_some() => {
            let sizes = n.op.options.map(|o| o.vector::<4>(0)).transpose()?;
            sizes.iter().flat_map(Vector::words).map(|size| i32::from_le_bytes(size).into()).collect()
        }
        _ => {
            let shape = n.output_info()?.shape.iter().map(|&d| i64::try_from(d)).collect::<Result<_, _>>();
            shape.map_err(|_| "its shape is too large")?
        }
    };
    same_quantization(n)?;
    let v = n.node("", Reshape { shape }, &[data])?;
    n.output(v)
}

pub(super) fn transpose(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let perm = n.integers(1)?.into_iter().map(usize::try_from);
    let perm = perm.collect::<Result<_, _>>().map_err(|_| "its permutation has a negative dimension")?;
    same_quantization(n)?;
    let v = n.node("", Transpose { perm }, &[data])?;
    n.output(v)
}

/// Elements to add before and after each dimension.
fn ends(n: &NodeContext) -> Result<pad::Ends, Reason> {
    let (pads, rank) = (n.integers(1)?, n.input_info(0)?.shape.len());
    if pads.len() != 2 * rank {
        return Err(format!("its pads must have {} numbers, found {}", 2 * rank, pads.len()).into());
    }
    if pads.iter().any(|&pad| pad < 0) {
        return Err("its pads must not be negative".into());
    }
    let ends: Vec<_> = pads.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    pad::check(&ends)?;
    Ok(ends)
}

pub(super) fn pad(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let dtype = expect(n, data, &[DType::F32, DType::I8, DType::I16, DType::I32, DType::I64])?;
    let ends = ends(n)?;
    same_quantization(n)?;
    // PADV2 has the value as an operand.
    let value = match (n.has_input(2), dtype) {
        (true, DType::I8) => f32::from(scalar::<i8>(n, 2)?),
        (true, DType::F32) => scalar::<f32>(n, 2)?,
        (true, _) => n.integers(2)?.first().map_or(0.0, |&value| value as f32),
        (false, DType::I8) => n.result()?.zero_point as f32,
        (false, _) => 0.0,
    };
    let v = pad::constant(n, "", data, &ends, value)?;
    n.output(v)
}

pub(super) fn mirror_pad(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let border = match n.op.options.map_or(Ok(0), |o| o.i8(0))? {
        0 => Border::Reflect,
        1 => Border::Symmetric,
        other => return Err(format!("attribute mode is number {other}; supported are REFLECT, SYMMETRIC").into()),
    };
    let ends = ends(n)?;
    // More than there is inside would be mirrored at the other side, which the kernels do not do.
    let inside = if border == Border::Reflect { 1 } else { 0 };
    if ends.iter().zip(n.shape(data)?).any(|(&(b, a), size)| b.max(a) > size as i64 - inside) {
        return Err("its pads must not be larger than its data".into());
    }
    same_quantization(n)?;
    let v = pad::bordered(n, data, &ends, border)?;
    n.output(v)
}

pub(super) fn shape(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let sizes: Vec<i64> = n.shape(data)?.into_iter().map(|d| d as i64).collect();
    whole_numbers(n, &[sizes.len()], &sizes)
}

pub(super) fn rank(n: &mut NodeContext) -> Result<(), Reason> {
    let rank = n.input_info(0)?.shape.len() as i64;
    whole_numbers(n, &[], &[rank])
}

/// Makes numbers that follow from shapes the output.
fn whole_numbers(n: &mut NodeContext, shape: &[usize], numbers: &[i64]) -> Result<(), Reason> {
    let t = match dtype(n.output_info()?)? {
        DType::I32 => Tensor::from_fn(shape, |i| numbers[i] as i32),
        _ => Tensor::from_fn(shape, |i| numbers[i]),
    };
    let v = n.constant("", t)?;
    n.output(v)
}

/// A tensor of zeros with the shape of the data.
pub(super) fn zeros_like(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    expect(n, data, &[DType::F32, DType::I32, DType::I64])?;
    let (zero, shape) = (n.scalar("zero", 0.0), n.shape(data)?);
    filled(n, zero, &shape)
}

pub(super) fn fill(n: &mut NodeContext) -> Result<(), Reason> {
    let value = n.input(1)?;
    let shape = n.integers(0)?.into_iter().map(usize::try_from).collect::<Result<Vec<_>, _>>();
    filled(n, value, &shape.map_err(|_| "its dims must not be negative")?)
}

fn filled(n: &mut NodeContext, value: ValueId, shape: &[usize]) -> Result<(), Reason> {
    let dtype = dtype(n.output_info()?)?;
    let value = n.cast("value", value, dtype)?;
    let v = n.node("", Expand { shape: shape.to_vec() }, &[value])?;
    n.output(v)
}

/// The single element of a constant operand.
fn scalar<T: crate::graph::Element>(n: &NodeContext, i: usize) -> Result<T, Reason> {
    let t = n.constant_input(i)?;
    let v = t.as_slice::<T>().map_err(|e| Reason(format!("operand {i}: {e}")))?;
    v.first().copied().ok_or_else(|| Reason(format!("operand {i} is empty")))
}

/// Fails if an operator that only moves integers is declared to change their scale or zero point.
pub(super) fn same_quantization(n: &NodeContext) -> Result<(), Reason> {
    let (from, to) = (n.input_info(0)?, n.output_info()?);
    let both = from.quantization.is_some() && to.quantization.is_some();
    if both && per_tensor(from)? != per_tensor(to)? {
        return Err("data and result must have the same scale and zero point".into());
    }
    Ok(())
}
