//! Add, Relu, Clip and Softmax.

use crate::frontend::onnx::node::{NodeContext, Reason};
use crate::graph::op::{Add, Clip, Relu, Reshape, Softmax};
use crate::graph::{DType, TensorData};

pub(super) fn add(n: &mut NodeContext) -> Result<(), Reason> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    let v = n.node("", Add {}, &[a, b])?;
    n.output(v)
}

pub(super) fn relu(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let v = n.node("", Relu {}, &[data])?;
    n.output(v)
}

pub(super) fn clip(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    // Integers have the bounds of their type where none is given.
    let open = if n.ty(data).dtype == DType::I8 { (-128.0, 127.0) } else { (f32::NEG_INFINITY, f32::INFINITY) };
    let bound = |i: usize, name: &str, open: f32| -> Result<f32, Reason> {
        if n.opset() < 11 {
            return Ok(n.float(name).unwrap_or(open));
        }
        if !n.has_input(i) {
            return Ok(open);
        }
        let t = n.constant_input(i)?;
        match t.data() {
            _ if t.len() != 1 => Err(format!("its {name} must be one number, found {}", t.ty()).into()),
            TensorData::F32(v) => Ok(v[0]),
            TensorData::I8(v) => Ok(f32::from(v[0])),
            TensorData::U8(v) => Ok(f32::from(v[0]) - 128.0),
            _ => Err(format!("its {name} must be of type f32, i8 or u8, found {}", t.ty()).into()),
        }
    };
    let (lo, hi) = (bound(1, "min", open.0)?, bound(2, "max", open.1)?);
    // The upper bound is applied last.
    let lo = lo.min(hi);
    let v = n.node("", Clip { lo, hi }, &[data])?;
    n.output_like(v, data)
}

pub(super) fn softmax(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let rank = n.ty(data).rank();
    if n.opset() >= 13 {
        let axis = n.axis(n.int("axis").unwrap_or(-1), rank)?;
        let v = n.node("", Softmax::float(axis, 1.0), &[data])?;
        return n.output(v);
    }
    // Earlier sets sum over everything from the axis on.
    let axis = n.axis(n.int("axis").unwrap_or(1), rank)?;
    if axis + 1 == rank {
        let v = n.node("", Softmax::float(axis, 1.0), &[data])?;
        return n.output(v);
    }
    let shape = n.ty(data).shape().ok_or("the shape of its data must be known")?;
    let size = |s: &[usize]| s.iter().try_fold(1i64, |n, &d| n.checked_mul(i64::try_from(d).ok()?));
    let (Some(rows), Some(columns)) = (size(&shape[..axis]), size(&shape[axis..])) else {
        return Err("its data are too large".into());
    };
    let flat = n.node("flatten", Reshape { shape: vec![rows, columns] }, &[data])?;
    let v = n.node("softmax", Softmax::float(1, 1.0), &[flat])?;
    let v = n.node("", Reshape { shape: shape.iter().map(|&d| d as i64).collect() }, &[v])?;
    n.output(v)
}
