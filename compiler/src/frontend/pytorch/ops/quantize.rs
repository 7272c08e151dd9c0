//! Quantization as PyTorch's PT2E writes it.

use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::NodeContext;
use crate::frontend::pytorch::schema::Scalar;
use crate::frontend::reason::Reason;
use crate::graph::op::{Clip, Dequantize, QuantRounding, Quantize};
use crate::graph::{DType, ValueId};

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

fn parameters(n: &mut NodeContext, by_channel: bool, v: ValueId) -> Result<Parameters, Reason> {
    let names = if by_channel { ["scales", "zero_points"] } else { ["scale", "zero_point"] };
    let scale = listed(n, names[0])?.ok_or("it has no scale")?;
    let zero = listed(n, names[1])?.unwrap_or_else(|| vec![0.0; scale.len()]);
    if zero.len() != scale.len() {
        return Err(format!("it has {} scales, but {} zero points", scale.len(), zero.len()).into());
    }
    let axis = if by_channel { n.dim("axis", 0, n.ty(v).rank())? } else { 0 };
    let (scale, zero_point) = (scale.iter().map(|x| *x as f32).collect(), zero.iter().map(|x| *x as i32).collect());
    Ok(Parameters { scale, zero_point, axis })
}

fn element_type(n: &mut NodeContext) -> Result<DType, Reason> {
    let dtype = n.scalar_type("dtype").unwrap_or(Scalar::plain(DType::I8)).dtype()?;
    match dtype {
        DType::I8 | DType::U8 | DType::I32 => Ok(dtype),
        other => Err(format!("quantization to {other} is not supported; use int8 or uint8").into()),
    }
}

fn quantized(n: &mut NodeContext, by_channel: bool) -> Result<Value, Reason> {
    let v = n.tensor("input")?;
    let Parameters { scale, zero_point, axis } = parameters(n, by_channel, v)?;
    let dtype = element_type(n)?;
    let (lo, hi) = match dtype {
        DType::I8 => (-128, 127),
        DType::U8 => (0, 255),
        other => return Err(format!("quantization to {other} is not supported; use int8 or uint8").into()),
    };
    let (least, most) = (n.int("quant_min", lo)?, n.int("quant_max", hi)?);
    let narrow = least > lo || most < hi;
    let op = Quantize { scale, zero_point, axis, rounding: QuantRounding::HalfEven, dtype };
    let v = n.node(if narrow { "quantize" } else { "" }, op, &[v])?;
    if !narrow {
        return Ok(v.into());
    }
    if dtype == DType::I8 {
        return Ok(n.node("", Clip { lo: least as f32, hi: most as f32 }, &[v])?.into());
    }
    let (lo, hi) = (n.whole("lo", least, dtype)?, n.whole("hi", most, dtype)?);
    let v = n.binary("least", crate::graph::op::BinaryKind::Max, v, lo)?;
    Ok(n.binary("", crate::graph::op::BinaryKind::Min, v, hi)?.into())
}

fn dequantized(n: &mut NodeContext, by_channel: bool) -> Result<Value, Reason> {
    n.ignore(&["quant_min", "quant_max", "dtype", "out_dtype"]);
    let v = n.tensor("input")?;
    let Parameters { scale, zero_point, axis } = parameters(n, by_channel, v)?;
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
