//! `quantize`: converts real values to integers.

use super::{call, table};
use crate::graph::DType;
use crate::graph::op::{QuantRounding, Quantize};
use crate::te::{Builder, Expr, Func, TensorRef, scalar};

/// Appends `round(x / scale) + zero point`, clamped to the type's range.
pub fn quantize(b: &mut Builder, op: &Quantize, x: &TensorRef, out: &[i64]) -> TensorRef {
    let rounding = match op.rounding {
        QuantRounding::HalfEven => Func::RoundEven,
        QuantRounding::HalfAway => Func::RoundAway,
    };
    let (lo, hi) = scalar::range(op.dtype);
    b.compute("quantize", out, |i| {
        let channel = i.get(op.axis).cloned().unwrap_or_else(|| Expr::int(0));
        let scale = table(&channel, &op.scale.iter().map(|&s| Expr::f32(s)).collect::<Vec<_>>());
        let zero = table(&channel, &op.zero_point.iter().map(|&z| Expr::i32(z)).collect::<Vec<_>>());
        let q = call(rounding, [x.at(i) / scale]).cast(DType::I32);
        call(Func::OffsetClamp, [q, zero, Expr::i32(lo as i32), Expr::i32(hi as i32)]).cast(op.dtype)
    })
}
