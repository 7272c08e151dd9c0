//! `sum_pool2d`: sums of windows.

use super::window::{constant, index, padded, parts, tap};
use crate::graph::DType;
use crate::graph::op::{Layout, SumPool2d};
use crate::te::{Builder, Combiner, Expr, TensorRef};

/// A pooling window: kernel and strides in height and width, and the pads around the image (top, left, bottom, right).
pub struct Pool {
    pub kernel: [usize; 2],
    pub strides: [usize; 2],
    pub pads: [usize; 4],
    pub layout: Layout,
}

/// Appends the sum of `x - zero` over each window: i32 for i8, f32 for f32.
pub fn sums(b: &mut Builder, p: &Pool, x: &TensorRef, zero: i32, out: &[i64]) -> TensorRef {
    let source = padded(b, x, p.layout, &p.pads, constant(x.dtype, zero));
    let sum = if x.dtype.is_float() { x.dtype } else { DType::I32 };
    let reduce = [("kh", p.kernel[0] as i64), ("kw", p.kernel[1] as i64)];
    b.reduce("sum", sum, out, &reduce, Combiner::Sum, |i, r| {
        let [n, h, w, c] = parts(i, p.layout);
        let (h, w) = (tap(&h, &r[0], p.strides[0], 1), tap(&w, &r[1], p.strides[1], 1));
        let v = source.at(&index(p.layout, n, h, w, c)).cast(sum);
        if zero == 0 { v } else { v - zero as i64 }
    })
}

/// Returns the number of a window's elements inside the image, an i64.
pub fn count(p: &Pool, x: &TensorRef, i: &[Expr]) -> Expr {
    let [_, h, w, _] = parts(i, p.layout);
    let [ah, aw] = p.layout.spatial_axes();
    let along = |o: Expr, d: usize, axis: usize| {
        let k = p.kernel[d] as i64;
        if p.pads[d] == 0 && p.pads[d + 2] == 0 {
            return Expr::int(k);
        }
        let first = o * p.strides[d] as i64 - p.pads[d] as i64;
        (first.clone() + k).min(Expr::int(x.shape[axis])) - first.max(Expr::int(0))
    };
    along(h, 0, ah) * along(w, 1, aw)
}

/// Appends the operator.
pub fn sum_pool2d(b: &mut Builder, op: &SumPool2d, x: &TensorRef, out: &[i64]) -> TensorRef {
    let p = Pool { kernel: op.kernel, strides: op.strides, pads: op.pads, layout: op.layout };
    sums(b, &p, x, op.data_zero_point, out)
}
