//! `matmul`: products of matrices whose outer dimensions broadcast.

use super::broadcast;
use crate::graph::DType;
use crate::te::{Builder, Combiner, TensorRef};

/// `a [..., M, K]` times `b [..., K, N]`.
pub fn matmul(b: &mut Builder, x: &TensorRef, y: &TensorRef, out: &[i64]) -> TensorRef {
    let (rx, ry, ro) = (x.shape.len(), y.shape.len(), out.len());
    b.reduce("matmul", DType::F32, out, &[("k", x.shape[rx - 1])], Combiner::Sum, |i, r| {
        let mut at = broadcast(&i[..ro - 2], &out[..ro - 2], &x.shape[..rx - 2]);
        at.extend([i[ro - 2].clone(), r[0].clone()]);
        let mut to = broadcast(&i[..ro - 2], &out[..ro - 2], &y.shape[..ry - 2]);
        to.extend([r[0].clone(), i[ro - 1].clone()]);
        x.at(&at) * y.at(&to)
    })
}
