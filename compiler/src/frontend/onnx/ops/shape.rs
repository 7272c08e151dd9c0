//! Constants, sizes, and operators that only change the shape.

use super::selection;
use crate::frontend::onnx::node::NodeContext;
use crate::frontend::onnx::tensor::Element;
use crate::frontend::reason::Reason;
use crate::graph::op::{Expand, Reshape, Transpose};
use crate::graph::{DType, Tensor, TensorType};
use std::fmt::Display;

pub(super) fn constant(n: &mut NodeContext) -> Result<(), Reason> {
    let t = if let Some(t) = n.sparse_tensor("sparse_value") {
        return n.output_known(t?);
    } else if let Some(t) = n.tensor("value") {
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
        return Err("only numeric constants are supported".into());
    };
    n.reserve(&t.ty())?;
    n.output_known(t)
}

pub(super) fn constant_of_shape(n: &mut NodeContext) -> Result<(), Reason> {
    let value = match n.tensor("value") {
        Some(t) => t?,
        None => Tensor::vector(vec![0f32]),
    };
    if value.len() != 1 {
        return Err(format!("its value must be one number, found {}", value.ty()).into());
    }
    let shape = n.integers(0)?.iter().map(|&d| usize::try_from(d)).collect::<Result<Vec<_>, _>>();
    let shape = shape.map_err(|_| "its shape must not be negative")?;
    if shape.contains(&0) {
        n.reserve(&TensorType::new(value.dtype(), &shape))?;
        return n.output_known(Tensor::from_bytes(value.dtype(), &shape, &[]).ok_or("its shape is too large")?);
    }
    let one = value.reshaped(&[]).ok_or("its value must be one number")?;
    let one = n.made("value", one);
    let v = n.node("", Expand { shape }, &[one])?;
    n.output(v)
}

pub(super) fn identity(n: &mut NodeContext) -> Result<(), Reason> {
    let same = n.meaning(0)?;
    n.output_meaning(same)
}

/// Inference drops nothing, whatever the ratio is.
pub(super) fn dropout(n: &mut NodeContext) -> Result<(), Reason> {
    if n.opset() >= 12 {
        n.has_input(1);
    }
    if n.has_input(2) && n.number(2)? != 0.0 {
        return Err("its training_mode is not supported".into());
    }
    let v = n.input(0)?;
    // Sets before 7 do not say of what type the mask is.
    if n.opset() < 7 || n.proto.output.len() < 2 {
        return n.outputs_first(v);
    }
    let shape = n.shape(v)?;
    let mask = if n.opset() < 10 { n.table("mask", &shape, |_| 1f32)? } else { n.table("mask", &shape, |_| true)? };
    n.outputs(&[v, mask])
}

/// 1 on a diagonal, else 0, in the shape of a tensor.
pub(super) fn eye_like(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let &[_, columns] = n.shape(data)?.as_slice() else {
        return Err(format!("its data must have 2 dimensions, found {}", n.ty(data)).into());
    };
    let (shape, k) = (n.shape(data)?, n.int("k").unwrap_or(0));
    let to = n.element_attribute("dtype")?.unwrap_or(Element::plain(n.ty(data).dtype));
    let on = |i: usize| (i % columns) as i64 - (i / columns) as i64 == k;
    let v = n.table("diagonal", &shape, on)?;
    let v = n.converted(v, to, true)?;
    n.output(v)
}

pub(super) fn shape(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    n.measured(data);
    let shape = n.shape(data)?;
    let rank = shape.len() as i64;
    let place = |v: i64| (if v < 0 { v.saturating_add(rank) } else { v }).clamp(0, rank) as usize;
    let (start, end) = (place(n.int("start").unwrap_or(0)), place(n.int("end").unwrap_or(rank)));
    n.output_known(Tensor::vector(shape[start.min(end)..end].iter().map(|&d| d as i64).collect()))
}

pub(super) fn size(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    n.measured(data);
    let count = n.shape(data)?.iter().product::<usize>();
    n.output_known(Tensor::scalar(count as i64))
}

/// Most elements of a range.
const MOST_OF_RANGE: i128 = 1 << 22;

pub(super) fn range(n: &mut NodeContext) -> Result<(), Reason> {
    let ty = n.constant_input(0)?.ty();
    let refused = |start: &dyn Display, limit: &dyn Display, delta: &dyn Display| {
        Reason::from(format!("a range from {start} to {limit} in steps of {delta} is not supported"))
    };
    let t = if ty.dtype.is_float() {
        let [start, limit, delta] = [n.number(0)?, n.number(1)?, n.number(2)?];
        let count = ((limit - start) / delta).ceil().max(0.0);
        if !(delta != 0.0 && count <= MOST_OF_RANGE as f64) {
            return Err(refused(&start, &limit, &delta));
        }
        n.reserve(&TensorType::new(ty.dtype, &[count as usize]))?;
        let at = |i: usize| start + i as f64 * delta;
        match ty.dtype {
            DType::F64 => Tensor::from_fn(&[count as usize], at),
            _ => Tensor::from_fn(&[count as usize], |i| at(i) as f32),
        }
    } else if matches!(ty.dtype, DType::I16 | DType::I32 | DType::I64) {
        // Floats would lose digits of 64 bits.
        let [start, limit, delta] = [n.whole(0)?, n.whole(1)?, n.whole(2)?].map(i128::from);
        let count = if delta == 0 { i128::MAX } else { (limit - start + delta - delta.signum()) / delta };
        if count > MOST_OF_RANGE {
            return Err(refused(&start, &limit, &delta));
        }
        let count = count.max(0) as usize;
        n.reserve(&TensorType::new(ty.dtype, &[count]))?;
        let at = |i: usize| start + i as i128 * delta;
        match ty.dtype {
            DType::I16 => Tensor::from_fn(&[count], |i| at(i) as i16),
            DType::I32 => Tensor::from_fn(&[count], |i| at(i) as i32),
            _ => Tensor::from_fn(&[count], |i| at(i) as i64),
        }
    } else {
        return Err(format!("its numbers must be of type f32, f64, i16, i32 or i64, found {ty}").into());
    };
    n.output_known(t)
}

/// Indices of the non-zero elements.
pub(super) fn non_zero(n: &mut NodeContext) -> Result<(), Reason> {
    let Some(t) = n.known(0) else { return selection::non_zero(n) };
    let holds: Vec<bool> = t.doubles().iter().map(|&x| x != 0.0).collect();
    let places: Vec<usize> = (0..holds.len()).filter(|&i| holds[i]).collect();
    n.reserve(&TensorType::new(DType::I64, &[t.shape().len(), places.len()]))?;
    let (shape, steps) = (t.shape(), crate::graph::strides_of(t.shape()));
    let at = |i: usize| {
        let (d, k) = (i / places.len(), i % places.len());
        (places[k] / steps[d] % shape[d]) as i64
    };
    n.output_known(Tensor::from_fn(&[shape.len(), places.len()], at))
}

pub(super) fn reshape(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let mut shape = if n.opset() < 5 { n.ints("shape").ok_or("it has no shape")?.to_vec() } else { n.integers(1)? };
    if n.int("allowzero").unwrap_or(0) == 0 {
        for (i, d) in shape.iter_mut().enumerate().filter(|(_, d)| **d == 0) {
            if let Some(size) = n.ty(data).dims.get(i).and_then(|d| d.known()) {
                *d = size as i64;
            }
        }
    }
    let v = if shape.contains(&0) && n.ty(data).shape().is_some() {
        let sizes = shape.iter().map(|&d| usize::try_from(d)).collect::<Result<Vec<_>, _>>();
        n.reshape("", data, &sizes.map_err(|_| "its shape must not have both -1 and a size of 0")?)?
    } else {
        n.node("", Reshape { shape }, &[data])?
    };
    n.output_like(v, data)
}

pub(super) fn flatten(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let rank = n.ty(data).rank();
    let axis = n.int("axis").unwrap_or(1);
    // The axis can be one past the last dimension.
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
