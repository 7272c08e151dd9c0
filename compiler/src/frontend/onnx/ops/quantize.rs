//! QuantizeLinear and DequantizeLinear.

use crate::frontend::onnx::node::{NodeContext, Reason};
use crate::graph::op::{Dequantize, QuantRounding, Quantize};
use crate::graph::{DType, TensorData};

struct Parameters {
    scale: Vec<f32>,
    /// As int8 where the file has uint8.
    zero_point: Vec<i32>,
    axis: usize,
    /// Element type of the zero point, none where it is absent.
    dtype: Option<DType>,
}

fn parameters(n: &NodeContext, rank: usize) -> Result<Parameters, Reason> {
    if n.int("block_size").unwrap_or(0) != 0 {
        return Err("quantisation by blocks is not supported".into());
    }
    let scale = n.floats(1)?;
    let mut dtype = None;
    let mut zero_point = vec![0; scale.len()];
    if n.has_input(2) {
        let t = n.constant_input(2)?;
        zero_point = match t.data() {
            TensorData::I8(v) => v.iter().map(|&z| i32::from(z)).collect(),
            TensorData::U8(v) => v.iter().map(|&z| i32::from(z) - 128).collect(),
            TensorData::I32(v) => v.clone(),
            _ => return Err(format!("its zero point must be of type i8, u8 or i32, found {}", t.ty()).into()),
        };
        dtype = Some(t.dtype());
    }
    let axis = if scale.len() > 1 { n.axis(n.int("axis").unwrap_or(1), rank)? } else { 0 };
    Ok(Parameters { scale, zero_point, axis, dtype })
}

pub(super) fn quantize_linear(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let mut p = parameters(n, n.ty(data).rank())?;
    let dtype = match (p.dtype, n.int("output_dtype").unwrap_or(0)) {
        (Some(d @ (DType::I8 | DType::U8)), _) => d,
        (None, 0 | 2) => DType::U8,
        (None, 3) => DType::I8,
        _ => return Err("its result must be of type i8 or u8".into()),
    };
    if dtype == DType::U8 && p.dtype.is_none() {
        p.zero_point.fill(-128);
    }
    let op = Quantize {
        scale: p.scale,
        zero_point: p.zero_point,
        axis: p.axis,
        rounding: QuantRounding::HalfEven,
        dtype: DType::I8,
    };
    let v = n.node("", op, &[data])?;
    if dtype == DType::U8 {
        n.cx.unsigned.insert(v);
    }
    n.output(v)
}

pub(super) fn dequantize_linear(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let mut p = parameters(n, n.ty(data).rank())?;
    let declared = if n.unsigned(data) { DType::U8 } else { n.ty(data).dtype };
    if p.dtype.is_none() && declared == DType::U8 {
        p.zero_point.fill(-128);
    }
    if p.dtype.is_some_and(|d| d != declared) {
        return Err("its data and its zero point must have the same type".into());
    }
    let v = n.node("", Dequantize { scale: p.scale, zero_point: p.zero_point, axis: p.axis }, &[data])?;
    n.output(v)
}
