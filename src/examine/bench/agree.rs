//! Whether two devices computed the same.

use tilewright_runtime::tensor::Tensor;

use crate::examine::diff::{Tolerance, compare};
use crate::model::Precision;

/// Whether two devices gave the same: integers exactly, floats up to the order of their sums, and where they were kept in 16 bits, of
/// which eleven count, up to what some dozen layers make of that.
pub(super) fn agree(a: &[Tensor], b: &[Tensor], precision: Precision) -> bool {
    let relative = match precision {
        Precision::F32 => 1e-5,
        Precision::F16 => 2e-2,
    };
    let order = Tolerance { steps: 0, relative };
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| compare(a, b, &order).is_none())
}
