//! Gemm and MatMul.

use crate::frontend::onnx::node::{NodeContext, Reason};
use crate::graph::op::{BinaryKind, Dense, MatMul, Transpose};
use crate::graph::{Op, ValueId};

pub(super) fn gemm(n: &mut NodeContext) -> Result<(), Reason> {
    let (a, b) = (n.plain(0)?, n.input(1)?);
    let c = if n.has_input(2) { Some(n.plain(2)?) } else { None };
    let v = product(n, a, b, c)?;
    n.output(v)
}

/// `alpha * a * b + beta * c` with the node's attributes.
pub(super) fn product(n: &mut NodeContext, a: ValueId, b: ValueId, c: Option<ValueId>) -> Result<ValueId, Reason> {
    let (mut a, mut b) = (a, b);
    if n.int("transA").unwrap_or(0) != 0 {
        a = n.node("a/transpose", Transpose { perm: vec![1, 0] }, &[a])?;
    }
    if n.int("transB").unwrap_or(0) == 0 {
        b = n.transposed("weight", b, &[1, 0])?;
    }
    b = scaled(n, "weight", b, n.float("alpha").unwrap_or(1.0))?;
    let mut operands = vec![a, b];
    let mut sum = None;
    let beta = n.float("beta").unwrap_or(1.0);
    // With a beta of 0 the third operand is not read, so its NaN and infinities do not count.
    if let Some(c) = c.filter(|_| beta != 0.0) {
        let c = scaled(n, "bias", c, beta)?;
        let rows = n.ty(b).dims.first().cloned();
        let ty = n.ty(c).clone();
        if ty.rank() == 1 && ty.dims.first() == rows.as_ref() {
            operands.push(c);
        } else if ty.rank() == 2 && ty.dims[0].known() == Some(1) && ty.dims.get(1) == rows.as_ref() {
            let columns = n.shape(c)?[1];
            operands.push(n.reshape("bias/reshape", c, &[columns])?);
        } else {
            sum = Some(c);
        }
    }
    let suffix = if sum.is_some() { "dense" } else { "" };
    let v = n.node(suffix, Dense { data_zero_point: 0, weight_zero_point: 0 }, &operands)?;
    match sum {
        Some(c) => n.add("", v, c),
        None => Ok(v),
    }
}

/// A value times a factor.
fn scaled(n: &mut NodeContext, what: &str, v: ValueId, factor: f32) -> Result<ValueId, Reason> {
    if factor == 1.0 {
        return Ok(v);
    }
    let factor = n.scalar(&format!("{what}/factor"), factor);
    n.binary(&format!("{what}/scaled"), BinaryKind::Mul, v, factor)
}

pub(super) fn matmul(n: &mut NodeContext) -> Result<(), Reason> {
    let (a, b) = (n.plain(0)?, n.input(1)?);
    let v = matrices(n, a, b)?;
    n.output(v)
}

/// Converts one-dimensional operands to matrices. The flags say which ones were converted.
pub(super) fn as_matrices(n: &mut NodeContext, a: ValueId, b: ValueId) -> Result<([ValueId; 2], [bool; 2]), Reason> {
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
pub(super) fn without(n: &mut NodeContext, v: ValueId, lines: [bool; 2]) -> Result<ValueId, Reason> {
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
pub(super) fn matrices(n: &mut NodeContext, a: ValueId, b: ValueId) -> Result<ValueId, Reason> {
    let ([a, b], lines) = as_matrices(n, a, b)?;
    let v = multiplied(n, a, b, Dense { data_zero_point: 0, weight_zero_point: 0 }, MatMul {})?;
    without(n, v, lines)
}

/// The product of matrices, or of stacks of them. If `b` is a matrix of weights, also dequantized ones, it becomes a
/// dense layer over rows.
pub(super) fn multiplied(
    n: &mut NodeContext,
    a: ValueId,
    b: ValueId,
    dense: Dense,
    matmul: impl Into<Op>,
) -> Result<ValueId, Reason> {
    let weight = match n.cx.builder.def(b) {
        Some(node) => match node.op {
            Op::Constant(_) => true,
            Op::Dequantize(_) => n.cx.builder.constant_of(node.inputs[0]).is_some(),
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
