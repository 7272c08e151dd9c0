//! Gemm and MatMul.

use crate::frontend::onnx::node::{NodeContext, Reason};
use crate::graph::op::{Add, Dense, MatMul, Reshape, Transpose};
use crate::graph::{Op, Tensor, ValueId};

pub(super) fn gemm(n: &mut NodeContext) -> Result<(), Reason> {
    let (mut a, mut b) = (n.input(0)?, n.input(1)?);
    if n.int("transA").unwrap_or(0) != 0 {
        a = n.node("a/transpose", Transpose { perm: vec![1, 0] }, &[a])?;
    }
    if n.int("transB").unwrap_or(0) == 0 {
        b = n.transposed("weight", b, &[1, 0])?;
    }
    b = scaled(n, "weight", b, n.float("alpha").unwrap_or(1.0))?;
    let mut operands = vec![a, b];
    let mut sum = None;
    if n.has_input(2) {
        let c = n.input(2)?;
        let c = scaled(n, "bias", c, n.float("beta").unwrap_or(1.0))?;
        let rows = n.ty(b).dims.first().cloned();
        let ty = n.ty(c);
        if ty.rank() == 1 && ty.dims.first() == rows.as_ref() {
            operands.push(c);
        } else if ty.rank() == 2 && ty.dims[0].known() == Some(1) && ty.dims.get(1) == rows.as_ref() {
            operands.push(n.node("bias/reshape", Reshape { shape: vec![-1] }, &[c])?);
        } else {
            sum = Some(c);
        }
    }
    let v = n.node(
        if sum.is_some() { "dense" } else { "" },
        Dense { data_zero_point: 0, weight_zero_point: 0 },
        &operands,
    )?;
    let v = match sum {
        Some(c) => n.node("", Add {}, &[v, c])?,
        None => v,
    };
    n.output(v)
}

/// A constant times a factor.
fn scaled(n: &mut NodeContext, what: &str, v: ValueId, factor: f32) -> Result<ValueId, Reason> {
    if factor == 1.0 {
        return Ok(v);
    }
    let t = n.cx.builder.constant_of(v).cloned();
    let t = t.ok_or_else(|| Reason(format!("its {what} must be a constant where it is scaled by {factor}")))?;
    let x = t.as_slice::<f32>().map_err(|e| Reason(format!("its {what}: {e}")))?;
    Ok(n.constant(&format!("{what}/scaled"), Tensor::from_fn(t.shape(), |i| x[i] * factor)))
}

pub(super) fn matmul(n: &mut NodeContext) -> Result<(), Reason> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    let weight = match n.cx.builder.def(b) {
        Some(node) => match node.op {
            Op::Constant(_) => true,
            Op::Dequantize(_) => n.cx.builder.constant_of(node.inputs[0]).is_some(),
            _ => false,
        },
        None => false,
    };
    let v = if weight && n.ty(a).rank() == 2 && n.ty(b).rank() == 2 {
        let b = n.transposed("weight", b, &[1, 0])?;
        n.node("", Dense { data_zero_point: 0, weight_zero_point: 0 }, &[a, b])?
    } else {
        n.node("", MatMul {}, &[a, b])?
    };
    n.output(v)
}
