//! Products of matrices, and of stacks of them.

use super::SemanticBuilder;
use crate::frontend::reason::Reason;
use crate::graph::op::{Dense, MatMul};
use crate::graph::{Op, ValueId};

/// Converts one-dimensional operands to matrices. The flags say which ones were converted.
pub fn as_matrices(n: &mut SemanticBuilder, a: ValueId, b: ValueId) -> Result<([ValueId; 2], [bool; 2]), Reason> {
    for (name, v) in [("left", a), ("right", b)] {
        if n.ty(v).rank() == 0 {
            return Err(format!("its {name} operand is a scalar, {}; one dimension or more are needed", n.ty(v)).into());
        }
    }
    let lines = [n.ty(a).rank() == 1, n.ty(b).rank() == 1];
    let (mut a, mut b) = (a, b);
    if lines[0] {
        let k = n.shape(a)?[0];
        a = n.reshape("a/row", a, &[1, k])?;
    }
    if lines[1] {
        let k = n.shape(b)?[0];
        b = n.reshape("b/column", b, &[k, 1])?;
    }
    Ok(([a, b], lines))
}

/// Removes the dimensions that [`as_matrices`] added from the result.
pub fn without(n: &mut SemanticBuilder, v: ValueId, lines: [bool; 2]) -> Result<ValueId, Reason> {
    if lines == [false; 2] {
        return Ok(v);
    }
    let mut shape = n.shape(v)?;
    if lines[1] {
        shape.pop();
    }
    if lines[0] {
        shape.remove(shape.len() - 1 - usize::from(!lines[1]));
    }
    n.reshape("", v, &shape)
}

/// The product of two tensors.
pub fn matrices(n: &mut SemanticBuilder, a: ValueId, b: ValueId) -> Result<ValueId, Reason> {
    let ([a, b], lines) = as_matrices(n, a, b)?;
    let v = multiplied(n, a, b, Dense { data_zero_point: 0, weight_zero_point: 0 }, MatMul {})?;
    without(n, v, lines)
}

/// The product of matrices, or of stacks of them. If `b` is a matrix of weights, also dequantized ones, it becomes a
/// dense layer over rows.
pub fn multiplied(
    n: &mut SemanticBuilder,
    a: ValueId,
    b: ValueId,
    dense: Dense,
    matmul: impl Into<Op>,
) -> Result<ValueId, Reason> {
    let weight = match n.def(b) {
        Some(node) => match node.op {
            Op::Constant(_) => true,
            Op::Dequantize(_) => n.constant_of(node.inputs[0]).is_some(),
            _ => false,
        },
        None => false,
    };
    let rank = n.ty(a).rank();
    let sizes = n.ty(a).shape().filter(|s| s[rank - 1] > 0);
    match sizes {
        _ if !weight || n.ty(b).rank() != 2 => n.node("", matmul, &[a, b]),
        _ if rank == 2 => {
            let b = n.transposed("weight", b, &[1, 0])?;
            n.node("", dense, &[a, b])
        }
        Some(mut shape) => {
            let b = n.transposed("weight", b, &[1, 0])?;
            let k = shape[rank - 1];
            let rows = n.reshape("rows", a, &[shape[..rank - 1].iter().product(), k])?;
            let v = n.node("dense", dense, &[rows, b])?;
            shape[rank - 1] = n.shape(b)?[0];
            n.reshape("", v, &shape)
        }
        None => n.node("", matmul, &[a, b]),
    }
}
