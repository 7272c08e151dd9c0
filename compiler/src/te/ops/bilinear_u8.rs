//! `bilinear_u8`: resizes images of unsigned bytes, with interpolation in floats.

use super::call;
use crate::graph::DType;
use crate::graph::op::BilinearU8;
use crate::te::{Builder, Expr, Func, TensorRef};

/// Appends the weighted sum of four neighbors, in the reference's order of operations. `None` if an operand is missing.
pub fn bilinear_u8(b: &mut Builder, op: &BilinearU8, args: &[TensorRef], out: &[i64]) -> Option<TensorRef> {
    let [x, y0, y1, dy, x0, x1, dx] = args else { return None };
    Some(b.compute("bilinear_u8", out, |i| {
        let (row, column) = (&i[1..2], &i[2..3]);
        // Clamp the index, so that nothing outside the image is read.
        let place = |t: &TensorRef, at: &[Expr], size: i64| {
            t.at(at).cast(DType::I64).max(Expr::int(0)).min(Expr::int(size - 1))
        };
        let at = |y: &TensorRef, z: &TensorRef| {
            let (h, w) = (place(y, row, x.shape[1]), place(z, column, x.shape[2]));
            (x.at(&[i[0].clone(), h, w, i[3].clone()]).cast(DType::I32) + 128).cast(DType::F32)
        };
        let one = || Expr::f32(1.0);
        let (v, u) = (|| dy.at(row), || dx.at(column));
        let sum = at(y0, x0) * (one() - v()) * (one() - u())
            + at(y1, x0) * v() * (one() - u())
            + at(y0, x1) * (one() - v()) * u()
            + at(y1, x1) * v() * u();
        let whole = (sum + Expr::f32(op.offset)).cast(DType::I32);
        call(Func::OffsetClamp, [whole, Expr::i32(-128), Expr::i32(-128), Expr::i32(127)]).cast(DType::I8)
    }))
}
