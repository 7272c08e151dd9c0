//! Constant, Identity, Reshape, Flatten, Transpose and Pad.

use crate::frontend::onnx::node::{NodeContext, Reason};
use crate::graph::op::{Pad, Reshape, Transpose};
use crate::graph::{DType, Tensor};

pub(super) fn constant(n: &mut NodeContext) -> Result<(), Reason> {
    let t = if let Some(t) = n.tensor("value") {
        t?
    } else if let Some(x) = n.float("value_float") {
        Tensor::scalar(x)
    } else if let Some(i) = n.int("value_int") {
        Tensor::scalar(i)
    } else if let Some(v) = n.list("value_floats") {
        Tensor::vector(v.to_vec())
    } else if let Some(v) = n.ints("value_ints") {
        Tensor::vector(v.to_vec())
    } else {
        return Err("only constants of numbers are supported".into());
    };
    let name = n.proto.output.first().filter(|s| !s.is_empty()).ok_or("it has no output")?;
    if n.cx.values.contains_key(name) || n.cx.constants.insert(name.clone(), t).is_some() {
        return Err(format!("`{name}` is defined twice").into());
    }
    Ok(())
}

pub(super) fn identity(n: &mut NodeContext) -> Result<(), Reason> {
    let name = n.proto.input.first().cloned().unwrap_or_default();
    if let Some(t) = n.cx.constants.get(&name).cloned() {
        let out = n.proto.output.first().filter(|s| !s.is_empty()).ok_or("it has no output")?;
        if n.cx.values.contains_key(out) || n.cx.constants.insert(out.clone(), t).is_some() {
            return Err(format!("`{out}` is defined twice").into());
        }
        return Ok(());
    }
    let v = n.input(0)?;
    n.output(v)
}

pub(super) fn reshape(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let shape = if n.opset() < 5 { n.ints("shape").ok_or("it has no shape")?.to_vec() } else { n.integers(1)? };
    if n.int("allowzero").unwrap_or(0) != 0 && shape.contains(&0) {
        return Err("a shape with a size of 0 is not supported".into());
    }
    let v = n.node("", Reshape { shape }, &[data])?;
    n.output_like(v, data)
}

pub(super) fn flatten(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let rank = n.ty(data).rank();
    let axis = n.int("axis").unwrap_or(1);
    // The axis may also lie behind the last dimension.
    let axis = if axis < 0 { n.axis(axis, rank)? } else { n.axis(axis, rank + 1)? };
    let shape = match axis {
        0 => vec![1, -1],
        1 => vec![0, -1],
        _ => {
            let sizes: Option<Vec<usize>> = n.ty(data).dims[..axis].iter().map(|d| d.known()).collect();
            let rows = sizes.and_then(|s| s.iter().try_fold(1usize, |n, &d| n.checked_mul(d)));
            let rows = rows.and_then(|r| i64::try_from(r).ok()).ok_or("the shape of its data must be known")?;
            vec![rows, -1]
        }
    };
    let v = n.node("", Reshape { shape }, &[data])?;
    n.output_like(v, data)
}

pub(super) fn transpose(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let rank = n.ty(data).rank();
    let perm = match n.ints("perm") {
        Some(p) => p.iter().map(|&d| n.axis(d, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).rev().collect(),
    };
    let v = n.node("", Transpose { perm }, &[data])?;
    n.output_like(v, data)
}

pub(super) fn pad(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let mode = n.word("mode").unwrap_or_else(|| "constant".into());
    if mode != "constant" {
        return Err(format!("its mode `{mode}` is not supported; `constant` is").into());
    }
    let rank = n.ty(data).rank();
    let (pads, value) = if n.opset() < 11 {
        (n.ints("pads").ok_or("it has no pads")?.to_vec(), n.float("value").unwrap_or(0.0))
    } else {
        let value = if n.has_input(2) && n.ty(data).dtype == DType::F32 {
            n.floats(2)?.first().copied().unwrap_or(0.0)
        } else if n.has_input(2) {
            n.integers(2)?.first().map_or(0.0, |&v| v as f32)
        } else {
            0.0
        };
        (n.integers(1)?, value)
    };
    let axes: Vec<usize> = if n.has_input(3) {
        n.integers(3)?.iter().map(|&a| n.axis(a, rank)).collect::<Result<_, _>>()?
    } else {
        (0..rank).collect()
    };
    if pads.len() != 2 * axes.len() {
        return Err(format!("its pads must have {} values, found {}", 2 * axes.len(), pads.len()).into());
    }
    let (mut before, mut after) = (vec![0; rank], vec![0; rank]);
    for (i, &a) in axes.iter().enumerate() {
        let size = |v: i64| usize::try_from(v).map_err(|_| Reason("its pads must not be negative".into()));
        (before[a], after[a]) = (size(pads[i])?, size(pads[i + axes.len()])?);
    }
    let value = if n.unsigned(data) { value - 128.0 } else { value };
    let v = n.node("", Pad { before, after, value }, &[data])?;
    n.output_like(v, data)
}
