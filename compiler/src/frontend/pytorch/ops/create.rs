//! Tensors of constant numbers: zeros, ones, ranges.

use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::{NodeContext, Operand};
use crate::frontend::reason::Reason;
use crate::graph::op::Expand;
use crate::graph::{DType, Tensor, ValueId};

/// Arguments that say where a tensor is, and that tell its type, which the program declares anyway.
const ASIDE: [&str; 6] = ["dtype", "layout", "device", "pin_memory", "memory_format", "requires_grad"];

/// One number, repeated.
fn filled(n: &mut NodeContext, operand: Operand, shape: &[usize]) -> Result<Value, Reason> {
    n.ignore(&ASIDE);
    let dtype = n.result_type(0)?;
    let one = n.as_type("value", operand, dtype)?;
    if shape.contains(&0) {
        let empty = Tensor::from_bytes(dtype, shape, &[]).ok_or("its shape is too large")?;
        return Ok(n.constant("", empty)?.into());
    }
    let one = n.reshape("value", one, &[])?;
    Ok(n.node("", Expand { shape: shape.to_vec() }, &[one])?.into())
}

/// The argument `size`.
fn sizes(n: &mut NodeContext) -> Result<Vec<usize>, Reason> {
    let sizes = n.ints("size")?.unwrap_or_default();
    let sizes = sizes.iter().map(|&d| usize::try_from(d)).collect::<Result<Vec<_>, _>>();
    sizes.map_err(|_| "its sizes must not be negative".into())
}

/// The sizes of the argument `self`.
fn own_sizes(n: &mut NodeContext) -> Result<Vec<usize>, Reason> {
    let v = n.tensor("self")?;
    n.shape(v)
}

pub(super) fn zeros(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["self", "physical_layout"]);
    let shape = sizes(n)?;
    filled(n, Operand::Int(0), &shape)
}

pub(super) fn ones(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["self"]);
    let shape = sizes(n)?;
    filled(n, Operand::Int(1), &shape)
}

pub(super) fn full(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["self"]);
    let (shape, value) = (sizes(n)?, n.operand("fill_value")?);
    filled(n, value, &shape)
}

pub(super) fn zeros_like(n: &mut NodeContext) -> Result<Value, Reason> {
    let shape = own_sizes(n)?;
    filled(n, Operand::Int(0), &shape)
}

pub(super) fn ones_like(n: &mut NodeContext) -> Result<Value, Reason> {
    let shape = own_sizes(n)?;
    filled(n, Operand::Int(1), &shape)
}

pub(super) fn full_like(n: &mut NodeContext) -> Result<Value, Reason> {
    let (shape, value) = (own_sizes(n)?, n.operand("fill_value")?);
    filled(n, value, &shape)
}

pub(super) fn fill(n: &mut NodeContext) -> Result<Value, Reason> {
    let (shape, value) = (own_sizes(n)?, n.operand("value")?);
    filled(n, value, &shape)
}

pub(super) fn scalar(n: &mut NodeContext) -> Result<Value, Reason> {
    let value = n.operand("s")?;
    filled(n, value, &[])
}

/// Most elements of a range.
const MOST: f64 = (1 << 24) as f64;

/// A table of floats in the type of the result.
fn numbers(n: &mut NodeContext, shape: &[usize], f: impl Fn(usize) -> f64) -> Result<Value, Reason> {
    n.ignore(&ASIDE);
    let dtype = n.result_type(0)?;
    let v = match dtype {
        DType::F32 => n.table("", shape, |i| f(i) as f32)?,
        DType::F64 => n.table("", shape, f)?,
        _ => {
            let v = n.table("wide", shape, |i| f(i) as i64)?;
            n.cast("", v, dtype)?
        }
    };
    Ok(v.into())
}

pub(super) fn range(n: &mut NodeContext) -> Result<Value, Reason> {
    let (start, end) = (n.number("start")?.unwrap_or(0.0), n.number("end")?.ok_or("it has no end")?);
    let step = n.number("step")?.unwrap_or(1.0);
    let count = ((end - start) / step).ceil().max(0.0);
    if !(step != 0.0 && count <= MOST) {
        return Err(format!("a range from {start} to {end} in steps of {step} is not supported").into());
    }
    numbers(n, &[count as usize], |i| start + i as f64 * step)
}

/// Numbers at equal distances, both ends among them.
pub(super) fn line(n: &mut NodeContext) -> Result<Value, Reason> {
    let (start, end) = (n.number("start")?.unwrap_or(0.0), n.number("end")?.unwrap_or(0.0));
    let steps = n.int("steps", 100)?;
    let steps = usize::try_from(steps).ok().filter(|&s| s as f64 <= MOST);
    let steps = steps.ok_or("its steps must be from 0 to 2^24")?;
    if steps == 1 {
        return numbers(n, &[1], |_| start);
    }
    let step = if steps > 1 { (end - start) / (steps - 1) as f64 } else { 0.0 };
    // Each half is counted from its own end.
    numbers(n, &[steps], |i| if i < steps / 2 { start + i as f64 * step } else { end - (steps - 1 - i) as f64 * step })
}

pub(super) fn identity(n: &mut NodeContext) -> Result<Value, Reason> {
    let rows = n.int("n", 0)?;
    let columns = n.int("m", rows)?;
    let size = |x: i64| usize::try_from(x).map_err(|_| "its sizes must not be negative");
    let (rows, columns) = (size(rows)?, size(columns)?);
    numbers(n, &[rows, columns], |i| f64::from(u8::from(i / columns.max(1) == i % columns.max(1))))
}

/// Rows and columns of the elements of a lower triangle.
pub(super) fn lower_indices(n: &mut NodeContext) -> Result<Value, Reason> {
    let (rows, columns, offset) = (n.int("row", 0)?, n.int("col", 0)?, n.int("offset", 0)?);
    if !(0..1 << 12).contains(&rows) || !(0..1 << 12).contains(&columns) {
        return Err("its sizes must be from 0 to 4095".into());
    }
    let places =
        (0..rows).flat_map(|row| (0..columns).filter(move |column| column - row <= offset).map(move |c| (row, c)));
    let places: Vec<(i64, i64)> = places.collect();
    let count = places.len();
    let at = |i: usize| if i < count { places[i].0 } else { places[i - count].1 };
    numbers(n, &[2, count], |i| at(i) as f64)
}

/// A vector of one number.
pub(super) fn vector(n: &mut NodeContext, suffix: &str, x: f32, count: usize, dtype: DType) -> Result<ValueId, Reason> {
    let v = n.table(suffix, &[count], |_| x)?;
    n.cast(suffix, v, dtype)
}
