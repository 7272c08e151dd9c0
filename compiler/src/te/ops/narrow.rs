//! `narrow`: floats rounded to those of a narrower type.

use super::call;
use crate::graph::DType;
use crate::graph::op::Narrow;
use crate::te::{BinOp, Builder, Expr, Func, TensorRef};

/// The bits of a float's exponent.
const EXPONENT: i64 = 0x7f80_0000;

/// Appends the nearest numbers of the narrower type.
pub fn narrow(b: &mut Builder, op: &Narrow, x: &TensorRef, out: &[i64]) -> TensorRef {
    b.compute(Narrow::NAME, out, |i| rounded(op, x.at(i)))
}

/// A multiple of the distance between the numbers around `x`, which is a power of two: `x` divided by it and multiplied
/// with it stays exact.
fn rounded(op: &Narrow, x: Expr) -> Expr {
    let float = op.float;
    let size = if float.is_scale() { x.clone() } else { call(Func::Abs, [x.clone()]) };
    let infinite = size.equals(Expr::f32(f32::INFINITY));
    let y = if float.is_scale() {
        let least = f32::MIN_POSITIVE / 2.0;
        let up = (x.clone().bitcast(DType::U32) + 0x7f_ffff).and(Expr::Int(EXPONENT, DType::U32)).bitcast(DType::F32);
        x.clone().le(Expr::f32(least)).select(Expr::f32(least), up)
    } else {
        let power = x.clone().bitcast(DType::I32).and(Expr::Int(EXPONENT, DType::I32)).bitcast(DType::F32);
        let least = 2f32.powi(float.least_exponent());
        let step = power.max(Expr::f32(least)) * Expr::f32(2f32.powi(-(float.fraction_bits() as i32)));
        call(Func::RoundEven, [x.clone() / step.clone()]) * step
    };
    let greatest = float.greatest();
    let saturates = op.saturate || !float.has_nan();
    let beyond = match (saturates, float.has_infinity()) {
        (true, _) => x.clone().lt(Expr::f32(0.0)).select(Expr::f32(-greatest), Expr::f32(greatest)),
        (false, true) => x.clone().lt(Expr::f32(0.0)).select(Expr::f32(f32::NEG_INFINITY), Expr::f32(f32::INFINITY)),
        (false, false) => Expr::f32(f32::NAN),
    };
    let over = Expr::f32(greatest).lt(call(Func::Abs, [y.clone()]));
    // The distance of infinity is infinite.
    let y = Expr::binary(BinOp::Or, infinite, over).select(beyond, y);
    let nan = if float.has_nan() { x.clone() } else { Expr::f32(-0.0) };
    let y = Expr::binary(BinOp::Ne, x.clone(), x).select(nan, y);
    if float.has_negative_zero() { y } else { y.clone().equals(Expr::f32(0.0)).select(Expr::f32(0.0), y) }
}
