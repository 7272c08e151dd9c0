//! QUANTIZE, DEQUANTIZE, DENSIFY and SOFTMAX.

use super::expect;
use crate::frontend::reason::Reason;
use crate::frontend::tflite::quant::per_tensor;
use crate::frontend::tflite::schema::Type;
use crate::frontend::tflite::{NodeContext, wide};
use crate::graph::DType;
use crate::graph::op::{BinaryKind, Dequantize, QuantRounding, Quantize, Rescale, Softmax};
use tilewright_hw::num::{Rounding, byte_multiplier};

pub(super) fn quantize(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let to = n.result()?;
    let dtype = expect(n, data, &[DType::F32, DType::I8, DType::I16])?;
    let (is_wide, becomes_wide) = (wide::is_wide(n.input_info(0)?), wide::is_wide(n.output_info()?));
    let v = if becomes_wide && dtype == DType::F32 {
        wide::of_floats(n, data)?
    } else if becomes_wide || is_wide {
        let from = per_tensor(n.input_info(0)?)?;
        wide::between(n, data, from, to)?
    } else if dtype == DType::F32 {
        let op = Quantize {
            scale: vec![to.scale],
            zero_point: vec![to.zero_point],
            axis: 0,
            rounding: QuantRounding::HalfAway,
            dtype: DType::I8,
        };
        n.node("", op, &[data])?
    } else {
        let from = per_tensor(n.input_info(0)?)?;
        let (multiplier, shift) = byte_multiplier(f64::from(from.scale) / f64::from(to.scale));
        let op = Rescale {
            data_zero_point: from.zero_point,
            multiplier,
            shift,
            zero_point: to.zero_point,
            lo: -128,
            hi: 127,
            mode: Rounding::Double,
        };
        n.node("", op, &[data])?
    };
    n.output(v)
}

pub(super) fn dequantize(n: &mut NodeContext) -> Result<(), Reason> {
    let info = n.input_info(0)?;
    if info.ty != Type::F16 && matches!(n.known(0)?, None | Some(Some(_))) {
        // Weights stored in 8 bits become float constants.
        let t = n.floats(0)?;
        n.reserve(&t.ty())?;
        let v = n.made("", t);
        return n.output(v);
    }
    let data = n.input(0)?;
    if info.ty == Type::F16 {
        // It became float32 at import.
        return n.output(data);
    }
    if expect(n, data, &[DType::I8, DType::I16])? == DType::I16 {
        let scale = n.scalar("scale", wide::scale(info)?);
        let v = n.float("float", data)?;
        let v = n.binary("", BinaryKind::Mul, v, scale)?;
        return n.output(v);
    }
    let q = info.quantization.as_ref().ok_or("its data have no quantization parameters")?;
    let v = if q.scale.len() == 1 {
        let q = per_tensor(info)?;
        n.node("", Dequantize { scale: vec![q.scale], zero_point: vec![q.zero_point], axis: 0 }, &[data])?
    } else {
        let less = if info.ty == Type::U8 { 128 } else { 0 };
        let zero_point = q.zero_point.iter().map(|&z| i32::try_from(z.saturating_sub(less)));
        let zero_point = zero_point.collect::<Result<_, _>>().map_err(|_| "its zero points do not fit its type")?;
        n.node("", Dequantize { scale: q.scale.clone(), zero_point, axis: q.axis }, &[data])?
    };
    n.output(v)
}

/// Sparse constants are expanded when they are read.
pub(super) fn densify(n: &mut NodeContext) -> Result<(), Reason> {
    let info = n.input_info(0)?;
    if info.data.is_none() {
        return Err(format!("its operand, `{}`, must be a constant", info.name).into());
    }
    let v = n.input(0)?;
    n.output(v)
}

pub(super) fn softmax(n: &mut NodeContext) -> Result<(), Reason> {
    let beta = n.op.options.ok_or("it has no options")?.f32(0)?;
    let data = n.input(0)?;
    if wide::is_wide(n.input_info(0)?) {
        let v = wide::softmax(n, data, beta)?;
        return n.output(v);
    }
    let axis = n.ty(data).rank().checked_sub(1).ok_or("its data must have a dimension")?;
    let mut op = Softmax::float(axis, beta);
    if expect(n, data, &[DType::F32, DType::I8])? == DType::I8 {
        let (from, to) = (per_tensor(n.input_info(0)?)?, n.result()?);
        (op.input_scale, op.output_scale, op.output_zero_point) = (from.scale, to.scale, to.zero_point);
    }
    let v = n.node("", op, &[data])?;
    n.output(v)
}
