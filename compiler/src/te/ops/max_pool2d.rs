//! `max_pool2d`: the greatest element of each window. The image is padded with the type's least value.

use super::window::{index, padded, parts, tap};
use crate::graph::op::MaxPool2d;
use crate::te::{Builder, Combiner, TensorRef};

/// Appends the greatest element of each window.
pub fn max_pool2d(b: &mut Builder, op: &MaxPool2d, x: &TensorRef, out: &[i64]) -> TensorRef {
    let source = padded(b, x, op.layout, &op.pads, Combiner::Max.identity(x.dtype));
    let reduce = [("kh", op.kernel[0] as i64), ("kw", op.kernel[1] as i64)];
    b.reduce("max_pool2d", x.dtype, out, &reduce, Combiner::Max, |i, r| {
        let [n, h, w, c] = parts(i, op.layout);
        let (h, w) = (tap(&h, &r[0], op.strides[0], op.dilations[0]), tap(&w, &r[1], op.strides[1], op.dilations[1]));
        source.at(&index(op.layout, n, h, w, c))
    })
}
