//! `qmatmul`: products of matrices of bytes whose outer dimensions broadcast.

use super::conv2d::product;
use super::matmul::places;
use crate::graph::DType;
use crate::graph::op::QMatMul;
use crate::te::{Builder, Combiner, TensorRef};

/// Appends `a [..., M, K]` times `b [..., K, N]`, each minus its zero point.
pub fn qmatmul(b: &mut Builder, op: &QMatMul, x: &TensorRef, y: &TensorRef, out: &[i64]) -> TensorRef {
    let depth = x.shape[x.shape.len() - 1];
    b.reduce("qmatmul", DType::I32, out, &[("k", depth)], Combiner::Sum, |i, r| {
        let (at, to) = places(x, y, i, out, &r[0]);
        product(x.at(&at), y.at(&to), op.a_zero_point, op.b_zero_point)
    })
}
