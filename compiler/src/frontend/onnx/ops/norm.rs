//! Normalizations, built from arithmetic.

use crate::frontend::onnx::node::{NodeContext, Reason};
use crate::graph::ValueId;
use crate::graph::op::{BinaryKind, ReduceKind, Resample, Select, UnaryKind};

/// The data as a matrix: the dimensions before the axis by the others.
pub(super) fn flattened(n: &mut NodeContext, data: ValueId, axis: usize) -> Result<ValueId, Reason> {
    let shape = n.shape(data)?;
    let size = |s: &[usize]| s.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    let (Some(rows), Some(columns)) = (size(&shape[..axis]), size(&shape[axis..])) else {
        return Err("its data are too large".into());
    };
    n.reshape("flatten", data, &[rows, columns])
}

/// Reshapes a vector over the channels so that it broadcasts along dimension 1 of `rank`.
pub(super) fn channels(n: &mut NodeContext, suffix: &str, v: ValueId, rank: usize) -> Result<ValueId, Reason> {
    let shape = n.shape(v)?;
    let [c] = shape.as_slice() else { return Err(format!("its {suffix} must be a vector, found {}", n.ty(v)).into()) };
    let mut to = vec![1; rank.saturating_sub(1)];
    if let Some(first) = to.first_mut() {
        *first = *c;
    }
    n.reshape(suffix, v, &to)
}

/// `(x - mean) * scale / sqrt(variance + epsilon) + bias`; with constant parameters it becomes a factor and a term.
pub(super) fn batch(n: &mut NodeContext) -> Result<(), Reason> {
    n.only("training_mode", 0)?;
    let data = n.plain(0)?;
    let rank = n.ty(data).rank();
    // With only batch and channels, no dimension could have statistics of its own.
    if rank == 2 {
        n.without_effect("spatial")
    } else {
        n.only("spatial", 1)?
    }
    let epsilon = n.float("epsilon").unwrap_or(1e-5);
    let mut p = Vec::new();
    for (i, name) in [(1, "scale"), (2, "bias"), (3, "mean"), (4, "variance")] {
        let v = n.plain(i)?;
        p.push(channels(n, name, v, rank)?);
    }
    let epsilon = n.scalar("epsilon", epsilon);
    let variance = n.add("variance", p[3], epsilon)?;
    let deviation = n.unary("deviation", UnaryKind::Sqrt, variance)?;
    let factor = n.binary("factor", BinaryKind::Div, p[0], deviation)?;
    let shift = n.binary("shift", BinaryKind::Mul, p[2], factor)?;
    let term = n.binary("term", BinaryKind::Sub, p[1], shift)?;
    let v = n.binary("mul", BinaryKind::Mul, data, factor)?;
    let v = n.add("", v, term)?;
    // Training statistics are not computed, but files name them.
    let names = n.proto.output.iter().skip(1).filter(|s| !s.is_empty()).count();
    if names > 0 && n.opset() >= 14 {
        return n.output(v);
    }
    n.outputs_first(v)
}

/// `(x - mean) / sqrt(mean((x - mean)^2) + epsilon)` over some dimensions. Also returns the mean and the factor.
fn standard(n: &mut NodeContext, x: ValueId, axes: &[usize], epsilon: f32) -> Result<[ValueId; 3], Reason> {
    let mean = n.reduce("mean", ReduceKind::Mean, axes, true, x)?;
    let less = n.binary("less", BinaryKind::Sub, x, mean)?;
    let square = n.binary("square", BinaryKind::Mul, less, less)?;
    let variance = n.reduce("variance", ReduceKind::Mean, axes, true, square)?;
    let epsilon = n.scalar("epsilon", epsilon);
    let sum = n.add("sum", variance, epsilon)?;
    let root = n.unary("root", UnaryKind::Sqrt, sum)?;
    let factor = n.unary("factor", UnaryKind::Reciprocal, root)?;
    let v = n.binary("standard", BinaryKind::Mul, less, factor)?;
    Ok([v, mean, factor])
}

/// `v * scale + bias`; the bias is optional.
fn affine(n: &mut NodeContext, v: ValueId, scale: ValueId, bias: Option<ValueId>) -> Result<ValueId, Reason> {
    let v = n.binary(if bias.is_some() { "mul" } else { "" }, BinaryKind::Mul, v, scale)?;
    match bias {
        Some(b) => n.add("", v, b),
        None => Ok(v),
    }
}

pub(super) fn layer(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let rank = n.ty(data).rank();
    let axis = n.axis_attribute(-1, rank)?;
    let axes: Vec<usize> = (axis..rank).collect();
    let [v, mean, factor] = standard(n, data, &axes, n.float("epsilon").unwrap_or(1e-5))?;
    let scale = n.plain(1)?;
    let bias = if n.has_input(2) { Some(n.plain(2)?) } else { None };
    let v = affine(n, v, scale, bias)?;
    n.outputs(&[v, mean, factor])
}

/// `x / sqrt(mean(x^2) + epsilon) * scale`.
pub(super) fn rms(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let rank = n.ty(data).rank();
    let axis = n.axis_attribute(-1, rank)?;
    let axes: Vec<usize> = (axis..rank).collect();
    let square = n.binary("square", BinaryKind::Mul, data, data)?;
    let mean = n.reduce("mean", ReduceKind::Mean, &axes, true, square)?;
    let epsilon = n.scalar("epsilon", n.float("epsilon").unwrap_or(1e-5));
    let sum = n.add("sum", mean, epsilon)?;
    let root = n.unary("root", UnaryKind::Sqrt, sum)?;
    let v = n.binary("standard", BinaryKind::Div, data, root)?;
    let scale = n.plain(1)?;
    let v = n.binary("", BinaryKind::Mul, v, scale)?;
    n.output(v)
}

pub(super) fn instance(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let rank = n.ty(data).rank();
    if rank < 3 {
        return Err(format!("its data must have 3 or more dimensions, found {}", n.ty(data)).into());
    }
    let axes: Vec<usize> = (2..rank).collect();
    let [v, ..] = standard(n, data, &axes, n.float("epsilon").unwrap_or(1e-5))?;
    let (scale, bias) = (n.plain(1)?, n.plain(2)?);
    let (scale, bias) = (channels(n, "scale", scale, rank)?, channels(n, "bias", bias, rank)?);
    let v = affine(n, v, scale, Some(bias))?;
    n.output(v)
}

pub(super) fn group(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let shape = n.shape(data)?;
    let groups = n.int("num_groups").and_then(|g| usize::try_from(g).ok()).filter(|&g| g > 0);
    let groups = groups.ok_or("its num_groups must be positive")?;
    if shape.len() < 2 || shape[1] % groups != 0 {
        return Err(format!("its num_groups {groups} must divide the channels of {}", n.ty(data)).into());
    }
    let rest: usize = shape[1..].iter().product::<usize>() / groups;
    let rows = n.reshape("groups", data, &[shape[0], groups, rest])?;
    let [v, ..] = standard(n, rows, &[2], n.float("epsilon").unwrap_or(1e-5))?;
    let v = n.reshape("shape", v, &shape)?;
    let (mut scale, mut bias) = (n.plain(1)?, n.plain(2)?);
    if n.opset() < 21 {
        // One value per group.
        for (name, p) in [("scale", &mut scale), ("bias", &mut bias)] {
            let column = n.reshape(name, *p, &[groups, 1])?;
            let shape = vec![groups, shape[1] / groups];
            let wide = n.node(name, crate::graph::op::Expand { shape: shape.clone() }, &[column])?;
            *p = n.reshape(name, wide, &[shape[0] * shape[1]])?;
        }
    }
    let (scale, bias) = (channels(n, "scale", scale, shape.len())?, channels(n, "bias", bias, shape.len())?);
    let v = affine(n, v, scale, Some(bias))?;
    n.output(v)
}

/// `x / (bias + alpha / size * sum of x^2 over neighboring channels)^beta`.
pub(super) fn local_response(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let shape = n.shape(data)?;
    if shape.len() < 2 {
        return Err(format!("its data must have channels, found {}", n.ty(data)).into());
    }
    let size = n.int("size").and_then(|s| usize::try_from(s).ok()).filter(|s| (1..1 << 16).contains(s));
    let size = size.ok_or("its size must be from 1 to 65535")?;
    let (alpha, beta) = (n.float("alpha").unwrap_or(1e-4), n.float("beta").unwrap_or(0.75));
    let channels = shape[1];
    let place = |i: usize| (i / size + i % size) as i64 - ((size - 1) / 2) as i64;
    let inside = |i: usize| (0..channels as i64).contains(&place(i));
    let index = n.table("index", &[channels, size], |i| if inside(i) { place(i) as i32 } else { 0 })?;
    let weight = n.table("weight", &[channels, size], |i| if inside(i) { alpha / size as f32 } else { 0.0 })?;
    let square = n.binary("square", BinaryKind::Mul, data, data)?;
    let sum = n.node("sum", Resample { axis: 1 }, &[square, index, weight])?;
    let bias = n.scalar("bias", n.float("bias").unwrap_or(1.0));
    let sum = n.add("add", sum, bias)?;
    let beta = n.scalar("beta", beta);
    let power = n.binary("pow", BinaryKind::Pow, sum, beta)?;
    let v = n.binary("", BinaryKind::Div, data, power)?;
    n.output(v)
}

pub(super) fn mean_variance(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let axes = n.ints("axes").map_or_else(|| vec![0, 2, 3], <[i64]>::to_vec);
    let axes = n.axes(&axes, n.ty(data).rank())?;
    let [v, ..] = standard(n, data, &axes, 1e-9)?;
    n.output(v)
}

pub(super) fn lp(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let axis = n.axis_attribute(-1, n.ty(data).rank())?;
    let norm = match n.int("p").unwrap_or(2) {
        1 => {
            let abs = n.unary("abs", UnaryKind::Abs, data)?;
            n.reduce("sum", ReduceKind::Sum, &[axis], true, abs)?
        }
        2 => {
            let square = n.binary("square", BinaryKind::Mul, data, data)?;
            let sum = n.reduce("sum", ReduceKind::Sum, &[axis], true, square)?;
            n.unary("sqrt", UnaryKind::Sqrt, sum)?
        }
        p => return Err(format!("its p of {p} is not supported; use 1 or 2").into()),
    };
    // Where the norm is 0, so is the result, as in ONNX Runtime; the quotient would be NaN.
    let quotient = n.binary("div", BinaryKind::Div, data, norm)?;
    let zero = n.scalar("zero", 0.0);
    let nothing = n.binary("nothing", BinaryKind::Equal, norm, zero)?;
    let v = n.node("", Select {}, &[nothing, zero, quotient])?;
    n.output(v)
}
