//! The text form of loop programs. [`super::parse()`] reads it back to the same value.

use std::fmt::{self, Display, Formatter, Write};

use super::{Action, Block, Buffer, Function, Intrinsic, Scope, Stmt, View};
use crate::te::Name;
use crate::te::print::{exprs, list};

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
