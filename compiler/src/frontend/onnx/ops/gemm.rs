//! Gemm and MatMul.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::product::matrices;
use crate::graph::ValueId;
use crate::graph::op::{BinaryKind, Dense, Transpose};

pub(super) fn gemm(n: &mut NodeContext) -> Result<(), Reason> {
    let (a, b) = (n.plain(0)?, n.input(1)?);
    let c = n.optional(2)?;
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
pub(super) fn scaled(n: &mut NodeContext, what: &str, v: ValueId, factor: f32) -> Result<ValueId, Reason> {
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
