//! TRANSPOSE_CONV.

use super::conv::{float_bias, integer_bias, integer_sums};
use super::{activate, before, expect, padding, size};
use crate::frontend::reason::Reason;
use crate::frontend::tflite::quant::{Activation, per_tensor, weights};
use crate::frontend::tflite::scaling::{Scaling, greatest_sums, product_factors, requantize};
use crate::frontend::tflite::{NodeContext, wide};
use crate::graph::DType;
use crate::graph::op::{ConvTranspose2d, Layout};

pub(super) fn transpose_conv(n: &mut NodeContext) -> Result<(), Reason> {
    let o = n.op.options.ok_or("it has no options")?;
    integer_sums(n, o.i8(4)?, 2)?;
    let act = Activation::from_code(o.i8(3)?)?;
    let strides = [size("stride", o.i32(2)?)?, size("stride", o.i32(1)?)?];
    let data = n.input(2)?;
    let dtype = expect(n, data, &[DType::F32, DType::I8, DType::I16])?;
    let kernel = &n.input_info(1)?.shape;
    let shape = match n.declared_shape(0)? {
        Some(shape) => shape,
        None => n.integers(0)?.into_iter().filter_map(|size| usize::try_from(size).ok()).collect(),
    };
    let (&[_, height, width, _], &[channels, kh, kw, _]) = (shape.as_slice(), kernel.as_slice()) else {
        return Err(format!("result and weights must have 4 dimensions, found {kernel:?} for the weights").into());
    };
    n.reserve_tables(channels)?;
    let code = o.i8(0)?;
    // The padding of the convolution from the result to the data.
    let pads = [padding(code, height, kh, strides[0], 1)?.0, padding(code, width, kw, strides[1], 1)?.0];
    let mut op = ConvTranspose2d {
        strides,
        pads,
        size: [height, width],
        dilations: [1, 1],
        groups: 1,
        layout: Layout::Nhwc,
        data_zero_point: 0,
        weight_zero_point: 0,
    };
    if dtype == DType::F32 {
        let mut operands = vec![data, n.weight(1, "weight", true, None)?];
        operands.extend(float_bias(n, 3)?);
        let v = n.node(before(act, "conv_transpose2d"), op, &operands)?;
        let v = activate(n, v, act)?;
        return n.output(v);
    }
    let (from, to) = (per_tensor(n.input_info(2)?)?, n.result()?);
    let (scales, zero_point) = weights(n.input_info(1)?, 0, channels)?;
    let weight = n.constant_input(1)?;
    let factors = product_factors(n.input_info(2)?, from.scale, &scales, to.scale);
    if dtype == DType::I16 {
        let (bias, sums) = (wide::bias(n, 3)?, wide::sums(n, op, (2, data), &weight, zero_point)?);
        let v = wide::requantized(n, sums, bias, &factors, act)?;
        return n.output(v);
    }
    let bias = integer_bias(n, 3, channels)?;
    let scaling = Scaling::double(&factors, || greatest_sums(&weight, zero_point, from.zero_point, &bias))?;
    let weight = n.made("weight", weight);
    (op.data_zero_point, op.weight_zero_point) = (from.zero_point, zero_point);
    let acc = n.node("conv_transpose2d", op, &[data, weight])?;
    let v = requantize(n, acc, 3, bias, scaling, to, act)?;
    n.output(v)
}
