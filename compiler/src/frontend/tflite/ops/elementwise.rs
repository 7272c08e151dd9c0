//! ADD, RELU, RELU_N1_TO_1 and RELU6.

use super::{activate, before, expect};
use crate::frontend::tflite::quant::{Activation, per_tensor};
use crate::frontend::tflite::{NodeContext, Reason};
use crate::graph::DType;
use crate::graph::op::{Add, QAdd, Rescale};
use tilewright_hw::num::{Qadd, QaddOperand, Rounding, quantize_multiplier};

/// What 8-bit operands of an addition are multiplied by before they are scaled, as a power of two.
const LEFT_SHIFT: u8 = 20;

pub(super) fn add(n: &mut NodeContext) -> Result<(), Reason> {
    let code = n.op.options.map_or(Ok(0), |o| o.i8(0))?;
    let act = Activation::from_code(code)?;
    let (a, b) = (n.input(0)?, n.input(1)?);
    if expect(n, a, &[DType::F32, DType::I8])? == DType::F32 {
        let v = n.node(before(act, "add"), Add {}, &[a, b])?;
        let v = activate(n, v, act)?;
        return n.output(v);
    }
    let (qa, qb) = (per_tensor(n.input_info(0)?)?, per_tensor(n.input_info(1)?)?);
    let out = per_tensor(n.output_info()?)?;
    let twice = 2.0 * f64::from(qa.scale.max(qb.scale));
    let operand = |zero_point: i32, factor: f64| {
        let (multiplier, shift) = quantize_multiplier(factor);
        QaddOperand { zero_point, multiplier, shift }
    };
    let (lo, hi) = act.range(out);
    let params = Qadd {
        a: operand(qa.zero_point, f64::from(qa.scale) / twice),
        b: operand(qb.zero_point, f64::from(qb.scale) / twice),
        out: operand(out.zero_point, twice / (f64::from(1u32 << LEFT_SHIFT) * f64::from(out.scale))),
        left_shift: LEFT_SHIFT,
        lo,
        hi,
    };
    let v = n.node("", QAdd { params }, &[a, b])?;
    n.output(v)
}

pub(super) fn relu(n: &mut NodeContext) -> Result<(), Reason> {
    activation(n, Activation::Relu)
}

pub(super) fn relu_n1_to_1(n: &mut NodeContext) -> Result<(), Reason> {
    activation(n, Activation::ReluN1To1)
}

pub(super) fn relu6(n: &mut NodeContext) -> Result<(), Reason> {
    activation(n, Activation::Relu6)
}

fn activation(n: &mut NodeContext, act: Activation) -> Result<(), Reason> {
    let data = n.input(0)?;
    if expect(n, data, &[DType::F32, DType::I8])? == DType::F32 {
        let v = activate(n, data, act)?;
        return n.output(v);
    }
    let (from, to) = (per_tensor(n.input_info(0)?)?, per_tensor(n.output_info()?)?);
    let (multiplier, shift) = quantize_multiplier(f64::from(from.scale) / f64::from(to.scale));
    let (lo, hi) = act.range(to);
    let op = Rescale {
        data_zero_point: from.zero_point,
        multiplier,
        shift,
        zero_point: to.zero_point,
        lo,
        hi,
        mode: Rounding::Double,
    };
    let v = n.node("", op, &[data])?;
    n.output(v)
}
