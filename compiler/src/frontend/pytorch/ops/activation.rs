//! Activations, softmax and its logarithm.

use super::unary::operand;
use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::{elementwise, norm, reduce};
use crate::graph::ValueId;
use crate::graph::op::{BinaryKind, Clip, ReduceKind, Relu, Select, Softmax, Unary, UnaryKind};

fn function(n: &mut NodeContext, kind: UnaryKind, alpha: f32, beta: f32) -> Result<Value, Reason> {
    let v = operand(n)?;
    Ok(n.node("", Unary { kind, alpha, beta }, &[v])?.into())
}

pub(super) fn relu(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = operand(n)?;
    if n.ty(v).dtype.is_float() {
        return Ok(n.node("", Relu {}, &[v])?.into());
    }
    let zero = n.zero_like(v)?;
    Ok(n.binary("", BinaryKind::Max, v, zero)?.into())
}

/// Within bounds.
fn clipped(n: &mut NodeContext, lo: f32, hi: f32) -> Result<Value, Reason> {
    let v = operand(n)?;
    Ok(n.node("", Clip { lo, hi }, &[v])?.into())
}

pub(super) fn relu6(n: &mut NodeContext) -> Result<Value, Reason> {
    clipped(n, 0.0, 6.0)
}

pub(super) fn hard_tanh(n: &mut NodeContext) -> Result<Value, Reason> {
    let (lo, hi) = (n.single("min_val", -1.0)?, n.single("max_val", 1.0)?);
    clipped(n, lo, hi)
}

pub(super) fn hard_swish(n: &mut NodeContext) -> Result<Value, Reason> {
    function(n, UnaryKind::HardSwish, 0.0, 0.0)
}

pub(super) fn hard_sigmoid(n: &mut NodeContext) -> Result<Value, Reason> {
    function(n, UnaryKind::HardSigmoid, 1.0 / 6.0, 0.5)
}

pub(super) fn silu(n: &mut NodeContext) -> Result<Value, Reason> {
    function(n, UnaryKind::Silu, 0.0, 0.0)
}

pub(super) fn mish(n: &mut NodeContext) -> Result<Value, Reason> {
    function(n, UnaryKind::Mish, 0.0, 0.0)
}

pub(super) fn gelu(n: &mut NodeContext) -> Result<Value, Reason> {
    match n.text("approximate")?.as_deref() {
        None | Some("none") => function(n, UnaryKind::Gelu, 0.0, 0.0),
        Some("tanh") => function(n, UnaryKind::GeluTanh, 0.0, 0.0),
        Some(other) => Err(format!("unknown approximate `{other}`; use none or tanh").into()),
    }
}

pub(super) fn leaky_relu(n: &mut NodeContext) -> Result<Value, Reason> {
    let slope = n.single("negative_slope", 0.01)?;
    function(n, UnaryKind::LeakyRelu, slope, 0.0)
}

/// `scale * (x > 0 ? x : alpha * (exp(input_scale * x) - 1))`.
fn exponential(n: &mut NodeContext, alpha: f64, scale: f64, input_scale: f64) -> Result<Value, Reason> {
    let v = operand(n)?;
    let dtype = n.ty(v).dtype;
    let mut x = v;
    if input_scale != 1.0 {
        let factor = n.numeral("input_scale", input_scale, dtype)?;
        x = n.binary("scaled", BinaryKind::Mul, v, factor)?;
    }
    let last = scale == 1.0 && input_scale == 1.0;
    let elu = Unary { kind: UnaryKind::Elu, alpha: alpha as f32, beta: 0.0 };
    let mut made = n.node(if last { "" } else { "elu" }, elu, &[x])?;
    if input_scale != 1.0 {
        let zero = n.zero_like(v)?;
        let below = n.binary("below", BinaryKind::Less, v, zero)?;
        made = n.node("chosen", Select {}, &[below, made, v])?;
    }
    if scale != 1.0 {
        let scale = n.numeral("scale", scale, dtype)?;
        made = n.binary("", BinaryKind::Mul, made, scale)?;
    }
    Ok(made.into())
}

pub(super) fn elu(n: &mut NodeContext) -> Result<Value, Reason> {
    let number = |n: &mut NodeContext, name: &str| Ok::<f64, Reason>(n.number(name)?.unwrap_or(1.0));
    let (alpha, scale, input_scale) = (number(n, "alpha")?, number(n, "scale")?, number(n, "input_scale")?);
    exponential(n, alpha, scale, input_scale)
}

pub(super) fn selu(n: &mut NodeContext) -> Result<Value, Reason> {
    exponential(n, 1.673_263_242_354_377_2, 1.050_700_987_355_480_5, 1.0)
}

/// `x > 0 ? x : alpha * (exp(x / alpha) - 1)`.
pub(super) fn celu(n: &mut NodeContext) -> Result<Value, Reason> {
    let alpha = n.number("alpha")?.unwrap_or(1.0);
    if alpha <= 0.0 {
        return Err(format!("its alpha of {alpha} must be above 0").into());
    }
    exponential(n, alpha, 1.0, 1.0 / alpha)
}

/// `log(1 + exp(beta * x)) / beta`, and `x` from a threshold on.
pub(super) fn softplus(n: &mut NodeContext) -> Result<Value, Reason> {
    let (beta, threshold) = (n.number("beta")?.unwrap_or(1.0), n.number("threshold")?.unwrap_or(20.0));
    let v = operand(n)?;
    let dtype = n.ty(v).dtype;
    let beta_v = n.numeral("beta", beta, dtype)?;
    let x = if beta == 1.0 { v } else { n.binary("scaled", BinaryKind::Mul, v, beta_v)? };
    let soft = n.unary("softplus", UnaryKind::Softplus, x)?;
    let soft = if beta == 1.0 { soft } else { n.binary("unscaled", BinaryKind::Div, soft, beta_v)? };
    let threshold = n.numeral("threshold", threshold, dtype)?;
    let above = n.binary("above", BinaryKind::Less, threshold, x)?;
    Ok(n.node("", Select {}, &[above, v, soft])?.into())
}

pub(super) fn log_sigmoid(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = operand(n)?;
    let negative = n.unary("negative", UnaryKind::Neg, v)?;
    let soft = n.unary("softplus", UnaryKind::Softplus, negative)?;
    Ok(n.unary("", UnaryKind::Neg, soft)?.into())
}

pub(super) fn hard_shrink(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, limit) = (operand(n)?, n.single("lambd", 0.5)?);
    Ok(elementwise::shrunk(n, v, limit, 0.0)?.into())
}

pub(super) fn soft_shrink(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, limit) = (operand(n)?, n.single("lambd", 0.5)?);
    Ok(elementwise::shrunk(n, v, limit, limit)?.into())
}

/// The elements above a threshold, else a value.
pub(super) fn threshold(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = operand(n)?;
    let dtype = n.ty(v).dtype;
    let (limit, value) = (n.number("threshold")?.unwrap_or(0.0), n.number("value")?.unwrap_or(0.0));
    let (limit, value) = (n.numeral("threshold", limit, dtype)?, n.numeral("value", value, dtype)?);
    let within = n.binary("within", BinaryKind::LessEqual, v, limit)?;
    Ok(n.node("", Select {}, &[within, value, v])?.into())
}

/// `log(x / (1 - x))`, with `x` within `eps` and `1 - eps`.
pub(super) fn logit(n: &mut NodeContext) -> Result<Value, Reason> {
    let mut v = operand(n)?;
    let dtype = n.ty(v).dtype;
    if let Some(eps) = n.number("eps")? {
        let (lo, hi) = (n.numeral("lo", eps, dtype)?, n.numeral("hi", 1.0 - eps, dtype)?);
        v = n.binary("least", BinaryKind::Max, v, lo)?;
        v = n.binary("most", BinaryKind::Min, v, hi)?;
    }
    let one = n.numeral("one", 1.0, dtype)?;
    let rest = n.binary("rest", BinaryKind::Sub, one, v)?;
    let quotient = n.binary("quotient", BinaryKind::Div, v, rest)?;
    Ok(n.unary("", UnaryKind::Log, quotient)?.into())
}

/// Slopes are one, or one for each channel, which are dimension 1.
pub(super) fn prelu(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, mut slope) = (n.tensor("self")?, n.tensor("weight")?);
    let rank = n.ty(v).rank();
    if n.ty(slope).element_count() != Some(1) && rank > 1 {
        slope = norm::channels(n, "slope", slope, rank)?;
    }
    Ok(elementwise::sloped(n, v, slope)?.into())
}

/// One half of a dimension times the sigmoid of the other.
pub(super) fn gated(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let axis = n.dim("dim", -1, n.ty(v).rank())?;
    let half = n.shape(v)?[axis] / 2;
    let a = crate::frontend::semantic::movement::part(n, "a", v, axis, 0, half)?;
    let b = crate::frontend::semantic::movement::part(n, "b", v, axis, half, half)?;
    let gate = n.unary("gate", UnaryKind::Sigmoid, b)?;
    Ok(n.binary("", BinaryKind::Mul, a, gate)?.into())
}

/// Data in the type of the result, and a dimension of them. Data without dimensions get one, which the flag tells.
fn along(n: &mut NodeContext) -> Result<(ValueId, usize, bool), Reason> {
    n.ignore(&["dtype", "half_to_float"]);
    let v = operand(n)?;
    let rank = n.ty(v).rank();
    let axis = n.dim_of_any("dim", -1, rank)?;
    let single = rank == 0;
    Ok((if single { n.reshape("line", v, &[1])? } else { v }, axis, single))
}

fn back(n: &mut NodeContext, v: ValueId, single: bool) -> Result<Value, Reason> {
    Ok(if single { n.reshape("", v, &[])? } else { v }.into())
}

pub(super) fn softmax(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, axis, single) = along(n)?;
    let v = n.node(if single { "softmax" } else { "" }, Softmax::float(axis, 1.0), &[v])?;
    back(n, v, single)
}

pub(super) fn log_softmax(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, axis, single) = along(n)?;
    let v = reduce::log_softmax(n, v, axis)?;
    back(n, v, single)
}

/// Softmax whose rows of minus infinity become zeros.
pub(super) fn safe_softmax(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, axis, single) = along(n)?;
    let soft = n.node("softmax", Softmax::float(axis, 1.0), &[v])?;
    let most = n.reduce("most", ReduceKind::Max, &[axis], true, v)?;
    let dtype = n.ty(v).dtype;
    let least = n.numeral("least", f64::NEG_INFINITY, dtype)?;
    let nothing = n.binary("nothing", BinaryKind::Equal, most, least)?;
    let zero = n.zero_like(v)?;
    let v = n.node("", Select {}, &[nothing, zero, soft])?;
    back(n, v, single)
}
