//! `transpose`: permutes dimensions.

use crate::graph::op::Transpose;
use crate::te::{Builder, Expr, TensorRef};

/// Appends a transpose. Dimension `i` of the result is dimension `perm[i]` of the data.
pub fn transpose(b: &mut Builder, op: &Transpose, x: &TensorRef, out: &[i64]) -> TensorRef {
    b.compute("transpose", out, |i| {
        let mut at = vec![Expr::int(0); i.len()];
        for (e, &p) in i.iter().zip(&op.perm) {
            at[p] = e.clone();
        }
        x.at(&at)
    })
}
