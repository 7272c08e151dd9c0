//! Functions of two or more elements, with PyTorch's rules of types.

use super::unary::log_of_one_more;
use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::{NodeContext, Operand};
use crate::frontend::reason::Reason;
use crate::frontend::semantic::elementwise;
use crate::graph::op::{BinaryKind, Clip, Select, UnaryKind};
use crate::graph::{DType, ValueId};

/// Both operands in the type of the result.
fn operands(n: &mut NodeContext) -> Result<[ValueId; 2], Reason> {
    let both = [n.operand("self")?, n.operand("other")?];
    let dtype = n.result_type(0)?;
    Ok([n.as_type("a", both[0], dtype)?, n.as_type("b", both[1], dtype)?])
}

/// Both operands in the type in which they are compared.
fn compared(n: &mut NodeContext) -> Result<[ValueId; 2], Reason> {
    let both = [n.operand("self")?, n.operand("other")?];
    let dtype = n.common_type(&both);
    Ok([n.as_type("a", both[0], dtype)?, n.as_type("b", both[1], dtype)?])
}

fn plain(n: &mut NodeContext, kind: BinaryKind) -> Result<Value, Reason> {
    let [a, b] = operands(n)?;
    Ok(n.binary("", kind, a, b)?.into())
}

/// Truth values: the product and the smaller one are both, the sum and the greater one are either.
fn numeric(n: &mut NodeContext, kind: BinaryKind) -> Result<Value, Reason> {
    let [a, b] = operands(n)?;
    let kind = match (n.ty(a).dtype, kind) {
        (DType::Bool, BinaryKind::Mul | BinaryKind::Min) => BinaryKind::And,
        (DType::Bool, BinaryKind::Max) => BinaryKind::Or,
        (_, kind) => kind,
    };
    Ok(n.binary("", kind, a, b)?.into())
}

macro_rules! plain {
    ($($name:ident $how:ident $kind:ident;)*) => {
        $(pub(super) fn $name(n: &mut NodeContext) -> Result<Value, Reason> {
            $how(n, BinaryKind::$kind)
        })*
    };
}
plain! {
    multiply numeric Mul;
    maximum numeric Max;
    minimum numeric Min;
    and plain And;
    or plain Or;
    xor plain Xor;
    shift_left plain ShiftLeft;
    shift_right plain ShiftRight;
}

pub(super) fn add(n: &mut NodeContext) -> Result<Value, Reason> {
    let [a, b] = operands(n)?;
    if n.ty(a).dtype == DType::Bool {
        return Ok(n.binary("", BinaryKind::Or, a, b)?.into());
    }
    let b = n.times("alpha", b)?;
    Ok(n.add("", a, b)?.into())
}

pub(super) fn subtract(n: &mut NodeContext) -> Result<Value, Reason> {
    let [a, b] = operands(n)?;
    let b = n.times("alpha", b)?;
    Ok(n.binary("", BinaryKind::Sub, a, b)?.into())
}

/// `other - alpha * self`.
pub(super) fn subtract_from(n: &mut NodeContext) -> Result<Value, Reason> {
    let [a, b] = operands(n)?;
    let a = n.times("alpha", a)?;
    Ok(n.binary("", BinaryKind::Sub, b, a)?.into())
}

pub(super) fn divide(n: &mut NodeContext) -> Result<Value, Reason> {
    let mode = n.text("rounding_mode")?;
    let [a, b] = operands(n)?;
    match mode.as_deref() {
        None => Ok(n.binary("", BinaryKind::Div, a, b)?.into()),
        Some("floor") => Ok(floor_of_quotient(n, a, b)?.into()),
        Some("trunc") => {
            let quotient = n.binary("quotient", BinaryKind::Div, a, b)?;
            let floats = n.ty(quotient).dtype.is_float();
            Ok(if floats { elementwise::truncated(n, quotient)? } else { quotient }.into())
        }
        Some(other) => Err(format!("unknown rounding_mode `{other}`; use floor or trunc").into()),
    }
}

/// The greatest whole number that is not above the quotient.
fn floor_of_quotient(n: &mut NodeContext, a: ValueId, b: ValueId) -> Result<ValueId, Reason> {
    if n.ty(a).dtype.is_float() {
        let quotient = n.binary("quotient", BinaryKind::Div, a, b)?;
        return n.unary("", UnaryKind::Floor, quotient);
    }
    let rest = n.binary("rest", BinaryKind::Mod, a, b)?;
    let whole = n.binary("whole", BinaryKind::Sub, a, rest)?;
    n.binary("", BinaryKind::Div, whole, b)
}

pub(super) fn floor_divide(n: &mut NodeContext) -> Result<Value, Reason> {
    let [a, b] = operands(n)?;
    Ok(floor_of_quotient(n, a, b)?.into())
}

/// The remainder with the sign of the divisor.
pub(super) fn remainder(n: &mut NodeContext) -> Result<Value, Reason> {
    let [a, b] = operands(n)?;
    if !n.ty(a).dtype.is_float() {
        return Ok(n.binary("", BinaryKind::Mod, a, b)?.into());
    }
    let rest = elementwise::remainder(n, a, b)?;
    // A rest of the other sign is one divisor off.
    let zero = n.zero_like(rest)?;
    let (rest_below, b_below) =
        (n.binary("rest_below", BinaryKind::Less, rest, zero)?, n.binary("b_below", BinaryKind::Less, b, zero)?);
    let differ = n.binary("differ", BinaryKind::Xor, rest_below, b_below)?;
    let is_zero = n.binary("is_zero", BinaryKind::Equal, rest, zero)?;
    let more = n.add("more", rest, b)?;
    let moved = n.node("moved", Select {}, &[differ, more, rest])?;
    Ok(n.node("", Select {}, &[is_zero, rest, moved])?.into())
}

/// The remainder with the sign of the dividend.
pub(super) fn fmod(n: &mut NodeContext) -> Result<Value, Reason> {
    let [a, b] = operands(n)?;
    Ok(elementwise::remainder(n, a, b)?.into())
}

macro_rules! comparisons {
    ($($name:ident $kind:ident $turned:literal;)*) => {
        $(pub(super) fn $name(n: &mut NodeContext) -> Result<Value, Reason> {
            let [a, b] = compared(n)?;
            // Truth values are compared as numbers.
            let [a, b] = if n.ty(a).dtype == DType::Bool && BinaryKind::$kind != BinaryKind::Equal {
                [n.cast("a", a, DType::U8)?, n.cast("b", b, DType::U8)?]
            } else {
                [a, b]
            };
            let [a, b] = if $turned { [b, a] } else { [a, b] };
            Ok(n.binary("", BinaryKind::$kind, a, b)?.into())
        })*
    };
}
comparisons! {
    equal Equal false;
    less Less false;
    less_equal LessEqual false;
    greater Less true;
    greater_equal LessEqual true;
}

pub(super) fn not_equal(n: &mut NodeContext) -> Result<Value, Reason> {
    let [a, b] = compared(n)?;
    let equal = n.binary("equal", BinaryKind::Equal, a, b)?;
    Ok(n.unary("", UnaryKind::Not, equal)?.into())
}

fn logical(n: &mut NodeContext, kind: BinaryKind) -> Result<Value, Reason> {
    let both = [n.operand("self")?, n.operand("other")?];
    let [a, b] = [n.as_type("a", both[0], DType::Bool)?, n.as_type("b", both[1], DType::Bool)?];
    Ok(n.binary("", kind, a, b)?.into())
}

pub(super) fn logical_and(n: &mut NodeContext) -> Result<Value, Reason> {
    logical(n, BinaryKind::And)
}

pub(super) fn logical_or(n: &mut NodeContext) -> Result<Value, Reason> {
    logical(n, BinaryKind::Or)
}

pub(super) fn logical_xor(n: &mut NodeContext) -> Result<Value, Reason> {
    logical(n, BinaryKind::Xor)
}

/// The greater or smaller of two numbers; a NaN beside a number does not count.
fn of_numbers(n: &mut NodeContext, kind: BinaryKind) -> Result<Value, Reason> {
    let [a, b] = operands(n)?;
    let v = n.binary("extreme", kind, a, b)?;
    let (a_is_number, b_is_number) =
        (n.binary("a_is_number", BinaryKind::Equal, a, a)?, n.binary("b_is_number", BinaryKind::Equal, b, b)?);
    let v = n.node("of_a", Select {}, &[b_is_number, v, a])?;
    Ok(n.node("", Select {}, &[a_is_number, v, b])?.into())
}

pub(super) fn maximum_number(n: &mut NodeContext) -> Result<Value, Reason> {
    of_numbers(n, BinaryKind::Max)
}

pub(super) fn minimum_number(n: &mut NodeContext) -> Result<Value, Reason> {
    of_numbers(n, BinaryKind::Min)
}

pub(super) fn add_product(n: &mut NodeContext) -> Result<Value, Reason> {
    combined(n, BinaryKind::Mul)
}

pub(super) fn add_quotient(n: &mut NodeContext) -> Result<Value, Reason> {
    combined(n, BinaryKind::Div)
}

/// `self + value * (tensor1 * tensor2)`, or the quotient.
fn combined(n: &mut NodeContext, kind: BinaryKind) -> Result<Value, Reason> {
    let dtype = n.result_type(0)?;
    let [v, a, b] = [n.tensor("self")?, n.tensor("tensor1")?, n.tensor("tensor2")?];
    let [v, a, b] = [n.cast("self", v, dtype)?, n.cast("a", a, dtype)?, n.cast("b", b, dtype)?];
    let term = n.binary("term", kind, a, b)?;
    let term = n.times("value", term)?;
    Ok(n.add("", v, term)?.into())
}

/// `self + weight * (end - self)`.
pub(super) fn interpolate(n: &mut NodeContext) -> Result<Value, Reason> {
    let (a, b, weight) = (n.tensor("self")?, n.tensor("end")?, n.operand("weight")?);
    let dtype = n.result_type(0)?;
    let weight = n.as_type("weight", weight, dtype)?;
    let span = n.binary("span", BinaryKind::Sub, b, a)?;
    let part = n.binary("part", BinaryKind::Mul, weight, span)?;
    Ok(n.add("", a, part)?.into())
}

pub(super) fn clamp(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = super::unary::operand(n)?;
    let dtype = n.ty(v).dtype;
    let bounds = [n.value("min")?, n.value("max")?];
    let number = |value: &Value, open: f32| match *value {
        Value::None => Some(open),
        Value::Int(x) => Some(x as f32),
        Value::Float(x) => Some(x as f32),
        _ => None,
    };
    if let (DType::F32, Some(lo), Some(hi)) =
        (dtype, number(&bounds[0], f32::NEG_INFINITY), number(&bounds[1], f32::INFINITY))
        && lo <= hi
    {
        return Ok(n.node("", Clip { lo, hi }, &[v])?.into());
    }
    let mut v = v;
    for (name, kind) in [("min", BinaryKind::Max), ("max", BinaryKind::Min)] {
        if matches!(n.value(name)?, Value::None) {
            continue;
        }
        let bound = n.operand(name)?;
        let bound = n.as_type(name, bound, dtype)?;
        v = n.binary(if name == "max" { "" } else { "least" }, kind, v, bound)?;
    }
    Ok(v.into())
}

/// Whole exponents up to this one become products.
const MOST_FACTORS: f64 = 8.0;

pub(super) fn power(n: &mut NodeContext) -> Result<Value, Reason> {
    let (base, exponent) = (n.operand("self")?, n.operand("exponent")?);
    let dtype = n.result_type(0)?;
    let known = match exponent {
        Operand::Int(x) => Some(x as f64),
        Operand::Float(x) => Some(x),
        _ => None,
    };
    let a = n.as_type("base", base, dtype)?;
    if let Some(x) = known.filter(|x| x.fract() == 0.0 && (1.0..=MOST_FACTORS).contains(x)) {
        return Ok(elementwise::whole_power(n, a, x as u32)?.into());
    }
    if known == Some(0.5) && dtype.is_float() {
        return Ok(n.unary("", UnaryKind::Sqrt, a)?.into());
    }
    if dtype.is_float() {
        let b = n.as_type("exponent", exponent, dtype)?;
        return Ok(n.binary("", BinaryKind::Pow, a, b)?.into());
    }
    // Powers of whole numbers are whole, but for the last bits of floats.
    let [a, b] = [n.as_type("base", base, DType::F64)?, n.as_type("exponent", exponent, DType::F64)?];
    let v = n.binary("pow", BinaryKind::Pow, a, b)?;
    let v = n.unary("round", UnaryKind::Round, v)?;
    Ok(n.cast("", v, dtype)?.into())
}

pub(super) fn choose(n: &mut NodeContext) -> Result<Value, Reason> {
    let condition = n.tensor("condition")?;
    let condition = n.as_type("condition", Operand::Tensor(condition), DType::Bool)?;
    let [a, b] = operands(n)?;
    Ok(n.node("", Select {}, &[condition, a, b])?.into())
}

/// The size of one number with the sign of another, also of -0.
pub(super) fn copy_sign(n: &mut NodeContext) -> Result<Value, Reason> {
    let [a, b] = operands(n)?;
    let size = n.unary("size", UnaryKind::Abs, a)?;
    let negative = n.unary("negative", UnaryKind::Neg, size)?;
    // Only -0 and numbers below 0 have a reciprocal below 0.
    let (zero, one_over) = (n.zero_like(b)?, n.unary("one_over", UnaryKind::Reciprocal, b)?);
    let below = n.binary("below", BinaryKind::Less, b, zero)?;
    let below_zero = n.binary("below_zero", BinaryKind::Less, one_over, zero)?;
    let is_negative = n.binary("is_negative", BinaryKind::Or, below, below_zero)?;
    Ok(n.node("", Select {}, &[is_negative, negative, size])?.into())
}

/// The angle of a point.
pub(super) fn atan2(n: &mut NodeContext) -> Result<Value, Reason> {
    let [y, x] = operands(n)?;
    let dtype = n.ty(y).dtype;
    let zero = n.zero_like(x)?;
    let quotient = n.binary("quotient", BinaryKind::Div, y, x)?;
    let angle = elementwise::atan(n, quotient)?;
    let (pi, half) = (std::f64::consts::PI, std::f64::consts::FRAC_PI_2);
    let [up, down] = [n.numeral("pi", pi, dtype)?, n.numeral("pi", -pi, dtype)?];
    let y_below = n.binary("y_below", BinaryKind::Less, y, zero)?;
    let turn = n.node("turn", Select {}, &[y_below, down, up])?;
    let turned = n.add("turned", angle, turn)?;
    let x_below = n.binary("x_below", BinaryKind::Less, x, zero)?;
    let v = n.node("angle", Select {}, &[x_below, turned, angle])?;
    // On the axis, the quotient is infinite or no number.
    let [up, down] = [n.numeral("half", half, dtype)?, n.numeral("half", -half, dtype)?];
    let upright = n.node("upright", Select {}, &[y_below, down, up])?;
    let y_is_zero = n.binary("y_is_zero", BinaryKind::Equal, y, zero)?;
    let upright = n.node("upright_or_zero", Select {}, &[y_is_zero, zero, upright])?;
    let on_axis = n.binary("on_axis", BinaryKind::Equal, x, zero)?;
    Ok(n.node("", Select {}, &[on_axis, upright, v])?.into())
}

pub(super) fn hypotenuse(n: &mut NodeContext) -> Result<Value, Reason> {
    let [a, b] = operands(n)?;
    let (a, b) = (n.binary("a_square", BinaryKind::Mul, a, a)?, n.binary("b_square", BinaryKind::Mul, b, b)?);
    let sum = n.add("sum", a, b)?;
    Ok(n.unary("", UnaryKind::Sqrt, sum)?.into())
}

/// `log(exp(a) + exp(b))`.
pub(super) fn log_add_exp(n: &mut NodeContext) -> Result<Value, Reason> {
    let [a, b] = operands(n)?;
    let most = n.binary("most", BinaryKind::Max, a, b)?;
    let span = n.binary("span", BinaryKind::Sub, a, b)?;
    let span = n.unary("size", UnaryKind::Abs, span)?;
    let span = n.unary("negative", UnaryKind::Neg, span)?;
    let exp = n.unary("exp", UnaryKind::Exp, span)?;
    let log = log_of_one_more(n, exp)?;
    Ok(n.add("", most, log)?.into())
}

/// `a * log(b)`, 0 where `a` is 0.
pub(super) fn x_log_y(n: &mut NodeContext) -> Result<Value, Reason> {
    let [a, b] = operands(n)?;
    let log = n.unary("log", UnaryKind::Log, b)?;
    let v = n.binary("product", BinaryKind::Mul, a, log)?;
    let zero = n.zero_like(a)?;
    let is_zero = n.binary("is_zero", BinaryKind::Equal, a, zero)?;
    let is_number = n.binary("is_number", BinaryKind::Equal, b, b)?;
    let is_zero = n.binary("nothing", BinaryKind::And, is_zero, is_number)?;
    Ok(n.node("", Select {}, &[is_zero, zero, v])?.into())
}

/// 0 below 0, 1 above it, and at 0 what `values` says.
pub(super) fn step(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, at_zero) = (n.tensor("self")?, n.tensor("values")?);
    let dtype = n.ty(v).dtype;
    let (zero, one) = (n.zero_like(v)?, n.numeral("one", 1.0, dtype)?);
    let above = n.binary("above", BinaryKind::Less, zero, v)?;
    let is_zero = n.binary("is_zero", BinaryKind::Equal, v, zero)?;
    let step = n.node("step", Select {}, &[above, one, zero])?;
    Ok(n.node("", Select {}, &[is_zero, at_zero, step])?.into())
}

/// `|a - b| <= atol + rtol * |b|`.
pub(super) fn is_close(n: &mut NodeContext) -> Result<Value, Reason> {
    let [a, b] = compared(n)?;
    let [a, b] = [n.float("a", a)?, n.float("b", b)?];
    let dtype = n.ty(a).dtype;
    let (rtol, atol) = (n.number("rtol")?.unwrap_or(1e-5), n.number("atol")?.unwrap_or(1e-8));
    let (rtol, atol) = (n.numeral("rtol", rtol, dtype)?, n.numeral("atol", atol, dtype)?);
    let nan_is_equal = n.flag("equal_nan", false)?;
    let span = n.binary("span", BinaryKind::Sub, a, b)?;
    let (span, size) = (n.unary("distance", UnaryKind::Abs, span)?, n.unary("size", UnaryKind::Abs, b)?);
    let part = n.binary("part", BinaryKind::Mul, rtol, size)?;
    let most = n.add("most", atol, part)?;
    let close = n.binary("close", BinaryKind::LessEqual, span, most)?;
    // An infinity is close only to itself.
    let infinity = n.numeral("infinity", f64::INFINITY, dtype)?;
    let finite = n.binary("finite", BinaryKind::Less, span, infinity)?;
    let close = n.binary("near", BinaryKind::And, close, finite)?;
    let equal = n.binary("equal", BinaryKind::Equal, a, b)?;
    let v = n.binary(if nan_is_equal { "numbers" } else { "" }, BinaryKind::Or, close, equal)?;
    if !nan_is_equal {
        return Ok(v.into());
    }
    let (a_is, b_is) = (n.binary("a_is", BinaryKind::Equal, a, a)?, n.binary("b_is", BinaryKind::Equal, b, b)?);
    let either = n.binary("either", BinaryKind::Or, a_is, b_is)?;
    let neither = n.unary("neither", UnaryKind::Not, either)?;
    Ok(n.binary("", BinaryKind::Or, v, neither)?.into())
}

/// `a * 2^b`.
pub(super) fn times_power(n: &mut NodeContext) -> Result<Value, Reason> {
    let [a, b] = operands(n)?;
    let dtype = n.ty(a).dtype;
    let two = n.numeral("two", 2.0, dtype)?;
    let power = n.binary("power", BinaryKind::Pow, two, b)?;
    Ok(n.binary("", BinaryKind::Mul, a, power)?.into())
}
