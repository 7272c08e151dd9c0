//! `matmul`: products of matrices whose outer dimensions broadcast.

use super::broadcast;
use crate::te::{Builder, Combiner, Expr, TensorRef};

/// Appends `a [..., M, K]` times `b [..., K, N]`.
pub fn matmul(b: &mut Builder, x: &TensorRef, y: &TensorRef, out: &[i64]) -> TensorRef {
    let depth = x.shape[x.shape.len() - 1];
    b.reduce("matmul", x.dtype, out, &[("k", depth)], Combiner::Sum, |i, r| {
        let (at, to) = places(x, y, i, out, &r[0]);
        x.at(&at) * y.at(&to)
    })
}

/// Returns the indices of the two factors at step `k` of the sum for element `i` of the product.
pub(super) fn places(x: &TensorRef, y: &TensorRef, i: &[Expr], out: &[i64], k: &Expr) -> (Vec<Expr>, Vec<Expr>) {
    let (rx, ry, ro) = (x.shape.len(), y.shape.len(), out.len());
    let mut at = broadcast(&i[..ro - 2], &out[..ro - 2], &x.shape[..rx - 2]);
    at.extend([i[ro - 2].clone(), k.clone()]);
    let mut to = broadcast(&i[..ro - 2], &out[..ro - 2], &y.shape[..ry - 2]);
    to.extend([k.clone(), i[ro - 1].clone()]);
    (at, to)
}
