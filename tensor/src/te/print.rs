//! The text form of scalar expressions. [`super::read`] reads it back to the same value.

use std::fmt::{self, Display, Formatter, Write};

use super::{BinOp, DType, Expr, lists};

/// Returns the sign and binding strength of an infix operation.
pub(super) fn infix(op: BinOp) -> Option<(&'static str, u8)> {
    Some(match op {
        BinOp::Or => ("||", 1),
        BinOp::And => ("&&", 2),
        BinOp::Xor => ("^", 2),
        BinOp::Lt => ("<", 3),
        BinOp::Le => ("<=", 3),
        BinOp::Eq => ("==", 3),
        BinOp::Ne => ("!=", 3),
        BinOp::Shl => ("<<", 4),
        BinOp::Shr => (">>", 4),
        BinOp::Add => ("+", 5),
        BinOp::Sub => ("-", 5),
        BinOp::Mul => ("*", 6),
        BinOp::Div => ("/", 6),
        BinOp::Mod => ("%", 6),
        BinOp::Min | BinOp::Max => return None,
    })
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        expr(self, 0, f)
    }
}

pub(crate) fn list<T>(
    items: &[T],
    f: &mut Formatter<'_>,
    mut each: impl FnMut(&T, &mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    for (i, e) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        each(e, f)?;
    }
    Ok(())
}

pub(crate) fn exprs(items: &[Expr], f: &mut Formatter<'_>) -> fmt::Result {
    list(items, f, |e, f| expr(e, 0, f))
}

fn expr(e: &Expr, outer: u8, f: &mut Formatter<'_>) -> fmt::Result {
    match e {
        Expr::Int(v, DType::Bool) => write!(f, "{}", *v != 0),
        Expr::Int(v, DType::I64) => write!(f, "{v}"),
        Expr::Int(v, t @ DType::U64) => write!(f, "{}{t}", *v as u64),
        Expr::Int(v, t) => write!(f, "{v}{t}"),
        Expr::Float(v, t) if !v.is_finite() => {
            let name = match *v {
                v if v.is_nan() => "nan",
                v if v > 0.0 => "inf",
                _ => "-inf",
            };
            // Without a type they are f32.
            f.write_str(name)?;
            if *t == DType::F32 { Ok(()) } else { write!(f, "{t}") }
        }
        Expr::Float(v, t) => write!(f, "{v:?}{t}"),
        Expr::Var(v) => write!(f, "{v}"),
        Expr::Load { buffer, indices, .. } => {
            write!(f, "{buffer}[")?;
            exprs(indices, f)?;
            f.write_char(']')
        }
        Expr::Binary(op, a, b) => match infix(*op) {
            Some((sign, strength)) => {
                // `&` and `|` of the bits of integers.
                let bits = matches!(op, BinOp::And | BinOp::Or) && a.dtype() != DType::Bool;
                let sign = if bits { &sign[1..] } else { sign };
                let open = strength <= outer;
                if open {
                    f.write_char('(')?;
                }
                // Operations of the same strength are left-associative, so only the right operand needs more
                // parentheses.
                expr(a, strength - 1, f)?;
                write!(f, " {sign} ")?;
                expr(b, strength, f)?;
                if open {
                    f.write_char(')')?;
                }
                Ok(())
            }
            None => {
                f.write_str(if *op == BinOp::Min { "min(" } else { "max(" })?;
                expr(a, 0, f)?;
                f.write_str(", ")?;
                expr(b, 0, f)?;
                f.write_char(')')
            }
        },
        Expr::Select(c, a, b) => {
            f.write_str("select(")?;
            expr(c, 0, f)?;
            f.write_str(", ")?;
            expr(a, 0, f)?;
            f.write_str(", ")?;
            expr(b, 0, f)?;
            f.write_char(')')
        }
        Expr::Cast(t, a) => {
            write!(f, "{t}(")?;
            expr(a, 0, f)?;
            f.write_char(')')
        }
        Expr::Bitcast(t, a) => {
            write!(f, "bitcast_{t}(")?;
            expr(a, 0, f)?;
            f.write_char(')')
        }
        Expr::Call(func, args) => {
            write!(f, "{}(", func.name())?;
            exprs(args, f)?;
            f.write_char(')')
        }
        Expr::Pick(numbers, index) => {
            lists::write(numbers, f)?;
            f.write_char('[')?;
            expr(index, 0, f)?;
            f.write_char(']')
        }
    }
}
