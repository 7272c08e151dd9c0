//! Functions of two elements that the vector unit computes in one operation.

use crate::graph::op::BinaryKind;
use tilewright_hw::isa::VecOp;

/// The vector unit's operation for a function of two elements, if it has one. The order of the operands must not matter: a
/// constant comes second whichever operand it was.
pub fn elementwise(kind: BinaryKind) -> Option<VecOp> {
    let op = match kind {
        BinaryKind::Min => VecOp::Min,
        BinaryKind::Max => VecOp::Max,
        _ => return None,
    };
    Some(op)
}
