//! `compute_at`: moves a producer into its consumer's loops.

use super::access::{Access, accesses_in, region};
use super::error::{Reason, refuse};
use super::tree::{
    bounds, find_block, find_loop, holds_block, nest, replace_block, replace_loop, seq, substitute, top,
};
use crate::te::{Expr, Name};
use crate::tir::{Action, Affine, Function, LoopKind, Stmt, affine::interval, simplify};

/// Moves the nest of `block` to the start of the body of loop `var`, reduced to the box of elements read there.
///
/// The nest must not have been transformed: it has one loop per dimension of its buffer, and the reduction loops.
pub fn compute_at(f: &mut Function, name: &Name, var: &Name) -> Result<Vec<Name>, Reason> {
    let (loops, block) = find_block(f, name)?;
    let target = find_loop(f, var)?.clone();
    if target.kind == LoopKind::Vectorized {
        refuse!("loop {var} is vectorized and must stay innermost");
    }
    let Action::Store { buffer, indices, .. } = &block.action else {
        refuse!("block {name} calls an intrinsic; compute_at before tensorizing")
    };
    let Some(local) = f.locals.iter().find(|b| &b.name == buffer).cloned() else {
        refuse!(
            "block {name} writes {buffer}, which is an output of the function and is read by no block; to write two outputs \
             in one loop, split both blocks alike and merge the loops"
        )
    };
    if loops.contains(var) {
        refuse!("block {name} is already within loop {var}");
    }
    let items = top(f);
    let Some(own) = items.iter().find(|s| holds_block(s, name)) else { refuse!("there is no block {name}") };
    if own.find_loop(var).is_some() || super::tree::blocks(own).len() != 1 {
        refuse!("block {name} shares its loop nest with other blocks");
    }
    let spatial: Vec<Name> = indices
        .iter()
        .filter_map(|i| match i {
            Expr::Var(v) if loops.contains(v) && !block.reduce.contains(v) => Some(v.clone()),
            _ => None,
        })
        .collect();
    let distinct = spatial.iter().enumerate().all(|(i, v)| !spatial[..i].contains(v));
    if spatial.len() != indices.len() || !distinct || loops.len() != spatial.len() + block.reduce.len() {
        refuse!("the loops of {name} were already transformed; move the block first, then split and reorder its loops");
    }
    let mut writers = 0;
    f.body.visit_blocks(&mut |_, b| writers += usize::from(b.target() == Some(buffer)));
    if !block.guards.is_empty() && writers > 1 {
        refuse!("block {name} has guards, and another block also writes {buffer}");
    }
    let position = |n: &Name| items.iter().position(|s| s.find_loop(n).is_some());
    let (at_own, at_target) = (items.iter().position(|s| holds_block(s, name)), position(var));
    if at_own >= at_target {
        refuse!("loop {var} comes before block {name}");
    }
    // The values that the block reads must not change between its old and its new place.
    let reads: Vec<Name> =
        accesses_in(f, own).into_iter().filter(|a| a.reads && &a.buffer != buffer).map(|a| a.buffer).collect();
    if let (Some(a), Some(b)) = (at_own, at_target) {
        for s in &items[a + 1..=b] {
            if let Some(w) = accesses_in(f, s).iter().find(|x| x.writes && reads.contains(&x.buffer)) {
                refuse!("{} is written between {name} and loop {var}", w.buffer);
            }
        }
    }
    let ranges = bounds(f);
    let of = |s: &Stmt| -> Vec<Access> { accesses_in(f, s).into_iter().filter(|a| &a.buffer == buffer).collect() };
    let inside = of(&target.body);
    let total = of(&f.body).len() - of(own).len();
    if inside.is_empty() {
        refuse!("{buffer} is not read within loop {var}");
    }
    if inside.len() != total {
        refuse!("{buffer} is also used outside loop {var}");
    }
    if inside.iter().any(|a| a.writes) {
        refuse!("{buffer} is written within loop {var}");
    }
    let mut inner = Vec::new();
    target.body.visit_loops(&mut |l| inner.push(l.var.clone()));
    let boxed = region(&inside.iter().collect::<Vec<_>>(), &inner, &local.shape, &ranges)?;

    // Keep the loop names. The loops run over the box and count from its start.
    let mut extents: Vec<(Name, i64)> = Vec::new();
    let mut within = ranges.clone();
    for v in &loops {
        let n = match spatial.iter().position(|s| s == v) {
            Some(d) => boxed[d].1,
            None => ranges.get(v).map_or(0, |r| r.1 + 1),
        };
        within.insert(v.clone(), (0, n - 1));
        extents.push((v.clone(), n));
    }
    let place = |v: &Name| {
        let d = spatial.iter().position(|s| s == v)?;
        Some(simplify(&(boxed[d].0.clone() + Expr::Var(v.clone())), &within))
    };
    let mut moved = block.clone();
    for (d, v) in spatial.iter().enumerate() {
        // The box can extend beyond the buffer if the consumer has guards. Guard the producer too.
        let Some(e) = place(v) else { continue };
        let Some((lo, hi)) = interval(&e, &within) else { refuse!("the range of {e} is unknown") };
        if lo < 0 {
            moved.guards.push(Expr::int(0).le(Expr::Var(v.clone())));
        }
        if hi >= local.shape[d] {
            moved.guards.push(Expr::Var(v.clone()).lt(Expr::int(local.shape[d])));
        }
    }
    let mut body = Stmt::Block(moved);
    substitute(&mut body, &place, &|_| None, &within);
    debug_assert!(boxed.iter().all(|r| Affine::of(&r.0).is_some()));
    let moved = nest(extents.into_iter(), body);
    let tree = std::mem::replace(&mut f.body, Stmt::Seq(Vec::new()));
    let rest = replace_block(tree, name, &mut |_| None).unwrap_or(Stmt::Seq(Vec::new()));
    f.body = replace_loop(rest, var, &mut |mut l| {
        let old = std::mem::replace(&mut *l.body, Stmt::Seq(Vec::new()));
        *l.body = seq(vec![moved.clone(), old]);
        Ok(Stmt::For(l))
    })?;
    f.body = seq(vec![std::mem::replace(&mut f.body, Stmt::Seq(Vec::new()))]);
    Ok(Vec::new())
}
