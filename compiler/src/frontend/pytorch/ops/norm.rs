//! Normalizations.

use super::create::vector;
use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::movement;
use crate::frontend::semantic::norm::{self, Affine};
use crate::graph::ValueId;
use crate::graph::op::{BinaryKind, ReduceKind};

fn epsilon(n: &mut NodeContext) -> Result<f32, Reason> {
    n.single("eps", 1e-5)
}

/// A parameter for each of `count` channels, or this number for all.
fn parameter(n: &mut NodeContext, name: &str, default: f32, count: usize, data: ValueId) -> Result<ValueId, Reason> {
    let dtype = n.ty(data).dtype;
    match n.optional(name)? {
        Some(v) => n.cast(name, v, dtype),
        None => vector(n, name, default, count, dtype),
    }
}

fn batch_normalized(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["momentum", "cudnn_enabled"]);
    let (data, epsilon) = (n.tensor("input")?, epsilon(n)?);
    let channels = *n.shape(data)?.get(1).ok_or("its data must have channels")?;
    let mut all = [data; 4];
    for (place, (name, default)) in
        all.iter_mut().zip([("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0)])
    {
        *place = parameter(n, name, default, channels, data)?;
    }
    Ok(norm::batch(n, data, all, epsilon)?.into())
}

pub(super) fn batch(n: &mut NodeContext) -> Result<Value, Reason> {
    if n.flag("training", false)? {
        if n.optional("running_mean")?.is_some() {
            return Err(
                "it normalizes with the batch's own statistics, as in training; export the module after `eval()`"
                    .into(),
            );
        }
        return of_batch(n);
    }
    batch_normalized(n)
}

/// Normalizes with the batch's own mean and variance.
fn of_batch(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["momentum", "cudnn_enabled", "running_mean", "running_var"]);
    let (data, epsilon) = (n.tensor("input")?, epsilon(n)?);
    let shape = n.shape(data)?;
    let channels = *shape.get(1).ok_or("its data must have channels")?;
    let axes: Vec<usize> = (0..shape.len()).filter(|a| *a != 1).collect();
    let [v, ..] = norm::standard(n, data, &axes, epsilon)?;
    let (scale, bias) = (parameter(n, "weight", 1.0, channels, data)?, parameter(n, "bias", 0.0, channels, data)?);
    let (scale, bias) =
        (norm::channels(n, "scale", scale, shape.len())?, norm::channels(n, "bias", bias, shape.len())?);
    let v = n.binary("mul", BinaryKind::Mul, v, scale)?;
    Ok(n.add("", v, bias)?.into())
}

/// The results of the forms that training uses: only the first is computed.
fn with_statistics(v: Value) -> Value {
    Value::List(vec![v, Value::None, Value::None])
}

pub(super) fn batch_no_training(n: &mut NodeContext) -> Result<Value, Reason> {
    batch_normalized(n).map(with_statistics)
}

pub(super) fn batch_legit(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["training"]);
    of_batch(n).map(with_statistics)
}

/// The dimension from which `normalized_shape` counts.
fn first_axis(n: &mut NodeContext, data: ValueId) -> Result<usize, Reason> {
    let shape = n.ints("normalized_shape")?.unwrap_or_default();
    let first = n.ty(data).rank().checked_sub(shape.len());
    first.ok_or_else(|| "its normalized_shape has more dimensions than its data".into())
}

pub(super) fn layer(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["cudnn_enable"]);
    let data = n.tensor("input")?;
    let (axis, epsilon) = (first_axis(n, data)?, epsilon(n)?);
    let (scale, bias) = (n.optional("weight")?, n.optional("bias")?);
    if let Some(scale) = scale {
        let [v, ..] = norm::layer(n, data, axis, Affine { scale, bias }, epsilon)?;
        return Ok(v.into());
    }
    let axes: Vec<usize> = (axis..n.ty(data).rank()).collect();
    let [v, ..] = norm::standard(n, data, &axes, epsilon)?;
    Ok(match bias {
        Some(bias) => n.add("", v, bias)?,
        None => v,
    }
    .into())
}

pub(super) fn layer_native(n: &mut NodeContext) -> Result<Value, Reason> {
    layer(n).map(with_statistics)
}

pub(super) fn rms(n: &mut NodeContext) -> Result<Value, Reason> {
    let data = n.tensor("input")?;
    let (axis, epsilon) = (first_axis(n, data)?, n.single("eps", f32::EPSILON)?);
    let scale = match n.optional("weight")? {
        Some(scale) => scale,
        None => {
            let dtype = n.ty(data).dtype;
            n.numeral("scale", 1.0, dtype)?
        }
    };
    Ok(norm::rms(n, data, axis, scale, epsilon)?.into())
}

fn grouped(n: &mut NodeContext, name: &str) -> Result<Value, Reason> {
    n.ignore(&["cudnn_enabled", "N", "C", "HxW"]);
    let (data, epsilon) = (n.tensor("input")?, epsilon(n)?);
    let groups = n.int(name, 1)?;
    let groups = usize::try_from(groups).ok().filter(|g| *g > 0).ok_or("its groups must be above 0")?;
    let channels = *n.shape(data)?.get(1).ok_or("its data must have channels")?;
    let scale = parameter(n, "weight", 1.0, channels, data)?;
    let bias = Some(parameter(n, "bias", 0.0, channels, data)?);
    Ok(norm::group(n, data, groups, Affine { scale, bias }, false, epsilon)?.into())
}

pub(super) fn group(n: &mut NodeContext) -> Result<Value, Reason> {
    grouped(n, "num_groups")
}

pub(super) fn group_native(n: &mut NodeContext) -> Result<Value, Reason> {
    grouped(n, "group").map(with_statistics)
}

pub(super) fn instance(n: &mut NodeContext) -> Result<Value, Reason> {
    if !n.flag("use_input_stats", true)? {
        return batch_normalized(n);
    }
    n.ignore(&["running_mean", "running_var", "momentum", "cudnn_enabled"]);
    let (data, epsilon) = (n.tensor("input")?, epsilon(n)?);
    let channels = *n.shape(data)?.get(1).ok_or("its data must have channels")?;
    let scale = parameter(n, "weight", 1.0, channels, data)?;
    let bias = Some(parameter(n, "bias", 0.0, channels, data)?);
    Ok(norm::instance(n, data, Affine { scale, bias }, epsilon)?.into())
}

/// `g * v / |v|`, with the norm over all dimensions but one.
pub(super) fn weight(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, g) = (n.tensor("v")?, n.tensor("g")?);
    let rank = n.ty(v).rank();
    let axes: Vec<usize> = match n.int("dim", 0)? {
        -1 => (0..rank).collect(),
        dim => {
            let own = n.axis(dim, rank)?;
            (0..rank).filter(|a| *a != own).collect()
        }
    };
    let length = norm::length(n, "length", v, 2, |n, v| n.reduce("sum", ReduceKind::Sum, &axes, true, v))?;
    let factor = n.binary("factor", BinaryKind::Div, g, length)?;
    Ok(n.binary("", BinaryKind::Mul, v, factor)?.into())
}

pub(super) fn cosine_similarity(n: &mut NodeContext) -> Result<Value, Reason> {
    let (a, b) = (n.tensor("x1")?, n.tensor("x2")?);
    let rank = n.ty(a).rank().max(n.ty(b).rank());
    let (axis, epsilon) = (n.dim("dim", 1, rank)?, n.number("eps")?.unwrap_or(1e-8));
    let dtype = n.ty(a).dtype;
    let least = n.numeral("eps", epsilon, dtype)?;
    let mut units = [a, b];
    let shapes = [n.shape(a)?, n.shape(b)?];
    for (i, v) in units.iter_mut().enumerate() {
        *v = movement::expand_to(n, *v, &shapes[1 - i])?;
        let length = norm::length(n, "length", *v, 2, |n, v| n.reduce("sum", ReduceKind::Sum, &[axis], true, v))?;
        let length = n.binary("least", BinaryKind::Max, length, least)?;
        *v = n.binary("unit", BinaryKind::Div, *v, length)?;
    }
    let product = n.binary("products", BinaryKind::Mul, units[0], units[1])?;
    Ok(n.reduce("", ReduceKind::Sum, &[axis], false, product)?.into())
}

/// The mean, or the sum, of squared differences.
pub(super) fn squared_error(n: &mut NodeContext) -> Result<Value, Reason> {
    let (a, b) = (n.tensor("self")?, n.tensor("target")?);
    let less = n.binary("less", BinaryKind::Sub, a, b)?;
    let square = n.binary("square", BinaryKind::Mul, less, less)?;
    let kind = match n.int("reduction", 1)? {
        0 => return Ok(square.into()),
        1 => ReduceKind::Mean,
        2 => ReduceKind::Sum,
        other => return Err(format!("reduction {other} is not known").into()),
    };
    let axes: Vec<usize> = (0..n.ty(square).rank()).collect();
    Ok(n.reduce("", kind, &axes, false, square)?.into())
}
