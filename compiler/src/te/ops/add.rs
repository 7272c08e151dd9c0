//! `add`: the sum of operands that broadcast.

use super::broadcast;
use crate::te::{Builder, TensorRef};

/// Appends `x + y`.
pub fn add(b: &mut Builder, x: &TensorRef, y: &TensorRef, out: &[i64]) -> TensorRef {
    b.compute("add", out, |i| x.at(&broadcast(i, out, &x.shape)) + y.at(&broadcast(i, out, &y.shape)))
}
