//! Element-wise operators of two operands, and RELU, RELU_N1_TO_1 and RELU6.

use super::{activate, before, expect, fixed};
use crate::frontend::reason::Reason;
use crate::frontend::tflite::quant::{self, Activation, PerTensor, per_tensor};
use crate::frontend::tflite::{NodeContext, wide};
use crate::graph::op::{Add, Binary, BinaryKind, Clip, Op, QAdd, QMul, QSquaredDifference, Rescale, UnaryKind};
use crate::graph::{DType, ValueId};
use tilewright_hw::num::{Qadd, QaddOperand, Rounding, byte_multiplier, quantize_multiplier};

/// 8-bit operands of an addition are multiplied by this power of two before they are scaled.
const ADD_SHIFT: u8 = 20;
/// The same for a squared difference.
const SQUARE_SHIFT: u8 = 7;

/// The operands, their type, and the fused activation.
fn operands(n: &mut NodeContext, types: &[DType]) -> Result<([ValueId; 2], DType, Activation), Reason> {
    let code = n.op.options.map_or(Ok(0), |o| o.i8(0))?;
    let act = Activation::from_code(code)?;
    let both = [n.input(0)?, n.input(1)?];
    let dtype = expect(n, both[0], types)?;
    Ok((both, dtype, act))
}

/// An operator without quantization, followed by its activation.
fn plain(n: &mut NodeContext, op: impl Into<Op>, both: [ValueId; 2], act: Activation) -> Result<(), Reason> {
    let op = op.into();
    let suffix = before(act, op.name());
    let v = n.node(suffix, op, &both)?;
    let v = match (n.ty(v).dtype, act) {
        (_, Activation::None) | (DType::F32, _) => activate(n, v, act)?,
        (other, _) => return Err(format!("a fused activation on {other} is not supported").into()),
    };
    n.output(v)
}

fn quantized(n: &NodeContext) -> Result<[PerTensor; 3], Reason> {
    Ok([per_tensor(n.input_info(0)?)?, per_tensor(n.input_info(1)?)?, n.result()?])
}

fn operand(zero_point: i32, factor: f64) -> QaddOperand {
    let (multiplier, shift) = quantize_multiplier(factor);
    QaddOperand { zero_point, multiplier, shift }
}

/// Parameters that bring both operands to twice the greater scale, shifted left, and scale the result from there by
/// `out`.
///
/// # Errors
/// If `out` is 1 or more, which the kernels refuse.
fn common_scale(q: [PerTensor; 3], left_shift: u8, out: f64, (lo, hi): (i32, i32)) -> Result<Qadd, Reason> {
    if out >= 1.0 {
        let (from, to) = (q[0].scale.max(q[1].scale), q[2].scale);
        return Err(format!("its result's scale {to} is too small for its operands' scale {from}, as in TFLite").into());
    }
    let twice = quant::common_scale([q[0].scale, q[1].scale]);
    Ok(Qadd {
        a: operand(q[0].zero_point, f64::from(q[0].scale) / twice),
        b: operand(q[1].zero_point, f64::from(q[1].scale) / twice),
        out: operand(q[2].zero_point, out),
        left_shift,
        lo,
        hi,
    })
}

fn sum(n: &NodeContext, act: Activation) -> Result<Qadd, Reason> {
    let q = quantized(n)?;
    let twice = quant::common_scale([q[0].scale, q[1].scale]);
    let out = twice / (f64::from(1u32 << ADD_SHIFT) * f64::from(q[2].scale));
    common_scale(q, ADD_SHIFT, out, act.range(q[2]))
}

pub(super) fn add(n: &mut NodeContext) -> Result<(), Reason> {
    let (both, dtype, act) = operands(n, &[DType::F32, DType::I8, DType::I16, DType::I32])?;
    if dtype == DType::I16 {
        return wide_sum(n, both, false, act);
    }
    if dtype != DType::I8 {
        return plain(n, Add {}, both, act);
    }
    let params = sum(n, act)?;
    let v = n.node("", QAdd { params }, &both)?;
    n.output(v)
}

/// The sum or difference of operands of 16 bits.
fn wide_sum(n: &mut NodeContext, both: [ValueId; 2], is_difference: bool, act: Activation) -> Result<(), Reason> {
    if n.op.options.map_or(Ok(false), |o| o.bool_or(1, true))? {
        return Err("attribute pot_scale_int16 is true; supported is false".into());
    }
    let v = wide::sum(n, both, is_difference, act)?;
    n.output(v)
}

/// A quantized difference is a sum with a negative multiplier, as in the kernels.
pub(super) fn sub(n: &mut NodeContext) -> Result<(), Reason> {
    let (both, dtype, act) = operands(n, &[DType::F32, DType::I8, DType::I16, DType::I32, DType::I64])?;
    if dtype == DType::I16 {
        return wide_sum(n, both, true, act);
    }
    if dtype != DType::I8 {
        return plain(n, Binary { kind: BinaryKind::Sub }, both, act);
    }
    let mut params = sum(n, act)?;
    params.b.multiplier = -params.b.multiplier;
    let v = n.node("", QAdd { params }, &both)?;
    n.output(v)
}

pub(super) fn mul(n: &mut NodeContext) -> Result<(), Reason> {
    let (both, dtype, act) = operands(n, &[DType::F32, DType::I8, DType::I16, DType::I32, DType::I64])?;
    if !matches!(dtype, DType::I8 | DType::I16) {
        return plain(n, Binary { kind: BinaryKind::Mul }, both, act);
    }
    let [a, b, to] = quantized(n)?;
    // Product and quotient in single precision, as in the kernel's preparation.
    let factor = fixed("scales", a.scale * b.scale / to.scale)?;
    if dtype == DType::I16 {
        let v = wide::product(n, both, factor.into(), act)?;
        return n.output(v);
    }
    let (multiplier, shift) = byte_multiplier(f64::from(factor));
    let (lo, hi) = act.range(to);
    let op = QMul {
        a_zero_point: a.zero_point,
        b_zero_point: b.zero_point,
        multiplier,
        shift,
        zero_point: to.zero_point,
        lo,
        hi,
        mode: Rounding::Double,
    };
    let v = n.node("", op, &both)?;
    n.output(v)
}

pub(super) fn div(n: &mut NodeContext) -> Result<(), Reason> {
    let (both, _, act) = operands(n, &[DType::F32, DType::I32])?;
    plain(n, Binary { kind: BinaryKind::Div }, both, act)
}

pub(super) fn pow(n: &mut NodeContext) -> Result<(), Reason> {
    let both = [n.input(0)?, n.input(1)?];
    expect(n, both[0], &[DType::F32])?;
    let v = n.binary("", BinaryKind::Pow, both[0], both[1])?;
    n.output(v)
}

/// The quotient of floats, rounded down.
pub(super) fn floor_div(n: &mut NodeContext) -> Result<(), Reason> {
    let both = [n.input(0)?, n.input(1)?];
    expect(n, both[0], &[DType::F32])?;
    let quotient = n.binary("quotient", BinaryKind::Div, both[0], both[1])?;
    let v = n.unary("", UnaryKind::Floor, quotient)?;
    n.output(v)
}

pub(super) fn squared_difference(n: &mut NodeContext) -> Result<(), Reason> {
    let both = [n.input(0)?, n.input(1)?];
    if expect(n, both[0], &[DType::F32, DType::I8])? == DType::F32 {
        let d = n.node("difference", Binary { kind: BinaryKind::Sub }, &both)?;
        let v = n.node("", Binary { kind: BinaryKind::Mul }, &[d, d])?;
        return n.output(v);
    }
    let q = quantized(n)?;
    let twice = quant::common_scale([q[0].scale, q[1].scale]);
    let out = twice * twice / (f64::from(1u32 << (2 * SQUARE_SHIFT)) * f64::from(q[2].scale));
    let params = common_scale(q, SQUARE_SHIFT, out, (-128, 127))?;
    let v = n.node("", QSquaredDifference { params }, &both)?;
    n.output(v)
}

pub(super) fn maximum(n: &mut NodeContext) -> Result<(), Reason> {
    extreme(n, BinaryKind::Max)
}

pub(super) fn minimum(n: &mut NodeContext) -> Result<(), Reason> {
    extreme(n, BinaryKind::Min)
}

/// Bytes are compared directly, so operands and result must have the same quantization.
fn extreme(n: &mut NodeContext, kind: BinaryKind) -> Result<(), Reason> {
    let both = [n.input(0)?, n.input(1)?];
    let types = [DType::F32, DType::I8, DType::I16, DType::I32, DType::I64];
    if matches!(expect(n, both[0], &types)?, DType::I8 | DType::I16) {
        let [a, b, to] = quantized(n)?;
        if a != to || b != to {
            return Err("operands and result must have the same scale and zero point".into());
        }
    }
    let v = n.node("", Binary { kind }, &both)?;
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

pub(super) fn relu_0_to_1(n: &mut NodeContext) -> Result<(), Reason> {
    activation(n, Activation::Relu0To1)
}

fn activation(n: &mut NodeContext, act: Activation) -> Result<(), Reason> {
    let data = n.input(0)?;
    let dtype = expect(n, data, &[DType::F32, DType::I8, DType::I16])?;
    if dtype == DType::F32 {
        let v = activate(n, data, act)?;
        return n.output(v);
    }
    let (from, to) = (per_tensor(n.input_info(0)?)?, n.result()?);
    if dtype == DType::I16 {
        let (factor, bounds) = (fixed("scales", from.scale / to.scale)?, act.range_in(to, wide::RANGE));
        let v = wide::rescaled(n, data, factor.into(), bounds)?;
        return n.output(v);
    }
    let (lo, hi) = act.range(to);
    if from == to {
        // 1 times the data, rounded, is the data.
        let v = n.node("", Clip { lo: lo as f32, hi: hi as f32 }, &[data])?;
        return n.output(v);
    }
    // A quotient in single precision, as in the kernel's preparation (`ReluPrepare`).
    let (multiplier, shift) = byte_multiplier(f64::from(fixed("scales", from.scale / to.scale)?));
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
