//! Quantization as PyTorch's PT2E writes it.

use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::NodeContext;
use crate::frontend::pytorch::schema::Scalar;
use crate::frontend::reason::Reason;
use crate::graph::op::{BinaryKind, Clip, Dequantize, QuantRounding, Quantize, ReduceKind, UnaryKind};
use crate::graph::{DType, Tensor, ValueId};

/// Scales and zero points: numbers, or a number for each index of a dimension.
struct Parameters {
    scale: Vec<f32>,
    zero_point: Vec<i32>,
    axis: usize,
}

fn listed(n: &mut NodeContext, name: &str) -> Result<Option<Vec<f64>>, Reason> {
    match n.value(name)? {
        Value::None => Ok(None),
        Value::Int(x) => Ok(Some(vec![x as f64])),
        Value::Float(x) => Ok(Some(vec![x])),
        Value::Tensor(v) => match n.constant_of(v) {
            Some(t) => Ok(Some(t.doubles())),
            None => Err(format!("its argument `{name}` must be known").into()),
        },
        _ => Err(format!("its argument `{name}` must be numbers").into()),
    }
}

/// The parameters that the arguments of these names hold.
fn parameters(n: &mut NodeContext, names: [&str; 2], by_channel: bool, v: ValueId) -> Result<Parameters, Reason> {
    let scale = listed(n, names[0])?.ok_or("it has no scale")?;
    let zero = listed(n, names[1])?.unwrap_or_else(|| vec![0.0; scale.len()]);
    if zero.len() != scale.len() {
        return Err(format!("it has {} scales, but {} zero points", scale.len(), zero.len()).into());
    }
    let axis = if by_channel { n.dim("axis", 0, n.ty(v).rank())? } else { 0 };
    let (scale, zero_point) = (scale.iter().map(|x| *x as f32).collect(), zero.iter().map(|x| *x as i32).collect());
    Ok(Parameters { scale, zero_point, axis })
}

/// The names of scales and zero points, of one or of each channel.
fn names(by_channel: bool) -> [&'static str; 2] {
    if by_channel { ["scales", "zero_points"] } else { ["scale", "zero_point"] }
}

/// The least and the greatest number of a type of 8 bits.
fn byte_range(dtype: DType) -> Result<(i64, i64), Reason> {
    match dtype {
        DType::I8 => Ok((-128, 127)),
        DType::U8 => Ok((0, 255)),
        other => Err(format!("quantization to {other} is not supported; use int8 or uint8").into()),
    }
}

fn element_type(n: &mut NodeContext) -> Result<DType, Reason> {
    let dtype = n.scalar_type("dtype").unwrap_or(Scalar::plain(DType::I8)).dtype()?;
    match dtype {
        DType::I8 | DType::U8 | DType::I32 => Ok(dtype),
        other => Err(format!("quantization to {other} is not supported; use int8 or uint8").into()),
    }
}

/// The scale as it is and the zero point as a float, if they are computed when the model runs.
fn computed(n: &mut NodeContext) -> Result<Option<[ValueId; 2]>, Reason> {
    let (Value::Tensor(scale), Value::Tensor(zero)) = (n.value("scale")?, n.value("zero_point")?) else {
        return Ok(None);
    };
    if n.constant_of(scale).is_some() && n.constant_of(zero).is_some() {
        return Ok(None);
    }
    Ok(Some([scale, n.cast("zero_point", zero, DType::F32)?]))
}

fn quantized(n: &mut NodeContext, by_channel: bool) -> Result<Value, Reason> {
    let v = n.tensor("input")?;
    if let Some([scale, zero]) = computed(n)? {
        let dtype = element_type(n)?;
        let (lo, hi) = (n.int("quant_min", -128)?, n.int("quant_max", 127)?);
        let (lo, hi) = (n.scalar("lo", lo as f32), n.scalar("hi", hi as f32));
        // PyTorch multiplies by the reciprocal of the scale, which it computes in double precision.
        let inverse = n.unary("inverse", UnaryKind::Reciprocal, scale)?;
        let inverse = n.cast("inverse/single", inverse, DType::F32)?;
        let v = n.binary("steps", BinaryKind::Mul, v, inverse)?;
        let v = n.unary("round", UnaryKind::Round, v)?;
        let v = n.add("placed", v, zero)?;
        let v = n.binary("least", BinaryKind::Max, v, lo)?;
        let v = n.binary("most", BinaryKind::Min, v, hi)?;
        return Ok(n.cast("", v, dtype)?.into());
    }
    let Parameters { scale, zero_point, axis } = parameters(n, names(by_channel), by_channel, v)?;
    let dtype = element_type(n)?;
    let (lo, hi) = byte_range(dtype)?;
    let (least, most) = (n.int("quant_min", lo)?, n.int("quant_max", hi)?);
    let op = Quantize { scale, zero_point, axis, rounding: QuantRounding::HalfEven, dtype };
    let v = n.node(if least > lo || most < hi { "quantize" } else { "" }, op, &[v])?;
    Ok(narrowed(n, v, least, most)?.into())
}

fn dequantized(n: &mut NodeContext, by_channel: bool) -> Result<Value, Reason> {
    n.ignore(&["quant_min", "quant_max", "dtype", "out_dtype"]);
    let v = n.tensor("input")?;
    if let Some([scale, zero]) = computed(n)? {
        let v = n.cast("float", v, DType::F32)?;
        let v = n.binary("steps", BinaryKind::Sub, v, zero)?;
        let scale = n.cast("scale", scale, DType::F32)?;
        return Ok(n.binary("", BinaryKind::Mul, v, scale)?.into());
    }
    let Parameters { scale, zero_point, axis } = parameters(n, names(by_channel), by_channel, v)?;
    Ok(n.node("", Dequantize { scale, zero_point, axis }, &[v])?.into())
}

pub(super) fn quantize(n: &mut NodeContext) -> Result<Value, Reason> {
    quantized(n, false)
}

pub(super) fn quantize_per_channel(n: &mut NodeContext) -> Result<Value, Reason> {
    quantized(n, true)
}

pub(super) fn dequantize(n: &mut NodeContext) -> Result<Value, Reason> {
    dequantized(n, false)
}

pub(super) fn dequantize_per_channel(n: &mut NodeContext) -> Result<Value, Reason> {
    dequantized(n, true)
}

/// Quantizes and dequantizes, as networks that were trained for quantization do.
fn faked(n: &mut NodeContext, by_channel: bool) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let Parameters { scale, zero_point, axis } = parameters(n, names(false), by_channel, v)?;
    let (least, most) = (n.int("quant_min", -128)?, n.int("quant_max", 127)?);
    let dtype = if least >= 0 { DType::U8 } else { DType::I8 };
    let (lo, hi) = byte_range(dtype)?;
    if least < lo || most > hi {
        return Err(format!("quantization to {least}..{most} is not supported; use 8 bits").into());
    }
    let op = Quantize {
        scale: scale.clone(),
        zero_point: zero_point.clone(),
        axis,
        rounding: QuantRounding::HalfEven,
        dtype,
    };
    let v = n.node("quantize", op, &[v])?;
    let v = narrowed(n, v, least, most)?;
    let v = n.node("", Dequantize { scale, zero_point, axis }, &[v])?;
    // Which elements are within bounds matters for training alone.
    Ok(if n.proto.target.contains("cachemask") { Value::List(vec![v.into(), Value::None]) } else { v.into() })
}

pub(super) fn fake(n: &mut NodeContext) -> Result<Value, Reason> {
    faked(n, false)
}

pub(super) fn fake_per_channel(n: &mut NodeContext) -> Result<Value, Reason> {
    faked(n, true)
}

/// Bytes within bounds that are narrower than their type.
fn narrowed(n: &mut NodeContext, v: ValueId, least: i64, most: i64) -> Result<ValueId, Reason> {
    let dtype = n.ty(v).dtype;
    let (lo, hi) = byte_range(dtype)?;
    if least <= lo && most >= hi {
        return Ok(v);
    }
    if dtype == DType::I8 {
        return n.node("narrow", Clip { lo: least as f32, hi: most as f32 }, &[v]);
    }
    let (lo, hi) = (n.whole("lo", least, dtype)?, n.whole("hi", most, dtype)?);
    let v = n.binary("least", BinaryKind::Max, v, lo)?;
    n.binary("narrow", BinaryKind::Min, v, hi)
}

/// The scale and the zero point of data, by their least and greatest elements.
pub(super) fn choose(n: &mut NodeContext) -> Result<Value, Reason> {
    chosen(n, false)
}

pub(super) fn choose_symmetric(n: &mut NodeContext) -> Result<Value, Reason> {
    chosen(n, true)
}

fn chosen(n: &mut NodeContext, is_symmetric: bool) -> Result<Value, Reason> {
    n.ignore(&["dtype"]);
    let v = n.tensor("input")?;
    let (lo, hi) = (n.int("quant_min", -128)? as f64, n.int("quant_max", 127)? as f64);
    let eps = n.number("eps")?.unwrap_or(f64::from(f32::EPSILON));
    let axes: Vec<usize> = (0..n.ty(v).rank()).collect();
    let zero = n.zero_like(v)?;
    let least = n.reduce("least", ReduceKind::Min, &axes, false, v)?;
    let most = n.reduce("most", ReduceKind::Max, &axes, false, v)?;
    // Zero is always a number of the quantization.
    let (least, most) =
        (n.binary("least/zero", BinaryKind::Min, least, zero)?, n.binary("most/zero", BinaryKind::Max, most, zero)?);
    let (span, steps) = if is_symmetric {
        let below = n.unary("below", UnaryKind::Neg, least)?;
        (n.binary("span", BinaryKind::Max, below, most)?, (hi - lo) / 2.0)
    } else {
        (n.binary("span", BinaryKind::Sub, most, least)?, hi - lo)
    };
    let (steps, eps) = (n.scalar("steps", steps as f32), n.scalar("eps", eps as f32));
    let scale = n.binary("scale", BinaryKind::Div, span, steps)?;
    let scale = n.binary("scale/least", BinaryKind::Max, scale, eps)?;
    let zero_point = if is_symmetric {
        n.made("zero_point", Tensor::scalar(0i64))
    } else {
        let place = n.binary("place", BinaryKind::Div, least, scale)?;
        let place = n.unary("place/round", UnaryKind::Round, place)?;
        let (lo, hi) = (n.scalar("lo", lo as f32), n.scalar("hi", hi as f32));
        let point = n.binary("zero_point/real", BinaryKind::Sub, lo, place)?;
        let point = n.binary("zero_point/least", BinaryKind::Max, point, lo)?;
        let point = n.binary("zero_point/most", BinaryKind::Min, point, hi)?;
        n.cast("zero_point", point, DType::I64)?
    };
    let scale = n.cast("scale/wide", scale, DType::F64)?;
    Ok([n.reshape("scale/one", scale, &[1])?, n.reshape("zero_point/one", zero_point, &[1])?].into())
}
