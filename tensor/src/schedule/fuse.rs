//! `fuse`: joins two loops into one.

use super::error::{Reason, refuse};
use super::tree::{blocks, bounds, find_loop, fresh, replace_loop, substitute};
use crate::te::{Expr, Name};
use crate::tir::{For, Function, LoopKind, Stmt};

/// Joins `outer` and `inner` into one loop of their kind. Division of its variable recovers both.
pub fn fuse(f: &mut Function, outer: &Name, inner: &Name) -> Result<Vec<Name>, Reason> {
    let o = find_loop(f, outer)?;
    let Stmt::For(i) = &*o.body else { refuse!("loop {inner} is not the whole body of {outer}") };
    if &i.var != inner {
        refuse!("loop {inner} is not the whole body of {outer}");
    }
    let kind = o.kind;
    if kind != i.kind || !matches!(kind, LoopKind::Serial | LoopKind::Parallel) {
        refuse!("loops {outer} and {inner} must both be serial, or both parallel");
    }
    for b in blocks(&i.body) {
        if b.reduce.contains(outer) != b.reduce.contains(inner) {
            refuse!("block {} reduces over only one of {outer} and {inner}", b.name);
        }
    }
    let width = i.extent;
    let Some(n) = o.extent.checked_mul(width) else { refuse!("{outer} and {inner} have too many iterations together") };
    let last = inner.as_str().rsplit('.').next().unwrap_or(inner.as_str());
    let name = fresh(f, &format!("{outer}_{last}"));
    let mut ranges = bounds(f);
    ranges.insert(name.clone(), (0, n - 1));
    let var = Expr::Var(name.clone());
    let map = |v: &Name| {
        if v == outer {
            Some(var.clone() / width)
        } else if v == inner {
            Some(var.clone() % width)
        } else {
            None
        }
    };
    let reduce = |v: &Name| (v == outer || v == inner).then(|| vec![name.clone()]);
    let body = std::mem::replace(&mut f.body, Stmt::Seq(Vec::new()));
    f.body = replace_loop(body, outer, &mut |l| {
        let Stmt::For(i) = *l.body else { refuse!("loop {inner} is not the whole body of {outer}") };
        let mut body = i.body;
        substitute(&mut body, &map, &reduce, &ranges);
        Ok(Stmt::For(For { var: name.clone(), extent: n, kind, body }))
    })?;
    Ok(vec![name])
}
