//! `dense`: rows of data times rows of weights.

use super::conv2d::product;
use super::window::constant;
use crate::graph::DType;
use crate::graph::op::Dense;
use crate::te::{Builder, TensorRef};

/// Appends a dense layer. Floats start the sum with the bias; integers subtract the zero points and sum products in
/// i32.
pub fn dense(
    b: &mut Builder,
    op: &Dense,
    x: &TensorRef,
    w: &TensorRef,
    bias: Option<&TensorRef>,
    out: &[i64],
) -> TensorRef {
    let sum = if x.dtype.is_float() { x.dtype } else { DType::I32 };
    b.sum_from(
        "dense",
        out,
        &[("k", w.shape[1])],
        |i| bias.map_or_else(|| constant(sum, 0), |bias| bias.at(&[i[1].clone()])),
        |i, r| {
            let (data, weight) = (x.at(&[i[0].clone(), r[0].clone()]), w.at(&[i[1].clone(), r[0].clone()]));
            product(data, weight, op.data_zero_point, op.weight_zero_point)
        },
    )
}
