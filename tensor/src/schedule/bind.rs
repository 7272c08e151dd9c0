//! `bind`: maps a loop's iterations to the blocks or threads of a GPU.

use super::annotate::annotate;
use super::error::{Reason, refuse};
use super::tree::{find_loop, replace_loop};
use crate::te::Name;
use crate::tir::{For, Function, LoopKind, Stmt};

/// Binds a parallel loop, or a serial one that can be parallel, to a dimension of the grid or of a block's threads.
///
/// Along any path of nested loops, each dimension occurs once, and block loops enclose thread loops. Loops next to each
/// other can use the same threads: the code generator must synchronize threads between them.
pub fn bind(f: &mut Function, var: &Name, place: &str) -> Result<Vec<Name>, Reason> {
    let found = LoopKind::NAMES.iter().find(|k| k.1 == place).map(|k| k.0);
    let Some(kind) = found.filter(|k| k.block().or(k.thread()).is_some()) else {
        refuse!("{place} is not a dimension of a grid or block; use block_x to block_z or thread_x to thread_z")
    };
    if find_loop(f, var)?.kind != LoopKind::Parallel {
        annotate(f, var, LoopKind::Parallel.name())?;
    }
    let target = find_loop(f, var)?.clone();
    let mut around: Vec<For> = Vec::new();
    f.body.visit_loops(&mut |l| {
        if l.var != *var && l.body.find_loop(var).is_some() {
            around.push(l.clone());
        }
    });
    let mut within: Vec<For> = Vec::new();
    target.body.visit_loops(&mut |l| within.push(l.clone()));
    if let Some(l) = around.iter().chain(&within).find(|l| l.kind == kind) {
        refuse!("loop {} around or within {var} is already {place}", l.var);
    }
    let (outer, inner) =
        (around.iter().find(|l| l.kind.thread().is_some()), within.iter().find(|l| l.kind.block().is_some()));
    match (kind.block(), outer, inner) {
        (Some(_), Some(l), _) => refuse!("loop {var} is within loop {} over threads", l.var),
        (None, _, Some(l)) => refuse!("loop {} over blocks is within loop {var}", l.var),
        _ => {}
    }
    let body = std::mem::replace(&mut f.body, Stmt::Seq(Vec::new()));
    f.body = replace_loop(body, var, &mut |l| Ok(Stmt::For(For { kind, ..l })))?;
    Ok(Vec::new())
}
