//! `keep`: also writes what a block copies to a buffer in another scope.

use super::error::{Reason, refuse};
use super::tree::{find_block, fresh, holds_block, replace_loop, seq};
use crate::te::{Expr, Name};
use crate::tir::{Action, Buffer, Function, Scope, Stmt};

/// Adds a nest before the copy by `block` in the body of the loop `target`. It copies the same elements to a new buffer of
/// the same shape in `scope`. Returns the new buffer and the new block.
pub fn keep(f: &mut Function, block: &Name, target: &Name, scope: Scope) -> Result<Vec<Name>, Reason> {
    let (loops, copier) = find_block(f, block)?;
    let Action::Store { buffer, value: Expr::Load { .. }, .. } = &copier.action else {
        refuse!("block {block} is no copy; make one with cache_write");
    };
    let Some(tensor) = f.buffer(buffer).cloned() else { refuse!("there is no buffer {buffer}") };
    let Some(at) = loops.iter().position(|l| l == target) else { refuse!("loop {target} is not around {block}") };
    let inner = &loops[at + 1..];
    let name = fresh(f, &format!("{buffer}.{}", scope.name()));
    let kept = fresh(f, &format!("{buffer}.keep"));
    let renamed: Vec<Name> =
        inner.iter().map(|l| fresh(f, &l.as_str().replacen(block.as_str(), kept.as_str(), 1))).collect();
    let rename = |v: &Name| inner.iter().position(|l| l == v).map(|i| renamed[i].clone());
    let body = std::mem::replace(&mut f.body, Stmt::Seq(Vec::new()));
    f.body = replace_loop(body, target, &mut |mut l| {
        let mut items = match *l.body {
            Stmt::Seq(items) => items,
            other => vec![other],
        };
        let Some(at) = items.iter().position(|s| holds_block(s, block)) else { refuse!("there is no block {block}") };
        let mut blocks = 0;
        items[at].visit_blocks(&mut |_, _| blocks += 1);
        if blocks != 1 {
            refuse!(
                "{block} shares a loop within {target} with other blocks; name the loop right around its own loops"
            );
        }
        let mut copy = rename_loops(items[at].clone(), &rename);
        copy.each_block_mut(&mut |b| {
            b.name = kept.clone();
            b.each_expr_mut(&mut |e| *e = e.substitute(&|v| rename(v).map(Expr::Var)));
            if let Action::Store { buffer, .. } = &mut b.action {
                *buffer = name.clone();
            }
        });
        items.insert(at, copy);
        l.body = Box::new(seq(items));
        Ok(Stmt::For(l))
    })?;
    f.locals.push(Buffer { name: name.clone(), scope, ..tensor });
    Ok(vec![name, kept])
}

/// Gives loops other variables.
fn rename_loops(s: Stmt, rename: &dyn Fn(&Name) -> Option<Name>) -> Stmt {
    match s {
        Stmt::Seq(items) => Stmt::Seq(items.into_iter().map(|s| rename_loops(s, rename)).collect()),
        Stmt::For(mut l) => {
            l.var = rename(&l.var).unwrap_or(l.var);
            l.body = Box::new(rename_loops(*l.body, rename));
            Stmt::For(l)
        }
        Stmt::Block(b) => Stmt::Block(b),
    }
}
