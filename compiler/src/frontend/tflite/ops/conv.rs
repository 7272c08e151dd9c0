//! CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED.

use super::{activate, before, expect, padding, size};
use crate::frontend::reason::Reason;
use crate::frontend::tflite::names::type_name;
use crate::frontend::tflite::quant::{Activation, per_tensor, symmetric_weights, weights};
use crate::frontend::tflite::scaling::{Scaling, greatest_sums, product_factors, requantize, requantize_away};
use crate::frontend::tflite::schema::Type;
use crate::frontend::tflite::{NodeContext, wide};
use crate::graph::op::{Conv2d, Dense, HybridConv2d, HybridDense, Layout, Reshape};
use crate::graph::{DType, Tensor, ValueId};

const NHWC: Layout = Layout::Nhwc;

pub(super) fn conv_2d(n: &mut NodeContext) -> Result<(), Reason> {
    let o = n.op.options.ok_or("it has no options")?;
    let code = o.i8(3)?;
    let strides = [size("stride", o.i32(2)?)?, size("stride", o.i32(1)?)?];
    let dilations = [size("dilation", o.i32_or(5, 1)?)?, size("dilation", o.i32_or(4, 1)?)?];
    integer_sums(n, o.i8(6)?, 0)?;
    convolution(n, o.i8(0)?, strides, dilations, Activation::from_code(code)?, false)
}

pub(super) fn depthwise_conv_2d(n: &mut NodeContext) -> Result<(), Reason> {
    let o = n.op.options.ok_or("it has no options")?;
    let code = o.i8(4)?;
    let strides = [size("stride", o.i32(2)?)?, size("stride", o.i32(1)?)?];
    let dilations = [size("dilation", o.i32_or(6, 1)?)?, size("dilation", o.i32_or(5, 1)?)?];
    convolution(n, o.i8(0)?, strides, dilations, Activation::from_code(code)?, true)
}

fn convolution(
    n: &mut NodeContext,
    pad: i8,
    strides: [usize; 2],
    dilations: [usize; 2],
    act: Activation,
    depthwise: bool,
) -> Result<(), Reason> {
    let data = n.input(0)?;
    let dtype = expect(n, data, &[DType::F32, DType::I8, DType::I16])?;
    let (image, kernel) = (n.shape(data)?, &n.input_info(1)?.shape);
    let (&[_, h, w, channels], &[outer, kh, kw, inner]) = (image.as_slice(), kernel.as_slice()) else {
        return Err(format!("data and weights must have 4 dimensions, found {image:?} and {kernel:?}").into());
    };
    let (top, bottom) = padding(pad, h, kh, strides[0], dilations[0])?;
    let (left, right) = padding(pad, w, kw, strides[1], dilations[1])?;
    let pads = [top, left, bottom, right];
    let depth = if depthwise { 1 } else { inner };
    if depth == 0 || channels % depth != 0 {
        return Err(format!("{channels} input channels do not split into groups of {depth}").into());
    }
    let groups = channels / depth;
    n.reserve_tables(if depthwise { inner } else { outer })?;
    let out_channels = if depthwise { inner } else { outer };
    // In the file, depthwise weights are [1, KH, KW, O].
    let order = depthwise.then_some(&[3, 1, 2, 0][..]);
    let normal = |t: Tensor| match order {
        Some(order) => t.transposed(order).ok_or(Reason("its weights must have 4 dimensions".into())),
        None => Ok(t),
    };
    let mut op = Conv2d { strides, pads, dilations, groups, layout: NHWC, data_zero_point: 0, weight_zero_point: 0 };
    let hybrid = matches!(n.input_info(1)?.ty, Type::I8 | Type::U8);
    if dtype == DType::F32 && hybrid {
        // Floats with 8-bit weights are quantized image by image at run time; by their range if the weights have a
        // scale per channel.
        let info = n.input_info(1)?;
        let scale = symmetric_weights(info, if depthwise { 3 } else { 0 }, out_channels)?;
        let asymmetric = depthwise || info.quantization.as_ref().is_some_and(|q| q.scale.len() > 1);
        let weight = n.weight(1, "weight", false, order)?;
        let scale = n.made("scale", Tensor::vector(scale));
        let operands = [data, weight, scale, bias_or_zeros(n, 2, out_channels)?];
        let op = HybridConv2d { strides, pads, dilations, groups, asymmetric };
        let v = n.node(before(act, "conv2d"), op, &operands)?;
        let v = activate(n, v, act)?;
        return n.output(v);
    }
    if dtype == DType::F32 {
        let mut operands = vec![data, n.weight(1, "weight", true, order)?];
        operands.extend(float_bias(n, 2)?);
        let v = n.node(before(act, "conv2d"), op, &operands)?;
        let v = activate(n, v, act)?;
        return n.output(v);
    }
    let (from, to) = (per_tensor(n.input_info(0)?)?, n.result()?);
    let axis = if depthwise { 3 } else { 0 };
    let (scales, zero_point) = weights(n.input_info(1)?, axis, out_channels)?;
    let weight = normal(n.constant_input(1)?)?;
    let factors = product_factors(n.input_info(0)?, from.scale, &scales, to.scale);
    if dtype == DType::I16 {
        let (bias, sums) = (wide::bias(n, 2)?, wide::sums(n, op, (0, data), &weight, zero_point)?);
        let v = wide::requantized(n, sums, bias, &factors, act)?;
        return n.output(v);
    }
    let bias = integer_bias(n, 2, out_channels)?;
    let scaling = Scaling::double(&factors, || greatest_sums(&weight, zero_point, from.zero_point, &bias))?;
    let weight = n.made("weight", weight);
    (op.data_zero_point, op.weight_zero_point) = (from.zero_point, zero_point);
    let acc = n.node("conv2d", op, &[data, weight])?;
    let v = requantize(n, acc, 3, bias, scaling, to, act)?;
    n.output(v)
}

pub(super) fn fully_connected(n: &mut NodeContext) -> Result<(), Reason> {
    let o = n.op.options.ok_or("it has no options")?;
    if o.i8(1)? != 0 {
        return Err("attribute weights_format is SHUFFLED4x16INT8; supported is DEFAULT".into());
    }
    integer_sums(n, o.i8(4)?, 0)?;
    let act = Activation::from_code(o.i8(0)?)?;
    let data = n.input(0)?;
    let dtype = expect(n, data, &[DType::F32, DType::I8, DType::I16])?;
    let shape = &n.input_info(1)?.shape;
    let &[rows, columns] = shape.as_slice() else {
        return Err(format!("its weights must have 2 dimensions, found {shape:?}").into());
    };
    n.reserve_tables(rows)?;
    let flat = if n.ty(data).rank() == 2 && n.ty(data).shape().is_some_and(|s| s[1] == columns) {
        data
    } else {
        let columns = i64::try_from(columns).map_err(|_| "its weights are too large")?;
        n.node("flatten", Reshape { shape: vec![-1, columns] }, &[data])?
    };
    let mut out_shape = n.output_info()?.shape.clone();
    if n.output_info()?.is_open() {
        // Either the data's dimensions but for the last, or all of them as rows.
        let kept = n.shape(data)?;
        if out_shape.len() == kept.len() {
            out_shape = kept;
        }
        out_shape.pop();
        out_shape.push(rows);
    }
    let same = out_shape.len() == 2;
    let hybrid = matches!(n.input_info(1)?.ty, Type::I8 | Type::U8);
    let v = if dtype == DType::F32 && hybrid {
        // Floats with 8-bit weights are quantized row by row at run time.
        let info = n.input_info(1)?;
        let scale = symmetric_weights(info, 0, rows)?;
        let asymmetric = o.i8(3)? != 0;
        let weight = n.weight(1, "weight", false, None)?;
        let scale = n.made("scale", Tensor::vector(scale));
        let bias = bias_or_zeros(n, 2, rows)?;
        let v = n.node(before(act, "dense"), HybridDense { asymmetric }, &[flat, weight, scale, bias])?;
        activate(n, v, act)?
    } else if dtype == DType::F32 {
        let mut operands = vec![flat, n.weight(1, "weight", true, None)?];
        operands.extend(float_bias(n, 2)?);
        let v = n.node(before(act, "dense"), Dense { data_zero_point: 0, weight_zero_point: 0 }, &operands)?;
        activate(n, v, act)?
    } else {
        let (from, to) = (per_tensor(n.input_info(0)?)?, n.result()?);
        let info = n.input_info(1)?;
        let (scales, weight_zero_point) = weights(info, 0, rows)?;
        if dtype == DType::I16 {
            let (bias, weight) = (wide::bias(n, 2)?, n.constant_input(1)?);
            let factors = product_factors(n.input_info(0)?, from.scale, &scales, to.scale);
            let op = Dense { data_zero_point: 0, weight_zero_point: 0 };
            let sums = wide::sums(n, op, (0, flat), &weight, weight_zero_point)?;
            let v = wide::requantized_away(n, sums, bias, &factors, act)?;
            let v = if same { v } else { reshape_to(n, v, &out_shape)? };
            return n.output(v);
        }
        let (weight, bias) = (n.constant_input(1)?, integer_bias(n, 2, rows)?);
        let sums = greatest_sums(&weight, weight_zero_point, from.zero_point, &bias);
        let weight = n.made("weight", weight);
        let acc = n.node("dense", Dense { data_zero_point: from.zero_point, weight_zero_point }, &[flat, weight])?;
        // Everything in double precision, for uint8 too.
        let factor = |s: &f32| f64::from(from.scale) * f64::from(*s) / f64::from(to.scale);
        let factors: Vec<f64> = scales.iter().map(factor).collect();
        requantize_away(n, acc, bias, &factors, &sums, to, act)?
    };
    let v = if same { v } else { reshape_to(n, v, &out_shape)? };
    n.output(v)
}

pub(super) fn reshape_to(n: &mut NodeContext, v: ValueId, shape: &[usize]) -> Result<ValueId, Reason> {
    let shape =
        shape.iter().map(|&d| i64::try_from(d)).collect::<Result<_, _>>().map_err(|_| "its shape is too large")?;
    n.node("reshape", Reshape { shape }, &[v])
}

pub(super) fn float_bias(n: &mut NodeContext, at: usize) -> Result<Option<ValueId>, Reason> {
    if !n.has_input(at) {
        return Ok(None);
    }
    Ok(Some(n.weight(at, "bias", true, None)?))
}

fn bias_or_zeros(n: &mut NodeContext, at: usize, channels: usize) -> Result<ValueId, Reason> {
    let given = float_bias(n, at)?;
    Ok(given.unwrap_or_else(|| n.made("bias", Tensor::vector(vec![0f32; channels]))))
}

/// Fails if the type of quantized sums, `quantized_bias_type`, is set to one that operand `data` does not have.
pub(super) fn integer_sums(n: &NodeContext, code: i8, data: usize) -> Result<(), Reason> {
    match code {
        // FLOAT32, the field's default, or INT32.
        0 | 2 => Ok(()),
        // INT64.
        4 if wide::is_wide(n.input_info(data)?) => Ok(()),
        n => Err(format!("attribute quantized_bias_type is {}; supported is INT32", type_name(n)).into()),
    }
}

pub(super) fn integer_bias(n: &NodeContext, at: usize, channels: usize) -> Result<Vec<i32>, Reason> {
    if !n.has_input(at) {
        return Ok(vec![0; channels]);
    }
    let bias = n.constant_input(at)?;
    let v = bias.as_slice::<i32>().map_err(|e| Reason(format!("its bias: {e}")))?;
    if v.len() != channels {
        return Err(format!("its bias has {} values for {channels} channels", v.len()).into());
    }
    Ok(v.to_vec())
}
