//! Sizes, arithmetic of sizes, and assertions about them. All sizes are known at import.

use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::NodeContext;
use crate::frontend::reason::Reason;

/// An assertion: the traced program meets it, and other sizes are checked by the operators.
pub(super) fn nothing(n: &mut NodeContext) -> Result<Value, Reason> {
    let names: Vec<&str> = n.proto.inputs.iter().map(|input| input.name.as_str()).collect();
    n.ignore(&names);
    Ok(Value::None)
}

pub(super) fn size(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    n.measured(v);
    let shape = n.shape(v)?;
    let axis = n.dim("dim", 0, shape.len())?;
    let size = *shape.get(axis).ok_or("its data have no dimensions")?;
    Ok(Value::Int(i64::try_from(size).map_err(|_| "its data are too large")?))
}

pub(super) fn count(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    n.measured(v);
    let count: usize = n.shape(v)?.iter().product();
    Ok(Value::Int(i64::try_from(count).map_err(|_| "its data are too large")?))
}

/// A number of the program.
#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    fn float(self) -> f64 {
        match self {
            Number::Int(n) => n as f64,
            Number::Float(x) => x,
        }
    }

    fn value(self) -> Value {
        match self {
            Number::Int(n) => Value::Int(n),
            Number::Float(x) => Value::Float(x),
        }
    }
}

/// All arguments, in their order.
fn numbers(n: &mut NodeContext) -> Result<Vec<Number>, Reason> {
    let names: Vec<&str> = n.proto.inputs.iter().map(|input| input.name.as_str()).collect();
    n.ignore(&names);
    let number = |value| match value {
        Value::Int(n) => Ok(Number::Int(n)),
        Value::Bool(x) => Ok(Number::Int(x.into())),
        Value::Float(x) => Ok(Number::Float(x)),
        _ => Err(Reason("its operands must be numbers that are known at import".into())),
    };
    let inputs = &n.proto.inputs;
    inputs.iter().map(|input| number(n.of(&input.arg)?)).collect()
}

fn two(n: &mut NodeContext) -> Result<[Number; 2], Reason> {
    numbers(n)?.try_into().map_err(|_| "it must have two operands".into())
}

fn one(n: &mut NodeContext) -> Result<Number, Reason> {
    numbers(n)?.first().copied().ok_or_else(|| "it has no operand".into())
}

fn too_large() -> Reason {
    "its result is too large".into()
}

macro_rules! arithmetic {
    ($($name:ident $checked:ident $op:tt;)*) => {
        $(pub(super) fn $name(n: &mut NodeContext) -> Result<Value, Reason> {
            Ok(match two(n)? {
                [Number::Int(a), Number::Int(b)] => Value::Int(a.$checked(b).ok_or_else(too_large)?),
                [a, b] => Value::Float(a.float() $op b.float()),
            })
        })*
    };
}
arithmetic! {
    add checked_add +;
    subtract checked_sub -;
    multiply checked_mul *;
}

pub(super) fn divide(n: &mut NodeContext) -> Result<Value, Reason> {
    let [a, b] = two(n)?;
    Ok(Value::Float(a.float() / b.float()))
}

pub(super) fn floor_divide(n: &mut NodeContext) -> Result<Value, Reason> {
    Ok(match two(n)? {
        [Number::Int(_), Number::Int(0)] => return Err("it divides by 0".into()),
        [Number::Int(a), Number::Int(b)] => {
            let quotient = a.checked_div(b).ok_or_else(too_large)?;
            Value::Int(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
        }
        [a, b] => Value::Float((a.float() / b.float()).floor()),
    })
}

pub(super) fn remainder(n: &mut NodeContext) -> Result<Value, Reason> {
    match two(n)? {
        [Number::Int(_), Number::Int(0)] => Err("it divides by 0".into()),
        [Number::Int(a), Number::Int(b)] => {
            let rest = a.checked_rem(b).ok_or_else(too_large)?;
            Ok(Value::Int(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }))
        }
        _ => Err("remainders of floats are not supported".into()),
    }
}

macro_rules! comparisons {
    ($($name:ident $op:tt;)*) => {
        $(pub(super) fn $name(n: &mut NodeContext) -> Result<Value, Reason> {
            let [a, b] = two(n)?;
            Ok(Value::Bool(a.float() $op b.float()))
        })*
    };
}
comparisons! {
    equal ==;
    not_equal !=;
    less <;
    less_equal <=;
    greater >;
    greater_equal >=;
}

pub(super) fn and(n: &mut NodeContext) -> Result<Value, Reason> {
    let [a, b] = two(n)?;
    Ok(Value::Bool(a.float() != 0.0 && b.float() != 0.0))
}

pub(super) fn not(n: &mut NodeContext) -> Result<Value, Reason> {
    Ok(Value::Bool(one(n)?.float() == 0.0))
}

pub(super) fn negate(n: &mut NodeContext) -> Result<Value, Reason> {
    Ok(match one(n)? {
        Number::Int(n) => Value::Int(n.checked_neg().ok_or_else(too_large)?),
        Number::Float(x) => Value::Float(-x),
    })
}

pub(super) fn float(n: &mut NodeContext) -> Result<Value, Reason> {
    Ok(Value::Float(one(n)?.float()))
}

/// A float as a whole number.
fn whole(n: &mut NodeContext, f: fn(f64) -> f64) -> Result<Value, Reason> {
    Ok(match one(n)? {
        Number::Int(n) => Value::Int(n),
        // The cast saturates.
        Number::Float(x) => Value::Int(f(x) as i64),
    })
}

pub(super) fn truncate(n: &mut NodeContext) -> Result<Value, Reason> {
    whole(n, f64::trunc)
}

pub(super) fn floor(n: &mut NodeContext) -> Result<Value, Reason> {
    whole(n, f64::floor)
}

pub(super) fn ceil(n: &mut NodeContext) -> Result<Value, Reason> {
    whole(n, f64::ceil)
}

pub(super) fn greatest(n: &mut NodeContext) -> Result<Value, Reason> {
    let [a, b] = two(n)?;
    Ok(if a.float() >= b.float() { a.value() } else { b.value() })
}

pub(super) fn least(n: &mut NodeContext) -> Result<Value, Reason> {
    let [a, b] = two(n)?;
    Ok(if a.float() <= b.float() { a.value() } else { b.value() })
}
