//! The text form of loop programs and scalar expressions. [`super::parse()`] reads it back to the same value.

use std::fmt::{self, Display, Formatter, Write};

use super::{Action, Block, Buffer, Function, Intrinsic, Scope, Stmt, View};
use crate::te::{BinOp, DType, Expr, Name};

/// Returns the sign and binding strength of an infix operation.
pub(super) fn infix(op: BinOp) -> Option<(&'static str, u8)> {
    Some(match op {
        BinOp::Or => ("||", 1),
        BinOp::And => ("&&", 2),
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

fn list<T>(
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

fn exprs(items: &[Expr], f: &mut Formatter<'_>) -> fmt::Result {
    list(items, f, |e, f| expr(e, 0, f))
}

fn expr(e: &Expr, outer: u8, f: &mut Formatter<'_>) -> fmt::Result {
    match e {
        Expr::Int(v, DType::Bool) => write!(f, "{}", *v != 0),
        Expr::Int(v, DType::I64) => write!(f, "{v}"),
        Expr::Int(v, t) => write!(f, "{v}{t}"),
        Expr::Float(v, _) if v.is_nan() => f.write_str("nan"),
        Expr::Float(v, _) if v.is_infinite() => f.write_str(if *v > 0.0 { "inf" } else { "-inf" }),
        Expr::Float(v, t) => write!(f, "{v:?}{t}"),
        Expr::Var(v) => write!(f, "{v}"),
        Expr::Load { buffer, indices, .. } => {
            write!(f, "{buffer}[")?;
            exprs(indices, f)?;
            f.write_char(']')
        }
        Expr::Binary(op, a, b) => match infix(*op) {
            Some((sign, strength)) => {
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
        Expr::Call(func, args) => {
            write!(f, "{}(", func.name())?;
            exprs(args, f)?;
            f.write_char(')')
        }
    }
}

fn names(items: &[Name], f: &mut Formatter<'_>) -> fmt::Result {
    list(items, f, |n, f| write!(f, "{n}"))
}

struct Indent(usize);

impl Display for Indent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for _ in 0..self.0 {
            f.write_str("  ")?;
        }
        Ok(())
    }
}

fn buffer(word: &str, b: &Buffer, depth: usize, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "{}{word} {}: {}[", Indent(depth), b.name, b.dtype)?;
    list(&b.shape, f, |n, f| write!(f, "{n}"))?;
    f.write_char(']')?;
    if b.scope != Scope::Global {
        write!(f, " in {}", b.scope.name())?;
    }
    f.write_char('\n')
}

fn view(v: &View, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "{}[", v.buffer)?;
    names(&v.dims, f)?;
    f.write_str(" => ")?;
    exprs(&v.indices, f)?;
    f.write_char(']')
}

fn block(b: &Block, depth: usize, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "{}block {}", Indent(depth), b.name)?;
    if !b.reduce.is_empty() {
        f.write_str(" reduce(")?;
        names(&b.reduce, f)?;
        f.write_char(')')?;
    }
    if !b.guards.is_empty() {
        f.write_str(" where(")?;
        exprs(&b.guards, f)?;
        f.write_char(')')?;
    }
    f.write_str(" {\n")?;
    if let Some(init) = &b.init {
        writeln!(f, "{}init {init}", Indent(depth + 1))?;
    }
    write!(f, "{}", Indent(depth + 1))?;
    match &b.action {
        Action::Store { buffer, indices, value } => {
            write!(f, "{buffer}[")?;
            exprs(indices, f)?;
            writeln!(f, "] = {value}")?;
        }
        Action::Call { intrinsic, args } => {
            write!(f, "call {intrinsic}(")?;
            list(args, f, view)?;
            f.write_str(")\n")?;
        }
    }
    writeln!(f, "{}}}", Indent(depth))
}

fn stmt(s: &Stmt, depth: usize, f: &mut Formatter<'_>) -> fmt::Result {
    match s {
        Stmt::Seq(items) => items.iter().try_for_each(|s| stmt(s, depth, f)),
        Stmt::For(l) => {
            writeln!(f, "{}{} {} in {} {{", Indent(depth), l.kind.name(), l.var, l.extent)?;
            stmt(&l.body, depth + 1, f)?;
            writeln!(f, "{}}}", Indent(depth))
        }
        Stmt::Block(b) => block(b, depth, f),
    }
}

impl Display for Stmt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        stmt(self, 0, f)
    }
}

fn intrinsic(i: &Intrinsic, f: &mut Formatter<'_>) -> fmt::Result {
    writeln!(f, "  intrinsic {} {{", i.name)?;
    for p in &i.params {
        buffer("param", p, 2, f)?;
    }
    stmt(&i.body, 2, f)?;
    f.write_str("  }\n")
}

impl Display for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "function {} {{", self.name)?;
        for p in self.inputs() {
            buffer("input", p, 1, f)?;
        }
        for p in self.output_buffers() {
            buffer("output", p, 1, f)?;
        }
        for b in &self.locals {
            buffer("local", b, 1, f)?;
        }
        for i in &self.intrinsics {
            intrinsic(i, f)?;
        }
        stmt(&self.body, 1, f)?;
        f.write_str("}\n")
    }
}
