//! `tensorize`: replaces a loop nest that matches an intrinsic by a call.

use super::error::{Reason, refuse};
use super::tree::{blocks, bounds, find_loop, fresh, replace_loop};
use crate::te::{BinOp, Expr, Name, NameMap};
use crate::tir::{Action, Affine, Block, Function, Intrinsic, Stmt, View, simplify};

/// Replaces loop `var` by a call of `intrinsic`. The nest must match the intrinsic's loops: the same extents in the
/// same order, the same operations, and buffers in the scopes of the parameters.
pub fn tensorize(f: &mut Function, var: &Name, intrinsic: &Name) -> Result<Vec<Name>, Reason> {
    let Some(desc) = f.intrinsic(intrinsic).cloned() else {
        refuse!(
            "there is no intrinsic {intrinsic}; only the accelerator has instructions, so leave the step out for a CPU"
        )
    };
    let target = Stmt::For(find_loop(f, var)?.clone());
    let ranges = bounds(f);
    let simple = |e: &Expr| simplify(e, &ranges);
    let mut m = Match {
        function: f,
        desc: &desc,
        vars: NameMap::default(),
        dims: NameMap::default(),
        views: vec![None; desc.params.len()],
        simple: &simple,
    };
    m.stmt(&target, &desc.body)?;
    let mut args = Vec::new();
    for (v, p) in m.views.iter().zip(&desc.params) {
        match v {
            Some(v) => args.push(v.clone()),
            None => refuse!("parameter {} of {intrinsic} is not used in its body", p.name),
        }
    }
    let list = blocks(&target);
    let Some(first) = list.first() else { refuse!("loop {var} contains no block") };
    let inner: Vec<Name> = m.vars.keys().cloned().collect();
    let reduce = list.iter().flat_map(|b| &b.reduce).filter(|r| !inner.contains(r)).cloned().collect();
    let guards = first.guards.clone();
    let name = list.last().unwrap_or(first).name.clone();
    let call = Block { name, reduce, guards, init: None, action: Action::Call { intrinsic: intrinsic.clone(), args } };
    let body = std::mem::replace(&mut f.body, Stmt::Seq(Vec::new()));
    f.body = replace_loop(body, var, &mut |_| Ok(Stmt::Block(call.clone())))?;
    Ok(Vec::new())
}

/// The state of a match.
struct Match<'a> {
    function: &'a Function,
    desc: &'a Intrinsic,
    /// Loops of the nest, mapped to loops of the intrinsic.
    vars: NameMap<Name>,
    /// Loops of the intrinsic, mapped to the dimensions of views.
    dims: NameMap<Name>,
    /// The view matched to each parameter so far.
    views: Vec<Option<View>>,
    simple: &'a dyn Fn(&Expr) -> Expr,
}

impl Match<'_> {
    fn stmt(&mut self, s: &Stmt, d: &Stmt) -> Result<(), Reason> {
        match (s, d) {
            (Stmt::For(s), Stmt::For(d)) => {
                if s.extent != d.extent {
                    refuse!(
                        "loop {} has {} iterations, but {} of {} has {}; split the loop, or change the tensor's shape",
                        s.var,
                        s.extent,
                        d.var,
                        self.desc.name,
                        d.extent
                    );
                }
                self.vars.insert(s.var.clone(), d.var.clone());
                // The name of a view's dimension must differ from all loops around the call.
                let mut name = fresh(self.function, d.var.as_str());
                while self.dims.values().any(|n| *n == name) {
                    name = fresh(self.function, &format!("{name}_"));
                }
                self.dims.insert(d.var.clone(), name);
                self.stmt(&s.body, &d.body)
            }
            (Stmt::Seq(s), Stmt::Seq(d)) if s.len() == d.len() => {
                s.iter().zip(d).try_for_each(|(s, d)| self.stmt(s, d))
            }
            (Stmt::Block(s), Stmt::Block(d)) => self.block(s, d),
            (Stmt::For(s), Stmt::Block(_)) => {
                refuse!("{} has no loop for {}; tensorize a loop further inside", self.desc.name, s.var)
            }
            (Stmt::Block(s), Stmt::For(d)) => refuse!(
                "{} has another loop, {} with {} iterations, but block {} has none there; tensorize a loop further outside, \
                 or split one",
                self.desc.name,
                d.var,
                d.extent,
                s.name
            ),
            _ => refuse!(
                "the loop contains several blocks, but {} is one; reorder loops so that it has one",
                self.desc.name
            ),
        }
    }

    fn block(&mut self, s: &Block, d: &Block) -> Result<(), Reason> {
        if let Some(g) = s.guards.iter().find(|g| self.vars.keys().any(|v| g.uses(v))) {
            refuse!("block {} runs only if {g}, which {} does not check", s.name, self.desc.name);
        }
        let inner = |v: &Name| self.vars.get(v).cloned();
        match (&s.init, &d.init) {
            (None, None) => {}
            (Some(a), Some(b)) => {
                let all_inside = s.reduce.iter().all(|r| inner(r).is_some_and(|r| d.reduce.contains(&r)));
                if !all_inside || s.reduce.len() != d.reduce.len() {
                    refuse!("{} starts its own sum; decompose the reduction of {} first", self.desc.name, s.name);
                }
                if !self.expr(a, b)? {
                    refuse!("the sum of {} starts with {a}, but that of {} with {b}", s.name, self.desc.name);
                }
            }
            (Some(_), None) => {
                refuse!("{} has no initial value; decompose the reduction of {} first", self.desc.name, s.name)
            }
            (None, Some(_)) => refuse!("{} starts a sum, but block {} does not", self.desc.name, s.name),
        }
        let (Action::Store { buffer, indices, value }, Action::Store { buffer: p, indices: pi, value: pv }) =
            (&s.action, &d.action)
        else {
            refuse!("block {} already calls an intrinsic", s.name)
        };
        self.bind(buffer, indices, p, pi)?;
        if !self.expr(value, pv)? {
            refuse!("block {} computes {value}, but {} computes {pv}", s.name, self.desc.name);
        }
        Ok(())
    }

    /// Matches parameter `p`, accessed at `pi`, with `buffer` at `indices`.
    ///
    /// If the intrinsic computes an index from loaded values, the parameter is the whole buffer.
    fn bind(&mut self, buffer: &Name, indices: &[Expr], p: &Name, pi: &[Expr]) -> Result<(), Reason> {
        let name = &self.desc.name;
        let Some(k) = self.desc.params.iter().position(|x| &x.name == p) else {
            refuse!("{name} has no parameter {p}")
        };
        if pi.iter().any(Expr::has_load) {
            return self.bind_whole(buffer, indices, k, pi);
        }
        let mut dims = Vec::new();
        for e in pi {
            match e {
                Expr::Var(v) if !dims.contains(v) => dims.push(v.clone()),
                _ => refuse!("{name} reads its parameter {p} at {e}; only plain, distinct variables can be matched"),
            }
        }
        let scope = self.function.buffer(buffer).map(|b| b.scope);
        if scope.is_some_and(|s| s != self.desc.params[k].scope) {
            let (want, got) = (self.desc.params[k].scope.name(), scope.map_or("", |s| s.name()));
            refuse!("{buffer} is in {got}, but parameter {p} of {name} is in {want}");
        }
        let mut out = Vec::new();
        for e in indices {
            let e = (self.simple)(e);
            let mut bad = None;
            e.visit(&mut |x| {
                if let Expr::Var(v) = x
                    && let Some(d) = self.vars.get(v)
                    && !dims.contains(d)
                {
                    bad = Some(v.clone());
                }
            });
            if let Some(v) = bad {
                refuse!("{buffer}[{e}] depends on {v}, but parameter {p} of {name} does not");
            }
            let e = e.substitute(&|v| {
                let d = self.vars.get(v)?;
                self.dims.get(d).map(|n| Expr::Var(n.clone()))
            });
            // Normalize, so that equal places compare equal.
            out.push(Affine::of(&e).map_or(e, |a| a.to_expr()));
        }
        let dims = dims.iter().filter_map(|d| self.dims.get(d).cloned()).collect();
        let view = View { buffer: buffer.clone(), dims, indices: out };
        match &self.views[k] {
            Some(old) if *old != view => {
                refuse!("parameter {p} of {name} would map to two places, one of them in {buffer}")
            }
            _ => self.views[k] = Some(view),
        }
        Ok(())
    }

    /// Matches parameter `k`, accessed at computed indices, with the whole of `buffer`.
    fn bind_whole(&mut self, buffer: &Name, indices: &[Expr], k: usize, pi: &[Expr]) -> Result<(), Reason> {
        let (param, name) = (&self.desc.params[k], &self.desc.name);
        let Some(there) = self.function.buffer(buffer) else { refuse!("there is no buffer {buffer}") };
        if there.shape != param.shape || there.scope != param.scope {
            let (want, got) = (param.scope.name(), there.scope.name());
            refuse!(
                "{buffer} has shape {:?} in {got}, but parameter {} of {name} has shape {:?} in {want}",
                there.shape,
                param.name,
                param.shape
            );
        }
        for (e, wanted) in indices.iter().zip(pi) {
            if !self.expr(e, wanted)? {
                refuse!("{buffer} is read at {e}, but {name} reads its parameter at {wanted}");
            }
        }
        let taken: Vec<Name> = self.dims.values().cloned().collect();
        let dim = |i: usize| {
            let mut dim = fresh(self.function, &format!("{}_{i}", self.desc.params[k].name));
            while taken.contains(&dim) {
                dim = fresh(self.function, &format!("{dim}_"));
            }
            dim
        };
        let dims: Vec<Name> = (0..indices.len()).map(dim).collect();
        let indices = dims.iter().cloned().map(Expr::Var).collect();
        self.views[k] = Some(View { buffer: buffer.clone(), dims, indices });
        Ok(())
    }

    /// Returns whether the nest's expression matches the intrinsic's. Undoes the bindings of a failed attempt.
    fn expr(&mut self, s: &Expr, d: &Expr) -> Result<bool, Reason> {
        Ok(match (s, d) {
            (Expr::Load { buffer, indices, dtype }, Expr::Load { buffer: p, indices: pi, dtype: t }) => {
                if dtype != t {
                    return Ok(false);
                }
                self.bind(buffer, indices, p, pi)?;
                true
            }
            (Expr::Int(..) | Expr::Float(..), _) => s == d,
            (Expr::Var(v), Expr::Var(w)) => self.vars.get(v) == Some(w),
            (Expr::Binary(op, a, b), Expr::Binary(dop, c, e)) if op == dop => {
                let before = self.views.clone();
                let straight = self.expr(a, c).and_then(|x| Ok(x && self.expr(b, e)?));
                if !matches!(straight, Ok(true))
                    && matches!(
                        op,
                        BinOp::Add | BinOp::Mul | BinOp::Min | BinOp::Max | BinOp::And | BinOp::Or | BinOp::Xor
                    )
                {
                    let after = std::mem::replace(&mut self.views, before);
                    if let Ok(true) = self.expr(a, e).and_then(|x| Ok(x && self.expr(b, c)?)) {
                        return Ok(true);
                    }
                    self.views = after;
                }
                straight?
            }
            (Expr::Select(a, b, c), Expr::Select(x, y, z)) => {
                self.expr(a, x)? && self.expr(b, y)? && self.expr(c, z)?
            }
            (Expr::Cast(t, a), Expr::Cast(u, b)) | (Expr::Bitcast(t, a), Expr::Bitcast(u, b)) => {
                t == u && self.expr(a, b)?
            }
            (Expr::Pick(list, a), Expr::Pick(other, b)) => list == other && self.expr(a, b)?,
            (Expr::Call(g, a), Expr::Call(h, b)) if g == h && a.len() == b.len() => {
                for (x, y) in a.iter().zip(b) {
                    if !self.expr(x, y)? {
                        return Ok(false);
                    }
                }
                true
            }
            _ => false,
        })
    }
}
