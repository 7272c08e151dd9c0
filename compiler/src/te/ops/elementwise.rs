//! `unary`, `binary`, `cast`, `select` and `expand`: elementwise operators.

use super::{broadcast, call};
use crate::graph::DType;
use crate::graph::op::{Binary, BinaryKind, GELU_A, GELU_B, Unary, UnaryKind};
use crate::te::scalar::wrap;
use crate::te::{BinOp, Builder, Expr, Func, TensorRef};

/// Appends a function of each element.
pub fn unary(b: &mut Builder, op: &Unary, x: &TensorRef, out: &[i64]) -> TensorRef {
    b.compute(Unary::NAME, out, |i| function(op, x.at(i)))
}

fn function(op: &Unary, x: Expr) -> Expr {
    let f = |f: Func, x: Expr| call(f, [x]);
    let t = x.dtype();
    let number = |v: f64| Expr::number(v, t);
    let (zero, one) = (|| number(0.0), || number(1.0));
    let neg = |x: Expr| number(-1.0) * x;
    let unit = |x: Expr| x.max(number(0.0)).min(number(1.0));
    let sigmoid = |x: Expr| one() / (one() + f(Func::Exp, neg(x)));
    let softplus = |x: Expr| {
        let tail = f(Func::Exp, neg(f(Func::Abs, x.clone())));
        x.max(number(0.0)) + f(Func::Log, one() + tail)
    };
    match op.kind {
        UnaryKind::Abs if t.is_float() => f(Func::Abs, x),
        UnaryKind::Abs if t.is_unsigned() => x,
        UnaryKind::Abs => x.clone().lt(zero()).select(zero() - x.clone(), x),
        UnaryKind::Neg if t.is_float() => neg(x),
        UnaryKind::Neg => zero() - x,
        UnaryKind::Sign => {
            // NaN stays NaN.
            let rest = if t.is_float() { x.clone().equals(zero()).select(zero(), x.clone()) } else { zero() };
            let below = if t.is_unsigned() { rest } else { x.clone().lt(zero()).select(number(-1.0), rest) };
            zero().lt(x.clone()).select(one(), below)
        }
        UnaryKind::Not if t == DType::Bool => x.equals(Expr::Int(0, t)),
        UnaryKind::Not => Expr::binary(BinOp::Xor, x, Expr::Int(wrap(-1, t), t)),
        UnaryKind::Exp => f(Func::Exp, x),
        UnaryKind::Log => f(Func::Log, x),
        UnaryKind::Sqrt => f(Func::Sqrt, x),
        UnaryKind::Reciprocal => one() / x,
        UnaryKind::Floor => f(Func::Floor, x),
        UnaryKind::Ceil => f(Func::Ceil, x),
        UnaryKind::Round => f(Func::RoundEven, x),
        UnaryKind::Sin => f(Func::Sin, x),
        UnaryKind::Cos => f(Func::Cos, x),
        UnaryKind::Tanh => f(Func::Tanh, x),
        UnaryKind::Erf => f(Func::Erf, x),
        UnaryKind::Sigmoid => sigmoid(x),
        UnaryKind::Softplus => softplus(x),
        UnaryKind::Softsign => x.clone() / (one() + f(Func::Abs, x)),
        UnaryKind::LeakyRelu => x.clone().lt(zero()).select(number(op.alpha.into()) * x.clone(), x),
        UnaryKind::Elu => {
            let below = number(op.alpha.into()) * (f(Func::Exp, x.clone()) - one());
            x.clone().lt(zero()).select(below, x)
        }
        UnaryKind::HardSigmoid => unit(number(op.alpha.into()) * x + number(op.beta.into())),
        UnaryKind::HardSwish => x.clone() * unit(x / number(6.0) + number(0.5)),
        UnaryKind::Silu => x.clone() * sigmoid(x),
        UnaryKind::Gelu => {
            let erf = f(Func::Erf, x.clone() * number(std::f64::consts::FRAC_1_SQRT_2));
            number(0.5) * x * (one() + erf)
        }
        UnaryKind::GeluTanh => {
            let cube = number(GELU_B) * x.clone() * x.clone() * x.clone();
            let tanh = f(Func::Tanh, number(GELU_A) * (x.clone() + cube));
            number(0.5) * x * (one() + tanh)
        }
        UnaryKind::Mish => x.clone() * f(Func::Tanh, softplus(x)),
    }
}

/// Appends a function of two operands that broadcast.
pub fn binary(b: &mut Builder, op: &Binary, x: &TensorRef, y: &TensorRef, out: &[i64]) -> TensorRef {
    b.compute(Binary::NAME, out, |i| {
        let (x, y) = (x.at(&broadcast(i, out, &x.shape)), y.at(&broadcast(i, out, &y.shape)));
        let plain = |op: BinOp| Expr::binary(op, x.clone(), y.clone());
        match op.kind {
            BinaryKind::Sub => plain(BinOp::Sub),
            BinaryKind::Mul => plain(BinOp::Mul),
            BinaryKind::Div if x.dtype().is_float() || x.dtype().is_unsigned() => plain(BinOp::Div),
            BinaryKind::Div => truncated(x, y),
            BinaryKind::Mod => plain(BinOp::Mod),
            BinaryKind::Min => plain(BinOp::Min),
            BinaryKind::Max => plain(BinOp::Max),
            BinaryKind::Pow => call(Func::Pow, [x, y]),
            BinaryKind::And => plain(BinOp::And),
            BinaryKind::Or => plain(BinOp::Or),
            BinaryKind::Xor if x.dtype() == DType::Bool => plain(BinOp::Ne),
            BinaryKind::Xor => plain(BinOp::Xor),
            BinaryKind::ShiftLeft => plain(BinOp::Shl),
            BinaryKind::ShiftRight => plain(BinOp::Shr),
            BinaryKind::Equal => plain(BinOp::Eq),
            BinaryKind::Less => plain(BinOp::Lt),
            BinaryKind::LessEqual => plain(BinOp::Le),
        }
    })
}

/// Returns the integer quotient rounded toward zero: the quotient rounded down, plus one if it is negative and inexact.
fn truncated(x: Expr, y: Expr) -> Expr {
    let int = |v: i64| Expr::Int(v, x.dtype());
    let uneven = Expr::binary(BinOp::Ne, x.clone() % y.clone(), int(0));
    let apart = Expr::binary(BinOp::Ne, x.clone().lt(int(0)), y.clone().lt(int(0)));
    x.clone() / y + uneven.and(apart).select(int(1), int(0))
}

/// Appends a conversion to another element type.
pub fn cast(b: &mut Builder, to: DType, x: &TensorRef, out: &[i64]) -> TensorRef {
    b.compute("cast", out, |i| x.at(i).cast(to))
}

/// Appends the same bits as another element type.
pub fn bitcast(b: &mut Builder, to: DType, x: &TensorRef, out: &[i64]) -> TensorRef {
    b.compute("bitcast", out, |i| x.at(i).bitcast(to))
}

/// Appends a choice between two operands for each element. `None` if an operand is missing.
pub fn select(b: &mut Builder, args: &[TensorRef], out: &[i64]) -> Option<TensorRef> {
    let [c, x, y] = args else { return None };
    Some(b.compute("select", out, |i| {
        let at = |t: &TensorRef| t.at(&broadcast(i, out, &t.shape));
        at(c).select(at(x), at(y))
    }))
}

/// Appends the data broadcast to the shape `out`.
pub fn expand(b: &mut Builder, x: &TensorRef, out: &[i64]) -> TensorRef {
    b.compute("expand", out, |i| x.at(&broadcast(i, out, &x.shape)))
}
