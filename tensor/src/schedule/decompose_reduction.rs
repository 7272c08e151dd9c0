//! `decompose_reduction`: separates a reduction's initial value from its sum.

use super::access::{accesses, touches};
use super::error::{Reason, refuse};
use super::tree::{bounds, find_block, find_loop, flatten, fresh, nest, replace_loop, substitute};
use crate::te::{DType, Expr, Name};
use crate::tir::{Action, Block, Function, Stmt, affine::interval};

/// Stores the initial value of `name` in a separate nest before loop `var`, which must enclose all its reduction loops.
pub fn decompose_reduction(f: &mut Function, name: &Name, var: &Name) -> Result<Vec<Name>, Reason> {
    let (loops, block) = find_block(f, name)?;
    let target = find_loop(f, var)?.clone();
    let Some(init) = block.init.clone() else { refuse!("block {name} has no initial value to move") };
    let Action::Store { buffer, indices, .. } = &block.action else { refuse!("block {name} calls an intrinsic") };
    let Some(at) = loops.iter().position(|l| l == var) else { refuse!("loop {var} does not enclose {name}") };
    if let Some(r) = block.reduce.iter().find(|r| !loops[at..].contains(r)) {
        refuse!("reduction loop {r} of {name} is outside of {var}, so the sum would restart");
    }
    let mut others = Vec::new();
    target.body.visit_blocks(&mut |_, b| {
        if &b.name != name {
            others.push(Stmt::Block(b.clone()));
        }
    });
    if others.iter().any(|s| touches(f, s, buffer)) {
        refuse!("another block within {var} uses {buffer}");
    }
    if accesses(f, &block).iter().any(|a| a.reads && &a.buffer == buffer && &a.indices != indices) {
        refuse!("block {name} reads other elements of {buffer}");
    }
    let ranges = bounds(f);
    // Redundant loops, which no index uses, would store the initial value again each time the sum restarts.
    let inner: Vec<(Name, i64)> = loops[at..]
        .iter()
        .filter(|l| !block.reduce.contains(l))
        .filter(|l| indices.iter().any(|i| i.uses(l)) || block.guards.iter().any(|g| g.uses(l)))
        .map(|l| (l.clone(), ranges.get(l).map_or(0, |r| r.1 + 1)))
        .collect();
    let redundant = loops[at..].iter().find(|l| {
        !block.reduce.contains(l) && !inner.iter().any(|i| &i.0 == *l) && ranges.get(*l).is_some_and(|r| r.1 > 0)
    });
    if let Some(l) = redundant {
        refuse!("loop {l} repeats the computation of {name}; choose a loop inside it");
    }
    let new = fresh(f, &format!("{name}.init"));
    let renamed: Vec<(Name, i64)> = inner.iter().map(|(v, n)| (fresh(f, &format!("{v}.init")), *n)).collect();
    let mut within = ranges.clone();
    within.extend(renamed.iter().map(|(v, n)| (v.clone(), (0, n - 1))));
    let map = |v: &Name| {
        if block.reduce.contains(v) {
            return Some(Expr::int(0));
        }
        let i = inner.iter().position(|x| &x.0 == v)?;
        Some(Expr::Var(renamed[i].0.clone()))
    };
    let first = Block {
        name: new.clone(),
        reduce: Vec::new(),
        guards: block.guards.clone(),
        init: None,
        action: Action::Store { buffer: buffer.clone(), indices: indices.clone(), value: init },
    };
    let mut body = Stmt::Block(first);
    substitute(&mut body, &map, &|_| None, &within);
    body.each_block_mut(&mut |b| {
        b.guards.retain(|g| *g != Expr::Int(1, DType::Bool) && interval(g, &within) != Some((1, 1)));
    });
    let first = nest(renamed.into_iter(), body);
    let tree = std::mem::replace(&mut f.body, Stmt::Seq(Vec::new()));
    f.body = replace_loop(tree, var, &mut |l| Ok(Stmt::Seq(vec![first.clone(), Stmt::For(l)])))?;
    f.body.each_block_mut(&mut |b| {
        if &b.name == name {
            b.init = None;
        }
    });
    flatten(&mut f.body);
    Ok(vec![new])
}
