//! `merge`: runs two loops of the same extent as one.

use super::access::{Access, accesses_in};
use super::error::{Reason, refuse};
use super::tree::{bounds, find_loop, flatten, seq, substitute};
use crate::te::{Expr, Name};
use crate::tir::{Affine, Bounds, For, Function, LoopKind, Stmt, affine::interval};

/// Runs the body of `second`, a loop behind `first`, at the end of each iteration of `first`. Statements between the two
/// move before `first`.
///
/// The loops must be in the same body, and an iteration of `second` must not depend on later iterations of `first`: each
/// element that one of them writes and the other accesses is accessed in iterations of the same number only.
pub fn merge(f: &mut Function, first: &Name, second: &Name) -> Result<Vec<Name>, Reason> {
    let (a, b) = (find_loop(f, first)?.clone(), find_loop(f, second)?.clone());
    if a.extent != b.extent {
        refuse!("loop {first} has {} iterations, and {second} has {}; they need the same number", a.extent, b.extent);
    }
    if let Some(l) = [&a, &b].into_iter().find(|l| l.kind != LoopKind::Serial) {
        refuse!("loop {} is {}; merge the loops first, then annotate", l.var, l.kind.name());
    }
    let ranges = bounds(f);
    let mut moved = (*b.body).clone();
    let var = Expr::Var(first.clone());
    substitute(
        &mut moved,
        &|v| (v == second).then(|| var.clone()),
        &|v| (v == second).then(|| vec![first.clone()]),
        &ranges,
    );
    let mut body = f.body.clone();
    let Some((items, at, other)) = siblings(&mut body, first, second) else {
        refuse!("loops {first} and {second} are not in the same body, {first} before {second}");
    };
    for between in &items[at + 1..other] {
        if let Some(buffer) = clash(&accesses_in(f, &items[at]), &accesses_in(f, between)) {
            refuse!("{buffer} is used in loop {first} and between the two loops");
        }
    }
    let mut inner = Vec::new();
    [&*a.body, &moved].into_iter().for_each(|s| s.visit_loops(&mut |l| inner.push(l.var.clone())));
    apart(&accesses_in(f, &a.body), &accesses_in(f, &moved), &Loops { var: first, inner, ranges })?;
    items.remove(other);
    let inner = seq(vec![(*a.body).clone(), moved]);
    items[at] = Stmt::For(For { body: Box::new(inner), ..a });
    items[at..other].rotate_left(1);
    f.body = body;
    flatten(&mut f.body);
    Ok(Vec::new())
}

/// Returns the sequence with both loops, and their places in it.
fn siblings<'s>(s: &'s mut Stmt, first: &Name, second: &Name) -> Option<(&'s mut Vec<Stmt>, usize, usize)> {
    match s {
        Stmt::Seq(items) => {
            let place = |v: &Name| items.iter().position(|s| matches!(s, Stmt::For(l) if &l.var == v));
            if let (Some(a), Some(b)) = (place(first), place(second))
                && a < b
            {
                return Some((items, a, b));
            }
            items.iter_mut().find_map(|s| siblings(s, first, second))
        }
        Stmt::For(l) => siblings(&mut l.body, first, second),
        Stmt::Block(_) => None,
    }
}

/// Returns a buffer that both lists access, and one of them writes.
fn clash<'a>(a: &'a [Access], b: &[Access]) -> Option<&'a Name> {
    let meet = |x: &&Access| b.iter().any(|y| x.buffer == y.buffer && (x.writes || y.writes));
    a.iter().find(meet).map(|x| &x.buffer)
}

/// A loop, and those within it.
struct Loops<'l> {
    var: &'l Name,
    inner: Vec<Name>,
    ranges: Bounds,
}

/// Fails unless different iterations of the two bodies access different elements of each buffer that one of them writes
/// and the other accesses: in some dimension, each iteration has a range of its own.
fn apart(a: &[Access], b: &[Access], loops: &Loops) -> Result<(), Reason> {
    let mut checked: Vec<&Name> = Vec::new();
    for buffer in a.iter().map(|x| &x.buffer) {
        let of = |list: &[Access]| list.iter().filter(|x| &x.buffer == buffer).cloned().collect::<Vec<_>>();
        let (x, y) = (of(a), of(b));
        if checked.contains(&buffer) || clash(&x, &y).is_none() {
            continue;
        }
        checked.push(buffer);
        let all = [x, y].concat();
        let dimensions = all.first().map_or(0, |x| x.indices.len());
        if !(0..dimensions).any(|d| digit(&all, d, loops)) {
            refuse!(
                "an iteration of the second loop can use elements of {buffer} that other iterations of the first use"
            );
        }
    }
    Ok(())
}

/// Returns whether each iteration has a range of its own in a dimension of all accesses.
fn digit(all: &[Access], dimension: usize, loops: &Loops) -> bool {
    let mut common = None;
    let mut reach: Option<(i64, i64)> = None;
    for x in all {
        let Some(sum) = x.indices.get(dimension).and_then(Affine::of) else { return false };
        let mut within = loops.ranges.clone();
        within.extend(x.dims.iter().map(|(v, n)| (v.clone(), (0, n - 1))));
        // Variables of outer loops are the same in all accesses.
        let (running, standing) = sum.partition(|v| loops.inner.contains(v) || x.dims.iter().any(|d| &d.0 == v));
        let Some((lo, hi)) = interval(&running.to_expr(), &within) else { return false };
        let (lo, hi) = (lo + standing.constant, hi + standing.constant);
        if common.as_ref().is_some_and(|c| *c != standing.terms) {
            return false;
        }
        common = Some(standing.terms);
        reach = Some(reach.map_or((lo, hi), |(l, h)| (l.min(lo), h.max(hi))));
    }
    let step = common.and_then(|c| c.get(loops.var)).unwrap_or(0);
    step != 0 && reach.is_some_and(|(lo, hi)| hi - lo < step.abs())
}
