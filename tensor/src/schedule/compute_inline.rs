//! `compute_inline`: computes a value where it is read.

use super::access::accesses_in;
use super::error::{Reason, refuse};
use super::tree::{bounds, find_block, replace_block, seq};
use crate::te::{Expr, Name};
use crate::tir::{Action, Function, Stmt, simplify};

/// Replaces every read of a block's buffer by the block's value, and removes both block and buffer.
pub fn compute_inline(f: &mut Function, name: &Name) -> Result<Vec<Name>, Reason> {
    let (loops, block) = find_block(f, name)?;
    let Action::Store { buffer, indices, value } = &block.action else { refuse!("block {name} calls an intrinsic") };
    if !f.locals.iter().any(|b| &b.name == buffer) {
        refuse!("block {name} writes {buffer}, which is an output of the function");
    }
    if block.init.is_some() || !block.reduce.is_empty() || !block.guards.is_empty() {
        refuse!("block {name} reduces or has guards");
    }
    let vars: Vec<&Name> = indices
        .iter()
        .filter_map(|i| match i {
            Expr::Var(v) if loops.contains(v) => Some(v),
            _ => None,
        })
        .collect();
    let distinct = vars.iter().enumerate().all(|(i, v)| !vars[..i].contains(v));
    if vars.len() != indices.len() || !distinct || loops.iter().any(|l| !vars.contains(&l)) {
        refuse!("the loops of {name} were already transformed; inline the block first");
    }
    let all = accesses_in(f, &f.body);
    if all.iter().any(|a| a.writes && &a.buffer == buffer && &a.block != name) {
        refuse!("{buffer} is written by several blocks");
    }
    if all.iter().any(|a| &a.buffer == buffer && !a.dims.is_empty()) {
        refuse!("{buffer} is an intrinsic's argument");
    }
    let mut sources = Vec::new();
    value.visit(&mut |e| {
        if let Expr::Load { buffer, .. } = e {
            sources.push(buffer.clone());
        }
    });
    if sources.contains(buffer) {
        refuse!("block {name} reads what it writes");
    }
    let writers = |b: &Name| all.iter().filter(|a| a.writes && &a.buffer == b).count();
    if let Some(s) = sources.iter().find(|s| writers(s) > 1) {
        refuse!("{s}, which {name} reads, is written by several blocks");
    }
    // If a source was shrunk or moved, it may no longer hold the elements at the place of the reader.
    if let Some(s) = sources.iter().find(|s| {
        let writer = all.iter().find(|a| a.writes && &a.buffer == *s).map(|a| &a.block);
        writer.is_some_and(|w| top_of(f, w) == top_of(f, name))
    }) {
        refuse!("{s}, which {name} reads, is computed in the same nest");
    }
    let (value, vars) = (value.clone(), vars.into_iter().cloned().collect::<Vec<_>>());
    let ranges = bounds(f);
    let buffer = buffer.clone();
    let tree = std::mem::replace(&mut f.body, Stmt::Seq(Vec::new()));
    let mut rest = replace_block(tree, name, &mut |_| None).unwrap_or(Stmt::Seq(Vec::new()));
    rest.each_block_mut(&mut |b| {
        b.each_expr_mut(&mut |e| {
            let mut hit = false;
            let new = e.rewrite(&mut |e| match e {
                Expr::Load { buffer: from, indices, .. } if from == buffer => {
                    hit = true;
                    value.substitute(&|v| vars.iter().position(|n| n == v).and_then(|i| indices.get(i).cloned()))
                }
                e => e,
            });
            if hit {
                *e = simplify(&new, &ranges);
            }
        });
    });
    f.body = seq(vec![rest]);
    f.locals.retain(|b| b.name != buffer);
    Ok(Vec::new())
}

fn top_of(f: &Function, block: &Name) -> Option<usize> {
    match &f.body {
        Stmt::Seq(items) => items.iter().position(|s| s.find_block(block).is_some()),
        _ => Some(0),
    }
}
