//! Functions of one element, including activations.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::onnx::tensor::Element;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::elementwise;
use crate::frontend::semantic::movement::flattened;
use crate::frontend::semantic::norm::channels;
use crate::frontend::semantic::reduce;
use crate::graph::op::{BinaryKind, Bitcast, Clip, Relu, Select, Softmax, Unary, UnaryKind};
use crate::graph::{DType, TensorData, ValueId};
use tilewright_runtime::tensor::NarrowFloat;

fn plain(n: &mut NodeContext, kind: UnaryKind, alpha: f32, beta: f32) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let v = n.node("", Unary { kind, alpha, beta }, &[data])?;
    n.output(v)
}

macro_rules! plain {
    ($($name:ident $kind:ident;)*) => {
        $(pub(super) fn $name(n: &mut NodeContext) -> Result<(), Reason> {
            plain(n, UnaryKind::$kind, 0.0, 0.0)
        })*
    };
}
plain! {
    abs Abs;
    neg Neg;
    sign Sign;
    not Not;
    bitwise_not Not;
    exp Exp;
    log Log;
    sqrt Sqrt;
    reciprocal Reciprocal;
    floor Floor;
    ceil Ceil;
    round Round;
    sin Sin;
    cos Cos;
    tanh Tanh;
    erf Erf;
    sigmoid Sigmoid;
    softplus Softplus;
    softsign Softsign;
    hard_swish HardSwish;
    mish Mish;
}

macro_rules! decomposed {
    ($($name:ident)*) => {
        $(pub(super) fn $name(n: &mut NodeContext) -> Result<(), Reason> {
            let data = n.plain(0)?;
            let v = elementwise::$name(n, data)?;
            n.output(v)
        })*
    };
}
decomposed! { acos acosh asin asinh atan atanh cosh sinh tan }

pub(super) fn shrink(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let (limit, bias) = (n.float("lambd").unwrap_or(0.5), n.float("bias").unwrap_or(0.0));
    let v = elementwise::shrunk(n, data, limit, bias)?;
    n.output(v)
}

pub(super) fn relu(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let v = if n.ty(data).dtype.is_float() {
        n.node("", Relu {}, &[data])?
    } else {
        let zero = n.scalar("zero", 0.0);
        let dtype = n.ty(data).dtype;
        let zero = n.cast("zero", zero, dtype)?;
        n.binary("", BinaryKind::Max, data, zero)?
    };
    n.output(v)
}

pub(super) fn leaky_relu(n: &mut NodeContext) -> Result<(), Reason> {
    plain(n, UnaryKind::LeakyRelu, n.float("alpha").unwrap_or(0.01), 0.0)
}

pub(super) fn elu(n: &mut NodeContext) -> Result<(), Reason> {
    plain(n, UnaryKind::Elu, n.float("alpha").unwrap_or(1.0), 0.0)
}

pub(super) fn hard_sigmoid(n: &mut NodeContext) -> Result<(), Reason> {
    plain(n, UnaryKind::HardSigmoid, n.float("alpha").unwrap_or(0.2), n.float("beta").unwrap_or(0.5))
}

pub(super) fn gelu(n: &mut NodeContext) -> Result<(), Reason> {
    match n.word("approximate").as_deref() {
        None | Some("none") => plain(n, UnaryKind::Gelu, 0.0, 0.0),
        Some("tanh") => plain(n, UnaryKind::GeluTanh, 0.0, 0.0),
        Some(other) => Err(format!("unknown approximate `{other}`; use none or tanh").into()),
    }
}

/// `gamma * (x > 0 ? x : alpha * (exp(x) - 1))`.
pub(super) fn selu(n: &mut NodeContext) -> Result<(), Reason> {
    // Before set 6, the defaults had only four digits.
    let defaults = if n.opset() < 6 { (1.6732, 1.0507) } else { (1.673_263_2, 1.050_701) };
    let (alpha, gamma) = (n.float("alpha").unwrap_or(defaults.0), n.float("gamma").unwrap_or(defaults.1));
    let data = n.plain(0)?;
    let v = n.node("elu", Unary { kind: UnaryKind::Elu, alpha, beta: 0.0 }, &[data])?;
    let gamma = n.scalar("gamma", gamma);
    let v = n.binary("", BinaryKind::Mul, v, gamma)?;
    n.output(v)
}

/// `max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))`, which is `alpha * elu(x / alpha)`.
pub(super) fn celu(n: &mut NodeContext) -> Result<(), Reason> {
    let alpha = n.float("alpha").unwrap_or(1.0);
    let data = n.plain(0)?;
    let factor = n.scalar("alpha", alpha);
    let v = n.binary("div", BinaryKind::Div, data, factor)?;
    let v = n.node("elu", Unary { kind: UnaryKind::Elu, alpha: 1.0, beta: 0.0 }, &[v])?;
    let v = n.binary("", BinaryKind::Mul, v, factor)?;
    n.output(v)
}

/// `x * sigmoid(alpha * x)`.
pub(super) fn swish(n: &mut NodeContext) -> Result<(), Reason> {
    let alpha = n.float("alpha").unwrap_or(1.0);
    scaled_swish(n, alpha)
}

/// Like [`swish`], with another default.
pub(super) fn quick_gelu(n: &mut NodeContext) -> Result<(), Reason> {
    let alpha = n.float("alpha").unwrap_or(1.702);
    scaled_swish(n, alpha)
}

fn scaled_swish(n: &mut NodeContext, alpha: f32) -> Result<(), Reason> {
    if alpha == 1.0 {
        return plain(n, UnaryKind::Silu, 0.0, 0.0);
    }
    let data = n.plain(0)?;
    let factor = n.scalar("alpha", alpha);
    let v = n.binary("mul", BinaryKind::Mul, data, factor)?;
    let v = n.unary("sigmoid", UnaryKind::Sigmoid, v)?;
    let v = n.binary("", BinaryKind::Mul, data, v)?;
    n.output(v)
}

pub(super) fn thresholded_relu(n: &mut NodeContext) -> Result<(), Reason> {
    let alpha = n.float("alpha").unwrap_or(1.0);
    let data = n.plain(0)?;
    let v = elementwise::thresholded(n, "", data, alpha)?;
    n.output(v)
}

pub(super) fn prelu(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, mut slope) = (n.plain(0)?, n.plain(1)?);
    let rank = n.ty(data).rank();
    if n.opset() < 7 && rank > 2 && n.ty(slope).element_count() != Some(1) {
        // Before set 7, slopes are per channel.
        slope = channels(n, "slope", slope, rank)?;
    }
    let v = elementwise::sloped(n, data, slope)?;
    n.output(v)
}

/// A missing bound is the smallest or greatest finite number, as the format says; a NaN bound does not limit anything.
pub(super) fn clip(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let dtype = n.ty(data).dtype;
    let late = n.opset() >= 11;
    let known = |i: usize| !late || !n.has_input(i) || n.known(i).is_some();
    if !(dtype.is_float() || dtype == DType::I8) || !known(1) || !known(2) {
        return clip_by_values(n);
    }
    let floats = dtype.is_float();
    let (absent, open) = if floats {
        ([f32::MIN, f32::MAX], [f32::NEG_INFINITY, f32::INFINITY])
    } else {
        ([-128.0, 127.0], [-128.0, 127.0])
    };
    let bound = |i: usize, name: &str| -> Result<f32, Reason> {
        let (absent, open) = (absent[i - 1], open[i - 1]);
        let x = if !late {
            n.float(name).unwrap_or(absent)
        } else if !n.has_input(i) {
            absent
        } else {
            let t = n.constant_input(i)?;
            match t.data() {
                _ if t.len() != 1 => return Err(format!("its {name} must be one number, found {}", t.ty()).into()),
                TensorData::F32(v) => v[0],
                TensorData::F64(v) => v[0] as f32,
                TensorData::I8(v) => f32::from(v[0]),
                TensorData::U8(v) => f32::from(v[0]) - 128.0,
                _ => return Err(format!("its {name} must be of type f32, i8 or u8, found {}", t.ty()).into()),
            }
        };
        // A bound of -0 is 0.
        Ok(if x.is_nan() { open } else { x + 0.0 })
    };
    let (lo, hi) = (bound(1, "min")?, bound(2, "max")?);
    // The upper bound is applied last.
    let lo = lo.min(hi);
    let v = n.node("", Clip { lo, hi }, &[data])?;
    n.output_like(v, data)
}

fn clip_by_values(n: &mut NodeContext) -> Result<(), Reason> {
    let mut v = n.plain(0)?;
    let dtype = n.ty(v).dtype;
    let bounds = [
        (1, "min", BinaryKind::Max, [f32::MIN, f32::NEG_INFINITY]),
        (2, "max", BinaryKind::Min, [f32::MAX, f32::INFINITY]),
    ];
    for (i, what, kind, [absent, open]) in bounds {
        let attribute = if n.opset() < 11 { n.float(what) } else { None };
        let bound = if n.opset() >= 11 && n.has_input(i) {
            let bound = n.plain(i)?;
            if dtype.is_float() { number_or(n, what, bound, open)? } else { bound }
        } else if let Some(x) = attribute.or(dtype.is_float().then_some(absent)) {
            let bound = n.scalar(what, x);
            n.cast(what, bound, dtype)?
        } else {
            continue;
        };
        v = n.binary(what, kind, v, bound)?;
    }
    n.output(v)
}

/// A value, or `other` where it is NaN.
fn number_or(n: &mut NodeContext, what: &str, v: ValueId, other: f32) -> Result<ValueId, Reason> {
    let number = n.binary(&format!("{what}/number"), BinaryKind::Equal, v, v)?;
    let other = n.scalar(&format!("{what}/open"), other);
    n.node(&format!("{what}/bound"), Select {}, &[number, v, other])
}

/// The data, the dimension of the softmax, and the shape for the result if the data were flattened.
fn softmax_data(n: &mut NodeContext) -> Result<(ValueId, usize, Option<Vec<usize>>), Reason> {
    let data = n.plain(0)?;
    let rank = n.ty(data).rank();
    if n.opset() >= 13 {
        return Ok((data, n.axis_attribute(-1, rank)?, None));
    }
    // Earlier operator sets sum over all dimensions from the axis on.
    let axis = n.axis_attribute(1, rank)?;
    if axis + 1 == rank {
        return Ok((data, axis, None));
    }
    let shape = n.shape(data)?;
    let flat = flattened(n, data, axis)?;
    Ok((flat, 1, Some(shape)))
}

fn shaped(n: &mut NodeContext, v: ValueId, shape: Option<Vec<usize>>) -> Result<(), Reason> {
    let v = match shape {
        Some(s) => n.reshape("shape", v, &s)?,
        None => v,
    };
    n.output(v)
}

pub(super) fn softmax(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, axis, shape) = softmax_data(n)?;
    let v = n.node("", Softmax::float(axis, 1.0), &[data])?;
    shaped(n, v, shape)
}

pub(super) fn hardmax(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, axis, shape) = softmax_data(n)?;
    let v = reduce::hardmax(n, data, axis)?;
    shaped(n, v, shape)
}

pub(super) fn is_nan(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let number = n.binary("number", BinaryKind::Equal, data, data)?;
    let v = n.unary("", UnaryKind::Not, number)?;
    n.output(v)
}

pub(super) fn is_inf(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let [below, above] = ["detect_negative", "detect_positive"].map(|name| n.int(name).unwrap_or(1) != 0);
    let v = match (below, above) {
        (true, true) => {
            let size = n.unary("size", UnaryKind::Abs, data)?;
            let infinity = n.scalar("infinity", f32::INFINITY);
            n.binary("", BinaryKind::Equal, size, infinity)?
        }
        (false, false) => {
            let shape = n.shape(data)?;
            n.table("", &shape, |_| false)?
        }
        _ => {
            let infinity = n.scalar("infinity", if above { f32::INFINITY } else { f32::NEG_INFINITY });
            n.binary("", BinaryKind::Equal, data, infinity)?
        }
    };
    n.output(v)
}

pub(super) fn log_softmax(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, axis, shape) = softmax_data(n)?;
    let v = reduce::log_softmax(n, data, axis)?;
    shaped(n, v, shape)
}

pub(super) fn cast(n: &mut NodeContext) -> Result<(), Reason> {
    let to = n.element_attribute("to")?.ok_or("its attribute `to` is missing")?;
    let data = n.plain(0)?;
    convert(n, data, to)
}

pub(super) fn cast_like(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, like) = (n.plain(0)?, n.element(1)?);
    convert(n, data, like)
}

fn convert(n: &mut NodeContext, data: ValueId, to: Element) -> Result<(), Reason> {
    let saturate = n.int("saturate").unwrap_or(1) != 0;
    match n.word("round_mode") {
        Some(mode) if mode != "up" && to.float.is_some_and(NarrowFloat::is_scale) => {
            return Err(format!("its round_mode `{mode}` is not supported; use up").into());
        }
        _ => {}
    }
    let v = n.converted(data, to, saturate)?;
    n.output(v)
}

pub(super) fn bit_cast(n: &mut NodeContext) -> Result<(), Reason> {
    let to = n.element_attribute("to")?.ok_or("its attribute `to` is missing")?;
    let (data, from) = (n.plain(0)?, n.element(0)?);
    if let Some(narrow) = [from, to].into_iter().find(|element| element.is_narrow()) {
        let name = narrow.float.map_or("an integer of less than a byte", NarrowFloat::name);
        return Err(format!("the bits of {name} are not supported").into());
    }
    // A boolean is a byte.
    let data = if from.dtype == DType::Bool { n.cast("byte", data, DType::U8)? } else { data };
    let v = match to.dtype {
        DType::Bool => n.cast("", data, DType::Bool)?,
        dtype => n.node("", Bitcast { dtype }, &[data])?,
    };
    n.output(v)
}
