//! RESHAPE, TRANSPOSE and PAD.

use super::expect;
use crate::frontend::reason::Reason;
use crate::frontend::tflite::NodeContext;
use crate::frontend::tflite::quant::per_tensor;
use crate::graph::DType;
use crate::graph::op::{Pad, Reshape, Transpose};

pub(super) fn reshape(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    // The file declares the shape of the result, whether an operand or an option defines it.
    let shape = n.output_info()?.shape.iter().map(|&d| i64::try_from(d));
    let shape = shape.collect::<Result<_, _>>().map_err(|_| "its shape is too large")?;
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

pub(super) fn pad(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let dtype = expect(n, data, &[DType::F32, DType::I8])?;
    let pads = n.integers(1)?;
    let pads = pads.into_iter().map(usize::try_from).collect::<Result<Vec<_>, _>>();
    let pads = pads.map_err(|_| "its pads must not be negative")?;
    let before = pads.iter().copied().step_by(2).collect();
    let after = pads.iter().copied().skip(1).step_by(2).collect();
    same_quantization(n)?;
    // PADV2 has the value as an operand.
    let value = match (n.has_input(2), dtype) {
        (true, DType::I8) => f32::from(scalar::<i8>(n, 2)?),
        (true, _) => scalar::<f32>(n, 2)?,
        (false, DType::I8) => per_tensor(n.output_info()?)?.zero_point as f32,
        (false, _) => 0.0,
    };
    let v = n.node("", Pad { before, after, value }, &[data])?;
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
