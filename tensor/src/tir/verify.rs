//! Checks the rules of loop programs.
//!
//! 1. Names of buffers, loop variables, blocks and intrinsics are unique among their kind. Buffers and variables share
//!    one namespace.
//! 2. Extents are not negative.
//! 3. Every variable is bound by an enclosing loop, or is a view's dimension.
//! 4. Every access names a known buffer with its element type and one i64 index per dimension.
//! 5. Both operands have the same type. Logic takes booleans, shifts and remainders take integers, functions take the
//!    types of their signature, and a condition is a boolean.
//! 6. A block's reduction loops enclose it. `init` requires a store, and both have the buffer's element type.
//! 7. A call names a known intrinsic, with one view per parameter, of the parameter's element type, scope and number of
//!    dimensions.
//! 8. Inputs are not written. An intrinsic's body accesses only its own parameters, and calls nothing.

use std::collections::HashSet;

use super::{Action, Block, Buffer, Function, Stmt, TirError};
use crate::te::{BinOp, DType, Expr, Name};

/// Checks every rule.
///
/// # Errors
/// [`TirError::Malformed`] with all violations.
pub fn verify(f: &Function) -> Result<(), TirError> {
    let mut problems = Vec::new();
    let mut names = HashSet::new();
    for i in &f.intrinsics {
        if !names.insert(&i.name) {
            problems.push(format!("two intrinsics are named {}", i.name));
        }
        let mut c = Checker { function: f, buffers: i.params.iter().collect(), problems: Vec::new(), inner: true };
        c.body(&i.body);
        problems.extend(c.problems.into_iter().map(|p| format!("intrinsic {}: {p}", i.name)));
    }
    if f.outputs > f.params.len() {
        problems.push(format!("{} outputs but {} parameters", f.outputs, f.params.len()));
    }
    let buffers = f.params.iter().chain(&f.locals).collect();
    let mut c = Checker { function: f, buffers, problems, inner: false };
    c.body(&f.body);
    let problems = c.problems;
    if problems.is_empty() { Ok(()) } else { Err(TirError::Malformed { function: f.name.clone(), problems }) }
}

struct Checker<'a> {
    function: &'a Function,
    buffers: Vec<&'a Buffer>,
    problems: Vec<String>,
    /// Whether the body belongs to an intrinsic.
    inner: bool,
}

impl<'a> Checker<'a> {
    fn body(&mut self, s: &'a Stmt) {
        let mut names = HashSet::new();
        for b in self.buffers.clone() {
            if !names.insert(b.name.clone()) {
                self.problems.push(format!("two buffers are named {}", b.name));
            }
            if b.shape.iter().any(|&n| n < 0) {
                self.problems.push(format!("buffer {} has a negative extent", b.name));
            }
        }
        s.visit_loops(&mut |l| {
            if !names.insert(l.var.clone()) {
                self.problems.push(format!("loop variable {} is not unique", l.var));
            }
            if l.extent < 0 {
                self.problems.push(format!("loop {} has a negative extent", l.var));
            }
        });
        let mut blocks = HashSet::new();
        s.visit_blocks(&mut |loops, b| {
            if !blocks.insert(b.name.clone()) {
                self.problems.push(format!("two blocks are named {}", b.name));
            }
            let bound: Vec<&Name> = loops.iter().map(|l| &l.var).collect();
            let first = self.problems.len();
            self.block(b, &bound);
            for p in &mut self.problems[first..] {
                *p = format!("block {}: {p}", b.name);
            }
        });
    }

    fn block(&mut self, b: &Block, bound: &[&Name]) {
        for r in &b.reduce {
            if !bound.contains(&r) {
                self.problems.push(format!("reduction loop {r} does not enclose it"));
            }
        }
        for g in &b.guards {
            self.typed(g, DType::Bool, bound, "a guard");
        }
        match &b.action {
            Action::Store { buffer, indices, value } => {
                self.access(buffer, indices, None, bound);
                if let Some(t) = self.find(buffer).map(|b| b.dtype) {
                    self.typed(value, t, bound, "the value stored");
                    if let Some(init) = &b.init {
                        self.typed(init, t, bound, "init");
                    }
                }
                if !self.inner && self.function.inputs().iter().any(|i| &i.name == buffer) {
                    self.problems.push(format!("it writes input {buffer}"));
                }
            }
            Action::Call { intrinsic, args } => {
                if b.init.is_some() {
                    self.problems.push("init is only allowed with a store".into());
                }
                self.call(intrinsic, args, bound);
            }
        }
    }

    fn call(&mut self, name: &Name, args: &[super::View], bound: &[&Name]) {
        if self.inner {
            self.problems.push("an intrinsic cannot call another one".into());
            return;
        }
        let function = self.function;
        let Some(intrinsic) = function.intrinsic(name) else {
            self.problems.push(format!("no intrinsic is named {name}"));
            return;
        };
        if args.len() != intrinsic.params.len() {
            self.problems.push(format!("{name} takes {} arguments, got {}", intrinsic.params.len(), args.len()));
            return;
        }
        for ((v, p), writes) in args.iter().zip(&intrinsic.params).zip(intrinsic.writes()) {
            let mut inner = bound.to_vec();
            inner.extend(&v.dims);
            self.access(&v.buffer, &v.indices, Some(p.dtype), &inner);
            if v.dims.len() != p.shape.len() {
                self.problems.push(format!(
                    "argument {} of {name} must have {} dimensions, got {}",
                    p.name,
                    p.shape.len(),
                    v.dims.len()
                ));
            }
            if let Some(b) = self.find(&v.buffer)
                && b.scope != p.scope
            {
                let (want, got) = (p.scope.name(), b.scope.name());
                self.problems
                    .push(format!("argument {} of {name} must be in {want}, but {} is in {got}", p.name, b.name));
            }
            if writes && function.inputs().iter().any(|i| i.name == v.buffer) {
                self.problems.push(format!("it writes input {}", v.buffer));
            }
        }
    }

    fn find(&self, name: &Name) -> Option<&'a Buffer> {
        self.buffers.iter().find(|b| &b.name == name).copied()
    }

    fn access(&mut self, name: &Name, indices: &[Expr], dtype: Option<DType>, bound: &[&Name]) {
        match self.find(name) {
            None => self.problems.push(format!("no buffer is named {name}")),
            Some(b) => {
                if b.shape.len() != indices.len() {
                    let (n, m) = (b.shape.len(), indices.len());
                    self.problems.push(format!("{name} has {n} dimensions but {m} indices"));
                }
                if dtype.is_some_and(|t| t != b.dtype) {
                    self.problems.push(format!("{name} holds {}", b.dtype));
                }
            }
        }
        for i in indices {
            self.typed(i, DType::I64, bound, "an index");
        }
    }

    fn typed(&mut self, e: &Expr, want: DType, bound: &[&Name], what: &str) {
        let got = self.expr(e, bound);
        if got != want {
            self.problems.push(format!("{what} must be {want}, `{e}` is {got}"));
        }
    }

    fn expr(&mut self, e: &Expr, bound: &[&Name]) -> DType {
        match e {
            Expr::Int(v, t) => {
                if t.is_float() || crate::te::scalar::wrap(*v, *t) != *v {
                    self.problems.push(format!("{v} is not a valid {t}"));
                }
            }
            Expr::Float(_, t) => {
                if !t.is_float() {
                    self.problems.push(format!("a float constant cannot be {t}"));
                }
            }
            Expr::Var(v) => {
                if !bound.contains(&v) {
                    self.problems.push(format!("variable {v} is not bound"));
                }
            }
            Expr::Load { buffer, dtype, indices } => self.access(buffer, indices, Some(*dtype), bound),
            Expr::Binary(op, a, b) => {
                let (ta, tb) = (self.expr(a, bound), self.expr(b, bound));
                let fits = match op {
                    BinOp::And | BinOp::Or => !ta.is_float(),
                    BinOp::Mod | BinOp::Shl | BinOp::Shr | BinOp::Xor => !ta.is_float() && ta != DType::Bool,
                    BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Min | BinOp::Max => ta != DType::Bool,
                    _ => true,
                };
                if ta != tb || !fits {
                    self.problems.push(format!("`{e}` mixes or misuses {ta} and {tb}"));
                }
            }
            Expr::Select(c, a, b) => {
                self.typed(c, DType::Bool, bound, "a condition");
                let ta = self.expr(a, bound);
                self.typed(b, ta, bound, "the other choice");
            }
            Expr::Cast(_, a) => {
                self.expr(a, bound);
            }
            Expr::Bitcast(t, a) => {
                let from = self.expr(a, bound);
                if from.size_bytes() != t.size_bytes() || from == DType::Bool || *t == DType::Bool {
                    self.problems.push(format!("`{e}`: {from} and {t} are no types of the same bits"));
                }
            }
            Expr::Pick(list, index) => {
                if list.is_empty() {
                    self.problems.push("a list of numbers is empty".into());
                }
                self.typed(index, DType::I64, bound, "an index");
            }
            Expr::Call(f, args) => {
                if args.len() != f.arity() {
                    self.problems.push(format!("{} takes {} arguments", f.name(), f.arity()));
                }
                let want = e.dtype();
                for a in args {
                    self.typed(a, want, bound, "a function's argument");
                }
            }
        }
        e.dtype()
    }
}
