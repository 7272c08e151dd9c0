//! `qadd`: `num::quantized_add`.

use tilewright_hw::num::QaddOperand;

use super::{broadcast, call};
use crate::graph::DType;
use crate::graph::op::QAdd;
use crate::te::{Builder, Expr, Func, TensorRef};

/// Both operands to a common scale, their sum, and that to the output's.
pub fn qadd(b: &mut Builder, op: &QAdd, x: &TensorRef, y: &TensorRef, out: &[i64]) -> TensorRef {
    let q = &op.params;
    let scale =
        |x: Expr, o: &QaddOperand| call(Func::ScaleDouble, [x, Expr::i32(o.multiplier), Expr::i32(o.shift as i32)]);
    b.compute("qadd", out, |i| {
        let term = |t: &TensorRef, o: &QaddOperand| {
            let v = t.at(&broadcast(i, out, &t.shape)).cast(DType::I32) - o.zero_point as i64;
            scale(v << (q.left_shift & 31) as i64, o)
        };
        let sum = scale(term(x, &q.a) + term(y, &q.b), &q.out);
        call(Func::OffsetClamp, [sum, Expr::i32(q.out.zero_point), Expr::i32(q.lo), Expr::i32(q.hi)]).cast(DType::I8)
    })
}
