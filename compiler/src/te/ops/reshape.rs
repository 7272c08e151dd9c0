//! `reshape`: the same elements in row-major order with another shape.

use crate::te::{Builder, Expr, TensorRef};

/// Appends a reshape. If only dimensions of size 1 come or go, the other indices stay plain variables.
pub fn reshape(b: &mut Builder, x: &TensorRef, out: &[i64]) -> TensorRef {
    b.compute("reshape", out, |i| {
        let wide = |shape: &[i64]| -> Vec<usize> { (0..shape.len()).filter(|&d| shape[d] != 1).collect() };
        let (from, to) = (wide(&x.shape), wide(out));
        let mut at = vec![Expr::int(0); x.shape.len()];
        if from.len() == to.len() && from.iter().zip(&to).all(|(&f, &t)| x.shape[f] == out[t]) {
            for (&f, &t) in from.iter().zip(&to) {
                at[f] = i[t].clone();
            }
            return x.at(&at);
        }
        let flat = i.iter().zip(out).fold(Expr::int(0), |sum, (e, &n)| sum * n + e.clone());
        let mut step = 1;
        for d in (0..x.shape.len()).rev() {
            at[d] = flat.clone() / step % x.shape[d].max(1);
            step *= x.shape[d].max(1);
        }
        x.at(&at)
    })
}
