//! `requantize` and `rescale`: `num::requantize`.

use tilewright_hw::num::Rounding;

use super::call;
use crate::graph::DType;
use crate::graph::op::{Requantize, Rescale};
use crate::te::{Builder, Expr, Func, TensorRef};

pub(super) fn scale(mode: Rounding) -> Func {
    match mode {
        Rounding::Double => Func::ScaleDouble,
        Rounding::Single => Func::ScaleSingle,
    }
}

/// Appends requantized accumulators, with bias, multiplier and shift per channel. `None` if an operand is missing.
pub fn requantize(b: &mut Builder, op: &Requantize, args: &[TensorRef], out: &[i64]) -> Option<TensorRef> {
    let [acc, bias, multiplier, shift] = args else { return None };
    Some(b.compute("requantize", out, |i| {
        let c = &i[op.axis..=op.axis];
        let scaled = call(scale(op.mode), [acc.at(i) + bias.at(c), multiplier.at(c), shift.at(c)]);
        let [zero, lo, hi] = [op.zero_point, op.lo, op.hi].map(Expr::i32);
        call(Func::OffsetClamp, [scaled, zero, lo, hi]).cast(DType::I8)
    }))
}

/// Appends bytes converted from one scale and zero point to another.
pub fn rescale(b: &mut Builder, op: &Rescale, x: &TensorRef, out: &[i64]) -> TensorRef {
    let r = op.requant();
    b.compute("rescale", out, |i| {
        let v = x.at(i).cast(DType::I32) + r.bias as i64;
        let scaled = call(scale(r.mode), [v, Expr::i32(r.multiplier), Expr::i32(r.shift as i32)]);
        let [zero, lo, hi] = [r.zero_point, r.lo, r.hi].map(Expr::i32);
        call(Func::OffsetClamp, [scaled, zero, lo, hi]).cast(DType::I8)
    })
}
