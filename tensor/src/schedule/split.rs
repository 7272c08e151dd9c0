//! `split`: splits one loop into several nested ones.

use super::error::{Reason, refuse};
use super::tree::{bounds, find_loop, fresh, nest, replace_loop, substitute};
use crate::te::{Expr, Name};
use crate::tir::{Function, LoopKind, Stmt};

/// The new loops have at most this many times the iterations of the old one. A last part may be mostly empty.
const MOST_WASTE: i64 = 64;

/// Splits loop `var`, serial or parallel, into an outer loop and one loop per factor, all of its kind. If the product
/// of the extents exceeds the original extent, blocks get a guard.
pub fn split(f: &mut Function, var: &Name, factors: &[i64]) -> Result<Vec<Name>, Reason> {
    let target = find_loop(f, var)?;
    let extent = target.extent;
    let kind = target.kind;
    if !matches!(kind, LoopKind::Serial | LoopKind::Parallel) {
        refuse!("loop {var} is already {}; split it before that", target.kind.name());
    }
    if factors.is_empty() || factors.iter().any(|&n| n < 1) {
        refuse!("factors must be at least 1, got {factors:?}");
    }
    let Some(inner) = factors.iter().try_fold(1i64, |a, &b| a.checked_mul(b)).filter(|&n| n < i64::MAX / 2) else {
        refuse!("the product of {factors:?} is too large")
    };
    if inner > extent.saturating_mul(MOST_WASTE) {
        refuse!("the product of {factors:?} is {inner}, much more than the {extent} iterations of {var}");
    }
    let outer = (extent + inner - 1) / inner;
    let extents: Vec<i64> = std::iter::once(outer).chain(factors.iter().copied()).collect();
    let names: Vec<Name> = (0..extents.len()).map(|i| fresh(f, &format!("{var}.{i}"))).collect();
    let mut ranges = bounds(f);
    ranges.extend(names.iter().zip(&extents).map(|(v, n)| (v.clone(), (0, n - 1))));
    let mut sum = Expr::int(0);
    for (v, n) in names.iter().zip(&extents) {
        sum = sum * *n + Expr::Var(v.clone());
    }
    let sum = crate::tir::simplify(&sum, &ranges);
    let guard = (inner * outer != extent).then(|| sum.clone().lt(Expr::int(extent)));
    let body = std::mem::replace(&mut f.body, Stmt::Seq(Vec::new()));
    f.body = replace_loop(body, var, &mut |l| {
        let mut body = *l.body;
        if let Some(g) = &guard {
            // Put the guard first: it keeps the accesses of other guards within bounds.
            body.each_block_mut(&mut |b| b.guards.insert(0, g.clone()));
        }
        let map = |v: &Name| (v == var).then(|| sum.clone());
        substitute(&mut body, &map, &|v| (v == var).then(|| names.clone()), &ranges);
        body.each_block_mut(&mut |b| b.guards.retain(|g| *g != Expr::Int(1, crate::te::DType::Bool)));
        let mut nest = nest(names.iter().cloned().zip(extents.iter().copied()), body);
        let mut part = &mut nest;
        for _ in &names {
            let Stmt::For(l) = part else { break };
            l.kind = kind;
            part = &mut *l.body;
        }
        Ok(nest)
    })?;
    Ok(names)
}
