//! `annotate`: vectorize, unroll, parallel and pipeline.

use super::error::{Reason, refuse};
use super::reorder::commute;
use super::tree::{blocks, find_loop, replace_loop};
use crate::te::Name;
use crate::tir::{For, Function, LoopKind, Stmt};

/// Most iterations of an unrolled loop.
const MAX_UNROLL: i64 = 64;

/// Changes the kind of a loop.
///
/// A vectorized loop must be innermost. Vectorized and parallel loops must not reduce, and their iterations must
/// commute. A loop of any kind can become serial again. A pipeline has no conditions, because it keeps the order of
/// dependent steps.
pub fn annotate(f: &mut Function, var: &Name, kind: &str) -> Result<Vec<Name>, Reason> {
    let Some(kind) = LoopKind::NAMES.iter().find(|k| k.1 == kind).map(|k| k.0) else {
        let kinds: Vec<&str> = LoopKind::NAMES.iter().map(|k| k.1).collect();
        refuse!("there is no loop kind {kind}; the kinds are {}", kinds.join(", "))
    };
    let target = find_loop(f, var)?;
    if target.kind != LoopKind::Serial && kind != LoopKind::Serial {
        refuse!("loop {var} is already {}", target.kind.name());
    }
    if kind == LoopKind::Unrolled && target.extent > MAX_UNROLL {
        refuse!("loop {var} has {} iterations, but at most {MAX_UNROLL} can be unrolled; split it", target.extent);
    }
    if matches!(kind, LoopKind::Vectorized | LoopKind::Parallel) {
        if kind == LoopKind::Vectorized && !matches!(*target.body, Stmt::Block(_)) {
            refuse!("loop {var} is not innermost around a single block");
        }
        if let Some(b) = blocks(&target.body).iter().find(|b| b.reduce.contains(var)) {
            refuse!("block {} reduces over {var}", b.name);
        }
        commute(f, std::slice::from_ref(target), &target.body)?;
        if kind == LoopKind::Parallel {
            independent(f, target)?;
        }
    }
    let body = std::mem::replace(&mut f.body, Stmt::Seq(Vec::new()));
    f.body = replace_loop(body, var, &mut |l| Ok(Stmt::For(For { kind, ..l })))?;
    Ok(Vec::new())
}

/// Fails if two iterations can write the same element, even with the same value: threads must not share written
/// elements.
fn independent(f: &Function, target: &For) -> Result<(), Reason> {
    let ranges = super::tree::bounds(f);
    let vars = [target.var.clone()];
    let mut running: Vec<(Name, i64)> = Vec::new();
    target.body.visit_loops(&mut |l| running.push((l.var.clone(), l.extent)));
    for a in super::access::accesses_in(f, &target.body).iter().filter(|a| a.writes) {
        let mut free = running.clone();
        free.extend(a.dims.iter().cloned());
        let private = super::access::private(f, &target.body, &a.buffer, &ranges);
        if !private && !super::access::injective(&a.indices, &vars, &free, &ranges) {
            refuse!("iterations of {} can write the same element of {}", target.var, a.buffer);
        }
    }
    Ok(())
}
