//! Functions of two or more elements.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::elementwise::{self, remainder};
use crate::graph::op::{BinaryKind, Select, UnaryKind};
use crate::graph::{DType, ValueId};

/// Both operands. Before set 7, the second can be aligned with the dimensions of the first from `axis` on.
fn operands(n: &mut NodeContext) -> Result<(ValueId, ValueId), Reason> {
    let (a, b) = (n.plain(0)?, n.plain(1)?);
    if n.opset() >= 7 {
        return Ok((a, b));
    }
    let (broadcast, axis) = (n.int("broadcast").unwrap_or(0) != 0, n.int("axis"));
    let Some(axis) = axis.filter(|_| broadcast) else { return Ok((a, b)) };
    let rank = n.ty(a).rank();
    let axis = n.axis(axis, rank)?;
    let mut shape = n.shape(b)?;
    let behind = rank.checked_sub(axis + shape.len()).ok_or("its axis leaves no room for its second operand")?;
    shape.extend(std::iter::repeat_n(1, behind));
    Ok((a, n.reshape("b/shape", b, &shape)?))
}

pub(super) fn add(n: &mut NodeContext) -> Result<(), Reason> {
    let (a, b) = operands(n)?;
    let v = n.add("", a, b)?;
    n.output(v)
}

fn plain(n: &mut NodeContext, kind: BinaryKind) -> Result<(), Reason> {
    let (a, b) = operands(n)?;
    let v = n.binary("", kind, a, b)?;
    n.output(v)
}

macro_rules! plain {
    ($($name:ident $kind:ident;)*) => {
        $(pub(super) fn $name(n: &mut NodeContext) -> Result<(), Reason> {
            plain(n, BinaryKind::$kind)
        })*
    };
}
plain! {
    sub Sub;
    mul Mul;
    div Div;
    and And;
    or Or;
    xor Xor;
    bitwise_and And;
    bitwise_or Or;
    bitwise_xor Xor;
    equal Equal;
    less Less;
    less_or_equal LessEqual;
}

pub(super) fn greater(n: &mut NodeContext) -> Result<(), Reason> {
    let (a, b) = (n.plain(0)?, n.plain(1)?);
    let v = n.binary("", BinaryKind::Less, b, a)?;
    n.output(v)
}

pub(super) fn greater_or_equal(n: &mut NodeContext) -> Result<(), Reason> {
    let (a, b) = (n.plain(0)?, n.plain(1)?);
    let v = n.binary("", BinaryKind::LessEqual, b, a)?;
    n.output(v)
}

pub(super) fn bit_shift(n: &mut NodeContext) -> Result<(), Reason> {
    let kind = match n.word("direction").as_deref() {
        Some("LEFT") => BinaryKind::ShiftLeft,
        Some("RIGHT") => BinaryKind::ShiftRight,
        other => return Err(format!("its direction is {}; use LEFT or RIGHT", other.unwrap_or("missing")).into()),
    };
    plain(n, kind)
}

pub(super) fn modulo(n: &mut NodeContext) -> Result<(), Reason> {
    if n.int("fmod").unwrap_or(0) == 0 {
        return plain(n, BinaryKind::Mod);
    }
    let (a, b) = operands(n)?;
    let v = remainder(n, a, b)?;
    n.output(v)
}

/// Integer powers up to this exponent become products.
const MOST_FACTORS: f64 = 63.0;

/// The result has the type of the base.
pub(super) fn pow(n: &mut NodeContext) -> Result<(), Reason> {
    let (a, b) = (n.plain(0)?, n.plain(1)?);
    let dtype = n.ty(a).dtype;
    // An exponent with more dimensions than the base would change the rank of the result.
    let inside = n.ty(b).rank() <= n.ty(a).rank();
    let exponent = n.known(1).and_then(|_| n.number(1).ok()).filter(|_| inside);
    if let Some(e) = exponent
        && DType::INTEGERS.contains(&dtype)
        && e.fract() == 0.0
        && (1.0..=MOST_FACTORS).contains(&e)
    {
        let v = elementwise::whole_power(n, a, e as u32)?;
        return n.output(v);
    }
    let whole = !n.ty(b).dtype.is_float();
    let doubles = [a, b].iter().any(|&v| n.ty(v).dtype == DType::F64);
    let float = if doubles { DType::F64 } else { DType::F32 };
    let (a, b) = (n.cast("base", a, float)?, n.cast("exponent", b, float)?);
    let v = match exponent {
        Some(2.0) => n.binary("pow", BinaryKind::Mul, a, a)?,
        Some(0.5) => square_root(n, a)?,
        _ => n.binary("pow", BinaryKind::Pow, a, b)?,
    };
    // An integer power of an integer is an integer, except for the float's last bit; other powers are truncated.
    let v = if !dtype.is_float() && whole { n.unary("round", UnaryKind::Round, v)? } else { v };
    let v = n.cast("", v, dtype)?;
    n.output(v)
}

/// The power of 1/2: the square root, but infinity for -infinity, and 0 for -0 (adding 0 turns -0 into 0).
fn square_root(n: &mut NodeContext, a: ValueId) -> Result<ValueId, Reason> {
    let (zero, infinity) = (n.scalar("zero", 0.0), n.scalar("infinity", f32::INFINITY));
    let least = n.scalar("least", f32::NEG_INFINITY);
    let low = n.binary("low", BinaryKind::Equal, a, least)?;
    let a = n.add("positive_zero", a, zero)?;
    let root = n.unary("root", UnaryKind::Sqrt, a)?;
    n.node("pow", Select {}, &[low, infinity, root])
}

fn many(
    n: &mut NodeContext,
    join: impl Fn(&mut NodeContext, ValueId, ValueId) -> Result<ValueId, Reason>,
) -> Result<ValueId, Reason> {
    let mut v = n.plain(0)?;
    for i in 1..n.proto.input.len() {
        let next = n.plain(i)?;
        v = join(n, v, next)?;
    }
    Ok(v)
}

pub(super) fn min(n: &mut NodeContext) -> Result<(), Reason> {
    let v = many(n, |n, a, b| n.binary("", BinaryKind::Min, a, b))?;
    n.output(v)
}

pub(super) fn max(n: &mut NodeContext) -> Result<(), Reason> {
    let v = many(n, |n, a, b| n.binary("", BinaryKind::Max, a, b))?;
    n.output(v)
}

pub(super) fn sum(n: &mut NodeContext) -> Result<(), Reason> {
    let v = many(n, |n, a, b| n.add("", a, b))?;
    n.output(v)
}

pub(super) fn mean(n: &mut NodeContext) -> Result<(), Reason> {
    let v = many(n, |n, a, b| n.add("sum", a, b))?;
    let count = n.proto.input.len();
    let count = n.scalar("count", count as f32);
    let v = n.binary("", BinaryKind::Div, v, count)?;
    n.output(v)
}

pub(super) fn select(n: &mut NodeContext) -> Result<(), Reason> {
    let (c, a, b) = (n.plain(0)?, n.plain(1)?, n.plain(2)?);
    let v = n.node("", Select {}, &[c, a, b])?;
    n.output(v)
}
