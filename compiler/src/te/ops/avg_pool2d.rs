//! `avg_pool2d` and `global_avg_pool`: sums of windows divided by the number of elements counted.

use tilewright_hw::num::{Rounding, average_multiplier};

use super::sum_pool2d::{Pool, count, sums};
use super::window::{constant, index, padded, parts, tap};
use super::{call, table};
use crate::graph::DType;
use crate::graph::op::{AvgPool2d, GlobalAvgPool, QAvgPool2d};
use crate::te::{BinOp, Builder, Combiner, Expr, Func, TensorRef};

/// Most elements for which `num::average_multiplier` equals division.
const MAX_MULTIPLIER_COUNT: i64 = 2952;
/// Most elements for sums of unsigned bytes, up to 255 times the count: the multiplier's error stays below half of 1 /
/// count.
const MAX_UNSIGNED_COUNT: i64 = 2048;

/// Appends the mean of each window.
pub fn avg_pool2d(b: &mut Builder, op: &AvgPool2d, x: &TensorRef, out: &[i64]) -> TensorRef {
    let p = Pool { kernel: op.kernel, strides: op.strides, pads: op.pads, layout: op.layout };
    mean(b, &p, op.count_include_pad, x, ([op.lo, op.hi], op.unsigned), out)
}

/// Appends the mean over height and width.
pub fn global_avg_pool(b: &mut Builder, op: &GlobalAvgPool, x: &TensorRef, out: &[i64]) -> TensorRef {
    let kernel = op.layout.spatial_axes().map(|a| x.shape[a] as usize);
    let p = Pool { kernel, strides: [1, 1], pads: [0; 4], layout: op.layout };
    mean(b, &p, true, x, ([op.lo, op.hi], false), out)
}

/// Appends the mean of each window's elements inside the image, rescaled to the output's scale.
pub fn qavg_pool2d(b: &mut Builder, op: &QAvgPool2d, x: &TensorRef, out: &[i64]) -> TensorRef {
    let p = Pool { kernel: op.kernel, strides: op.strides, pads: op.pads, layout: op.layout };
    let sum = sums(b, &p, x, op.data_zero_point, out);
    let scale = match op.mode {
        Rounding::Double => Func::ScaleDouble,
        Rounding::Single => Func::ScaleSingle,
    };
    b.compute("mean", out, |i| {
        let place = count(&p, x, i) - 1;
        let of = |v: &[i32]| table(&place, &v.iter().map(|&v| Expr::i32(v)).collect::<Vec<_>>());
        let scaled = call(scale, [sum.at(i), of(&op.multiplier), of(&op.shift)]);
        let [zero, lo, hi] = [op.zero_point, op.lo, op.hi].map(Expr::i32);
        call(Func::OffsetClamp, [scaled, zero, lo, hi]).cast(DType::I8)
    })
}

fn mean(
    b: &mut Builder,
    p: &Pool,
    all: bool,
    x: &TensorRef,
    (clamp, unsigned): ([i32; 2], bool),
    out: &[i64],
) -> TensorRef {
    let sum = if x.dtype.is_float() { float_sums(b, p, x, out) } else { sums(b, p, x, 0, out) };
    let area = p.kernel[0] as i64 * p.kernel[1] as i64;
    let fixed = all || p.pads.iter().all(|&n| n == 0);
    b.compute("mean", out, |i| {
        let n = if fixed { Expr::int(area) } else { count(p, x, i).max(Expr::int(1)) };
        let s = sum.at(i);
        if x.dtype.is_float() {
            return s / n.cast(x.dtype);
        }
        // Unsigned bytes are stored minus 128: add 128 per element, which makes the sum non-negative.
        let zero = if unsigned { 128 } else { 0 };
        let s = if unsigned { s + (n.clone() * 128).cast(DType::I32) } else { s };
        let most = if unsigned { MAX_UNSIGNED_COUNT } else { MAX_MULTIPLIER_COUNT };
        let quotient = match (fixed, area) {
            (_, 1) => s,
            (true, 2..) if area <= most => {
                call(Func::ScaleSingle, [s, Expr::i32(average_multiplier(area as u32)), Expr::i32(0)])
            }
            (false, _) if area <= most => {
                let multiplier = (Expr::int(1 << 31) / n.clone() + 1).cast(DType::I32);
                let divided = call(Func::ScaleSingle, [s.clone(), multiplier, Expr::i32(0)]);
                n.equals(Expr::int(1)).select(s, divided)
            }
            _ => divide(s.cast(DType::I64), n).cast(DType::I32),
        };
        call(Func::OffsetClamp, [quotient, Expr::i32(-zero), Expr::i32(clamp[0]), Expr::i32(clamp[1])]).cast(DType::I8)
    })
}

/// Appends sums of floats: first each column of a window, then the columns, in the order of other runtimes. In
/// quantized networks with averages halfway between two integers, the rounding error of the sum decides the result.
fn float_sums(b: &mut Builder, p: &Pool, x: &TensorRef, out: &[i64]) -> TensorRef {
    let source = padded(b, x, p.layout, &p.pads, constant(x.dtype, 0));
    let [height, _] = p.layout.spatial_axes();
    let mut shape = source.shape.clone();
    shape[height] = out[height];
    let columns = b.reduce("columns", x.dtype, &shape, &[("kh", p.kernel[0] as i64)], Combiner::Sum, |i, r| {
        let [n, h, w, c] = parts(i, p.layout);
        source.at(&index(p.layout, n, tap(&h, &r[0], p.strides[0], 1), w, c))
    });
    b.reduce("sum", x.dtype, out, &[("kw", p.kernel[1] as i64)], Combiner::Sum, |i, r| {
        let [n, h, w, c] = parts(i, p.layout);
        columns.at(&index(p.layout, n, h, tap(&w, &r[0], p.strides[1], 1), c))
    })
}

/// Returns the i64 quotient, with ties away from zero.
fn divide(s: Expr, n: Expr) -> Expr {
    let half = n.clone() / 2;
    let negative = Expr::binary(BinOp::Lt, s.clone(), Expr::int(0));
    let down = Expr::int(0) - (Expr::int(0) - s.clone() + half.clone()) / n.clone();
    negative.select(down, (s + half) / n)
}
