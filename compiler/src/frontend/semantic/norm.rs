//! Normalizations, built from arithmetic.

use super::SemanticBuilder;
use crate::frontend::reason::Reason;
use crate::graph::ValueId;
use crate::graph::op::{BinaryKind, Expand, ReduceKind, Resample, Select, UnaryKind};

/// The factor and the term of a normalization.
#[derive(Debug, Clone, Copy)]
pub struct Affine {
    pub scale: ValueId,
    pub bias: Option<ValueId>,
}

/// A vector with a number for each channel, so that it broadcasts along dimension 1 of `rank`.
pub fn channels(n: &mut SemanticBuilder, suffix: &str, v: ValueId, rank: usize) -> Result<ValueId, Reason> {
    let shape = n.shape(v)?;
    let [c] = shape.as_slice() else { return Err(format!("its {suffix} must be a vector, found {}", n.ty(v)).into()) };
    let mut to = vec![1; rank.saturating_sub(1)];
    if let Some(first) = to.first_mut() {
        *first = *c;
    }
    n.reshape(suffix, v, &to)
}

/// `(x - mean) * scale / sqrt(variance + epsilon) + bias` for channels in dimension 1; with constant parameters it
/// becomes a factor and a term.
pub fn batch(
    n: &mut SemanticBuilder,
    data: ValueId,
    [scale, bias, mean, variance]: [ValueId; 4],
    epsilon: f32,
) -> Result<ValueId, Reason> {
    let rank = n.ty(data).rank();
    let (scale, bias) = (channels(n, "scale", scale, rank)?, channels(n, "bias", bias, rank)?);
    let (mean, variance) = (channels(n, "mean", mean, rank)?, channels(n, "variance", variance, rank)?);
    let epsilon = n.scalar("epsilon", epsilon);
    let variance = n.add("variance", variance, epsilon)?;
    let deviation = n.unary("deviation", UnaryKind::Sqrt, variance)?;
    let factor = n.binary("factor", BinaryKind::Div, scale, deviation)?;
    let shift = n.binary("shift", BinaryKind::Mul, mean, factor)?;
    let term = n.binary("term", BinaryKind::Sub, bias, shift)?;
    let v = n.binary("mul", BinaryKind::Mul, data, factor)?;
    n.add("", v, term)
}

/// `(x - mean) / sqrt(mean((x - mean)^2) + epsilon)` over some dimensions. Also returns the mean and the factor.
pub fn standard(n: &mut SemanticBuilder, x: ValueId, axes: &[usize], epsilon: f32) -> Result<[ValueId; 3], Reason> {
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

/// `v * scale + bias`.
fn affine(n: &mut SemanticBuilder, v: ValueId, Affine { scale, bias }: Affine) -> Result<ValueId, Reason> {
    let v = n.binary(if bias.is_some() { "mul" } else { "" }, BinaryKind::Mul, v, scale)?;
    match bias {
        Some(b) => n.add("", v, b),
        None => Ok(v),
    }
}

/// Standardizes the dimensions from `axis` on. Also returns the mean and the factor.
pub fn layer(
    n: &mut SemanticBuilder,
    data: ValueId,
    axis: usize,
    by: Affine,
    epsilon: f32,
) -> Result<[ValueId; 3], Reason> {
    let axes: Vec<usize> = (axis..n.ty(data).rank()).collect();
    let [v, mean, factor] = standard(n, data, &axes, epsilon)?;
    Ok([affine(n, v, by)?, mean, factor])
}

/// `x / sqrt(mean(x^2) + epsilon) * scale` over the dimensions from `axis` on.
pub fn rms(
    n: &mut SemanticBuilder,
    data: ValueId,
    axis: usize,
    scale: ValueId,
    epsilon: f32,
) -> Result<ValueId, Reason> {
    let axes: Vec<usize> = (axis..n.ty(data).rank()).collect();
    let square = n.binary("square", BinaryKind::Mul, data, data)?;
    let mean = n.reduce("mean", ReduceKind::Mean, &axes, true, square)?;
    let epsilon = n.scalar("epsilon", epsilon);
    let sum = n.add("sum", mean, epsilon)?;
    let root = n.unary("root", UnaryKind::Sqrt, sum)?;
    let v = n.binary("standard", BinaryKind::Div, data, root)?;
    n.binary("", BinaryKind::Mul, v, scale)
}

/// Standardizes each channel of each image, `[N, C, …]`; factor and term have a number for each channel.
pub fn instance(n: &mut SemanticBuilder, data: ValueId, by: Affine, epsilon: f32) -> Result<ValueId, Reason> {
    let rank = n.ty(data).rank();
    if rank < 3 {
        return Err(format!("its data must have 3 or more dimensions, found {}", n.ty(data)).into());
    }
    let axes: Vec<usize> = (2..rank).collect();
    let [v, ..] = standard(n, data, &axes, epsilon)?;
    let by = of_channels(n, by, rank)?;
    affine(n, v, by)
}

/// Factor and term of channels in dimension 1.
fn of_channels(n: &mut SemanticBuilder, by: Affine, rank: usize) -> Result<Affine, Reason> {
    let scale = channels(n, "scale", by.scale, rank)?;
    let bias = by.bias.map(|bias| channels(n, "bias", bias, rank)).transpose()?;
    Ok(Affine { scale, bias })
}

/// Standardizes groups of channels of each image, `[N, C, …]`. Factor and term have a number for each channel, or, with
/// `by_group`, for each group.
pub fn group(
    n: &mut SemanticBuilder,
    data: ValueId,
    groups: usize,
    by: Affine,
    by_group: bool,
    epsilon: f32,
) -> Result<ValueId, Reason> {
    let shape = n.shape(data)?;
    if shape.len() < 2 || groups == 0 || shape[1] % groups != 0 {
        return Err(format!("its {groups} groups must divide the channels of {}", n.ty(data)).into());
    }
    let rest: usize = shape[1..].iter().product::<usize>() / groups;
    let rows = n.reshape("groups", data, &[shape[0], groups, rest])?;
    let [v, ..] = standard(n, rows, &[2], epsilon)?;
    let v = n.reshape("shape", v, &shape)?;
    let mut spread = |name: &str, v: ValueId| {
        if !by_group {
            return Ok(v);
        }
        let column = n.reshape(name, v, &[groups, 1])?;
        let wide = n.node(name, Expand { shape: vec![groups, shape[1] / groups] }, &[column])?;
        n.reshape(name, wide, &[shape[1]])
    };
    let by = Affine { scale: spread("scale", by.scale)?, bias: by.bias.map(|bias| spread("bias", bias)).transpose()? };
    let by = of_channels(n, by, shape.len())?;
    affine(n, v, by)
}

/// A normalization by neighboring channels: their number and its numbers.
#[derive(Debug, Clone, Copy)]
pub struct LocalResponse {
    /// From 1 to 65,535.
    pub size: usize,
    pub alpha: f32,
    pub beta: f32,
    pub bias: f32,
}

/// `x / (bias + alpha / size * sum of x^2 over neighboring channels)^beta`, channels in dimension 1.
pub fn local_response(n: &mut SemanticBuilder, data: ValueId, by: LocalResponse) -> Result<ValueId, Reason> {
    let LocalResponse { size, alpha, beta, bias } = by;
    let shape = n.shape(data)?;
    if shape.len() < 2 {
        return Err(format!("its data must have channels, found {}", n.ty(data)).into());
    }
    if !(1..1 << 16).contains(&size) {
        return Err("its size must be from 1 to 65535".into());
    }
    let channels = shape[1];
    let place = |i: usize| (i / size + i % size) as i64 - ((size - 1) / 2) as i64;
    let inside = |i: usize| (0..channels as i64).contains(&place(i));
    let index = n.table("index", &[channels, size], |i| if inside(i) { place(i) as i32 } else { 0 })?;
    let weight = n.table("weight", &[channels, size], |i| if inside(i) { alpha / size as f32 } else { 0.0 })?;
    let square = n.binary("square", BinaryKind::Mul, data, data)?;
    let sum = n.node("sum", Resample { axis: 1 }, &[square, index, weight])?;
    let bias = n.scalar("bias", bias);
    let sum = n.add("add", sum, bias)?;
    let beta = n.scalar("beta", beta);
    let power = n.binary("pow", BinaryKind::Pow, sum, beta)?;
    n.binary("", BinaryKind::Div, data, power)
}

/// The `p`-th root of a sum of `p`-th powers of absolute values, which `sum` makes.
pub fn length(
    n: &mut SemanticBuilder,
    suffix: &str,
    data: ValueId,
    p: i64,
    sum: impl FnOnce(&mut SemanticBuilder, ValueId) -> Result<ValueId, Reason>,
) -> Result<ValueId, Reason> {
    match p {
        1 => {
            let abs = n.unary("abs", UnaryKind::Abs, data)?;
            sum(n, abs)
        }
        2 => {
            let square = n.binary("square", BinaryKind::Mul, data, data)?;
            let sum = sum(n, square)?;
            n.unary(suffix, UnaryKind::Sqrt, sum)
        }
        3.. => {
            let abs = n.unary("abs", UnaryKind::Abs, data)?;
            let (p, root) = (n.scalar("p", p as f32), n.scalar("root", 1.0 / p as f32));
            let power = n.binary("power", BinaryKind::Pow, abs, p)?;
            let sum = sum(n, power)?;
            n.binary(suffix, BinaryKind::Pow, sum, root)
        }
        _ => Err(format!("its p of {p} is not supported; use 1 or more").into()),
    }
}

/// `x / |x|` along a dimension, with the sum of absolute values (`p` = 1) or the root of the sum of squares (2).
pub fn lp(n: &mut SemanticBuilder, data: ValueId, axis: usize, p: i64) -> Result<ValueId, Reason> {
    if !matches!(p, 1 | 2) {
        return Err(format!("its p of {p} is not supported; use 1 or 2").into());
    }
    let norm = length(n, "sqrt", data, p, |n, v| n.reduce("sum", ReduceKind::Sum, &[axis], true, v))?;
    // Where the norm is 0, so is the result, as in ONNX Runtime; the quotient would be NaN.
    let quotient = n.binary("div", BinaryKind::Div, data, norm)?;
    let zero = n.scalar("zero", 0.0);
    let nothing = n.binary("nothing", BinaryKind::Equal, norm, zero)?;
    n.node("", Select {}, &[nothing, zero, quotient])
}

/// `x / max(|x|, least)` with the root of the sum of squares over these dimensions.
pub fn l2(n: &mut SemanticBuilder, data: ValueId, axes: &[usize], least: f32) -> Result<ValueId, Reason> {
    let root = length(n, "sqrt", data, 2, |n, v| n.reduce("sum", ReduceKind::Sum, axes, true, v))?;
    let least = n.scalar("least", least);
    let norm = n.binary("norm", BinaryKind::Max, root, least)?;
    n.binary("", BinaryKind::Div, data, norm)
}
