//! Reductions over rows of neighboring elements, in lanes of vectors.

use crate::graph::DType;
use crate::math::{LANES, in_lanes};
use crate::te::{Builder, Combiner, Expr, TensorRef};

/// Appends the reduction of each row of `n` elements; `at` reads one. Long rows first have a partial result for each
/// lane, so that neighboring elements are combined side by side; float sums have the order of
/// [`row_sum`](crate::math::row_sum).
pub fn reduce(
    b: &mut Builder,
    name: &str,
    dtype: DType,
    rows: &[i64],
    n: i64,
    combiner: Combiner,
    at: impl Fn(&[Expr], &Expr) -> Expr,
) -> TensorRef {
    if !usize::try_from(n).is_ok_and(in_lanes) {
        return b.reduce(name, dtype, rows, &[("k", n)], combiner, |i, k| at(i, &k[0]));
    }
    let width = LANES as i64;
    let [vectors, rest] = [n / width, n % width];
    let parts: Vec<i64> = rows.iter().copied().chain([width]).collect();
    let parts = b.reduce(&format!("{name}_lanes"), dtype, &parts, &[("k", vectors)], combiner, |i, k| {
        let (lane, row) = (i[rows.len()].clone(), &i[..rows.len()]);
        at(row, &(k[0].clone() * width + lane))
    });
    let joined = |i: &[Expr], k: &[Expr]| parts.at(&[i, k].concat());
    if rest == 0 {
        return b.reduce(name, dtype, rows, &[("k", width)], combiner, joined);
    }
    let whole = b.reduce(&format!("{name}_whole"), dtype, rows, &[("k", width)], combiner, joined);
    let tail = b.reduce(&format!("{name}_rest"), dtype, rows, &[("k", rest)], combiner, |i, k| {
        at(i, &(k[0].clone() + vectors * width))
    });
    b.compute(name, rows, |i| Expr::binary(combiner.op(), whole.at(i), tail.at(i)))
}
