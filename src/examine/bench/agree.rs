//! Checks whether two devices computed the same.

use tilewright_runtime::tensor::Tensor;

use crate::examine::diff::{Tolerance, compare};
use crate::model::Precision;

/// Whether two devices computed the same: integers exactly, floats up to the order of summation. For f16 floats, which
/// have 11 significant bits, the tolerance covers the rounding of some dozen layers.
pub(super) fn agree(a: &[Tensor], b: &[Tensor], precision: Precision) -> bool {
    let relative = match precision {
        Precision::F32 => 1e-5,
        Precision::F16 => 2e-2,
    };
    let order = Tolerance { steps: 0, relative };
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| compare(a, b, &order).is_none())
}
