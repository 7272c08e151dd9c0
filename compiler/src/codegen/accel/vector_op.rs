//! Functions of two elements that the vector unit computes in one operation.

use crate::graph::op::BinaryKind;
use tilewright_hw::isa::VecOp;

/// Returns the vector operation for a function of two elements, if there is one.
///
/// The function must be commutative, because a constant always becomes the second operand.
pub fn elementwise(kind: BinaryKind) -> Option<VecOp> {
    let op = match kind {
        BinaryKind::Min => VecOp::Min,
        BinaryKind::Max => VecOp::Max,
        _ => return None,
    };
    Some(op)
}
