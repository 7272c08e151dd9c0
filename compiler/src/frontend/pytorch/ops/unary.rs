//! Functions of one element.

use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::elementwise;
use crate::graph::DType;
use crate::graph::ValueId;
use crate::graph::op::{BinaryKind, Bitcast, Select, UnaryKind};

/// The operand in the type of the result: whole numbers become floats for functions that give floats.
pub(super) fn operand(n: &mut NodeContext) -> Result<ValueId, Reason> {
    let v = n.tensor("self")?;
    let dtype = n.result_type(0)?;
    n.cast("float", v, dtype)
}

macro_rules! functions {
    ($($name:ident $kind:ident;)*) => {
        $(pub(super) fn $name(n: &mut NodeContext) -> Result<Value, Reason> {
            let v = operand(n)?;
            Ok(n.unary("", UnaryKind::$kind, v)?.into())
        })*
    };
}
functions! {
    abs Abs;
    neg Neg;
    not Not;
    exp Exp;
    log Log;
    sqrt Sqrt;
    reciprocal Reciprocal;
    sin Sin;
    cos Cos;
    tanh Tanh;
    erf Erf;
    sigmoid Sigmoid;
    sign Sign;
}

macro_rules! decomposed {
    ($($name:ident)*) => {
        $(pub(super) fn $name(n: &mut NodeContext) -> Result<Value, Reason> {
            let v = operand(n)?;
            Ok(elementwise::$name(n, v)?.into())
        })*
    };
}
decomposed! { acos acosh asin asinh atan atanh cosh sinh tan }

/// Rounds floats; whole numbers stay.
fn rounded(n: &mut NodeContext, kind: UnaryKind) -> Result<Value, Reason> {
    let v = operand(n)?;
    Ok(if n.ty(v).dtype.is_float() { n.unary("", kind, v)? } else { v }.into())
}

pub(super) fn floor(n: &mut NodeContext) -> Result<Value, Reason> {
    rounded(n, UnaryKind::Floor)
}

pub(super) fn ceil(n: &mut NodeContext) -> Result<Value, Reason> {
    rounded(n, UnaryKind::Ceil)
}

pub(super) fn round(n: &mut NodeContext) -> Result<Value, Reason> {
    let decimals = n.int("decimals", 0)?;
    if decimals == 0 {
        return rounded(n, UnaryKind::Round);
    }
    let v = operand(n)?;
    let scale = n.scalar("scale", 10f32.powi(i32::try_from(decimals.abs()).unwrap_or(38)));
    let (there, back) =
        if decimals > 0 { (BinaryKind::Mul, BinaryKind::Div) } else { (BinaryKind::Div, BinaryKind::Mul) };
    let v = n.binary("scaled", there, v, scale)?;
    let v = n.unary("round", UnaryKind::Round, v)?;
    Ok(n.binary("", back, v, scale)?.into())
}

pub(super) fn truncate(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = operand(n)?;
    Ok(if n.ty(v).dtype.is_float() { elementwise::truncated(n, v)? } else { v }.into())
}

pub(super) fn fraction(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = operand(n)?;
    let whole = elementwise::truncated(n, v)?;
    Ok(n.binary("", BinaryKind::Sub, v, whole)?.into())
}

pub(super) fn square(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = operand(n)?;
    Ok(n.binary("", BinaryKind::Mul, v, v)?.into())
}

pub(super) fn rsqrt(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = operand(n)?;
    let root = n.unary("root", UnaryKind::Sqrt, v)?;
    Ok(n.unary("", UnaryKind::Reciprocal, root)?.into())
}

/// A function times a number.
fn scaled(n: &mut NodeContext, suffix: &str, v: ValueId, factor: f64) -> Result<ValueId, Reason> {
    let dtype = n.ty(v).dtype;
    let factor = n.numeral("factor", factor, dtype)?;
    n.binary(suffix, BinaryKind::Mul, v, factor)
}

pub(super) fn log2(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = operand(n)?;
    let v = n.unary("log", UnaryKind::Log, v)?;
    Ok(scaled(n, "", v, std::f64::consts::LOG2_E)?.into())
}

pub(super) fn log10(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = operand(n)?;
    let v = n.unary("log", UnaryKind::Log, v)?;
    Ok(scaled(n, "", v, std::f64::consts::LOG10_E)?.into())
}

pub(super) fn deg2rad(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = operand(n)?;
    Ok(scaled(n, "", v, std::f64::consts::PI / 180.0)?.into())
}

pub(super) fn rad2deg(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = operand(n)?;
    Ok(scaled(n, "", v, 180.0 / std::f64::consts::PI)?.into())
}

pub(super) fn exp2(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = operand(n)?;
    let v = scaled(n, "scaled", v, std::f64::consts::LN_2)?;
    Ok(n.unary("exp", UnaryKind::Exp, v)?.into())
}

/// `log(1 + x)`: for small `x`, `log(u) * x / (u - 1)` with `u = 1 + x`, which does not lose its digits.
pub(super) fn log1p(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = operand(n)?;
    Ok(log_of_one_more(n, v)?.into())
}

pub(super) fn log_of_one_more(n: &mut NodeContext, v: ValueId) -> Result<ValueId, Reason> {
    let dtype = n.ty(v).dtype;
    let one = n.numeral("one", 1.0, dtype)?;
    let more = n.add("more", v, one)?;
    let log = n.unary("log", UnaryKind::Log, more)?;
    let less = n.binary("less", BinaryKind::Sub, more, one)?;
    let quotient = n.binary("quotient", BinaryKind::Div, v, less)?;
    let corrected = n.binary("corrected", BinaryKind::Mul, log, quotient)?;
    let size = n.unary("size", UnaryKind::Abs, v)?;
    let half = n.numeral("half", 0.5, dtype)?;
    let is_small = n.binary("is_small", BinaryKind::Less, size, half)?;
    // Where nothing is left of `x` beside 1, the logarithm is `x`.
    let nothing = n.binary("nothing", BinaryKind::Equal, more, one)?;
    let near = n.node("near", Select {}, &[nothing, v, corrected])?;
    n.node("", Select {}, &[is_small, near, log])
}

/// `exp(x) - 1`: for small `x`, `tanh(x / 2) * (exp(x) + 1)`.
pub(super) fn expm1(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = operand(n)?;
    let dtype = n.ty(v).dtype;
    let (one, half) = (n.numeral("one", 1.0, dtype)?, n.numeral("half", 0.5, dtype)?);
    let exp = n.unary("exp", UnaryKind::Exp, v)?;
    let far = n.binary("far", BinaryKind::Sub, exp, one)?;
    let halved = n.binary("halved", BinaryKind::Mul, v, half)?;
    let tanh = n.unary("tanh", UnaryKind::Tanh, halved)?;
    let sum = n.add("sum", exp, one)?;
    let near = n.binary("near", BinaryKind::Mul, tanh, sum)?;
    let size = n.unary("size", UnaryKind::Abs, v)?;
    let is_small = n.binary("is_small", BinaryKind::Less, size, half)?;
    Ok(n.node("", Select {}, &[is_small, near, far])?.into())
}

pub(super) fn erfc(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = operand(n)?;
    let dtype = n.ty(v).dtype;
    let one = n.numeral("one", 1.0, dtype)?;
    let erf = n.unary("erf", UnaryKind::Erf, v)?;
    Ok(n.binary("", BinaryKind::Sub, one, erf)?.into())
}

pub(super) fn logical_not(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let zero = n.zero_like(v)?;
    Ok(n.binary("", BinaryKind::Equal, v, zero)?.into())
}

pub(super) fn is_nan(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let equal = n.binary("equal", BinaryKind::Equal, v, v)?;
    Ok(n.unary("", UnaryKind::Not, equal)?.into())
}

/// Whether a float is infinite.
fn infinite(n: &mut NodeContext, suffix: &str, v: ValueId) -> Result<ValueId, Reason> {
    let dtype = n.ty(v).dtype;
    let infinity = n.numeral("infinity", f64::INFINITY, dtype)?;
    let size = n.unary("size", UnaryKind::Abs, v)?;
    n.binary(suffix, BinaryKind::Equal, size, infinity)
}

pub(super) fn is_infinite(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let v = n.float("float", v)?;
    Ok(infinite(n, "", v)?.into())
}

pub(super) fn is_finite(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let v = n.float("float", v)?;
    let dtype = n.ty(v).dtype;
    let infinity = n.numeral("infinity", f64::INFINITY, dtype)?;
    let size = n.unary("size", UnaryKind::Abs, v)?;
    Ok(n.binary("", BinaryKind::Less, size, infinity)?.into())
}

/// Whether the sign is negative, also that of -0.
pub(super) fn sign_bit(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let bits = match n.ty(v).dtype {
        DType::F32 => n.node("bits", Bitcast { dtype: DType::I32 }, &[v])?,
        DType::F64 => n.node("bits", Bitcast { dtype: DType::I64 }, &[v])?,
        _ => v,
    };
    let zero = n.zero_like(bits)?;
    Ok(n.binary("", BinaryKind::Less, bits, zero)?.into())
}

/// NaN and infinities become numbers.
pub(super) fn nan_to_num(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let dtype = n.ty(v).dtype;
    if !dtype.is_float() {
        n.ignore(&["nan", "posinf", "neginf"]);
        return Ok(v.into());
    }
    let most = if dtype == DType::F64 { f64::MAX } else { f32::MAX.into() };
    let nan = n.number("nan")?.unwrap_or(0.0);
    let ends = [n.number("neginf")?.unwrap_or(-most), n.number("posinf")?.unwrap_or(most)];
    let mut made = v;
    for (name, at, to) in [("neginf", f64::NEG_INFINITY, ends[0]), ("posinf", f64::INFINITY, ends[1])] {
        let (at, to) = (n.numeral(name, at, dtype)?, n.numeral(name, to, dtype)?);
        let is = n.binary("is_infinite", BinaryKind::Equal, v, at)?;
        made = n.node("finite", Select {}, &[is, to, made])?;
    }
    let nan = n.numeral("nan", nan, dtype)?;
    let is_number = n.binary("is_number", BinaryKind::Equal, v, v)?;
    Ok(n.node("", Select {}, &[is_number, made, nan])?.into())
}
