//! `compact`: shrinks a local buffer to the part in use.

use super::access::{Access, accesses_in, private, region, touches};
use super::error::{Reason, refuse};
use super::tree::{bounds, local};
use crate::te::{Expr, Name};
use crate::tir::{Action, Function, Stmt, simplify};

/// Returns the innermost statement that contains all uses of the buffer.
fn around<'a>(f: &Function, s: &'a Stmt, buffer: &Name) -> &'a Stmt {
    let inner = match s {
        Stmt::Seq(items) => {
            let mut users = items.iter().filter(|i| touches(f, i, buffer));
            match (users.next(), users.next()) {
                (Some(only), None) => only,
                _ => return s,
            }
        }
        Stmt::For(l) => &*l.body,
        Stmt::Block(_) => return s,
    };
    around(f, inner, buffer)
}

/// Shrinks a local buffer to the box accessed by the innermost statement around its uses, and shifts the indices.
pub fn compact(f: &mut Function, buffer: &Name) -> Result<Vec<Name>, Reason> {
    let b = local(f, buffer)?.clone();
    let ranges = bounds(f);
    let scope = around(f, &f.body, buffer).clone();
    let uses: Vec<Access> = accesses_in(f, &scope).into_iter().filter(|a| &a.buffer == buffer).collect();
    if uses.is_empty() {
        refuse!("{buffer} is not used");
    }
    if !private(f, &scope, buffer, &ranges) {
        refuse!("{buffer} carries values from one iteration of the enclosing loops to the next");
    }
    let mut inner = Vec::new();
    scope.visit_loops(&mut |l| inner.push(l.var.clone()));
    let boxed = region(&uses.iter().collect::<Vec<_>>(), &inner, &b.shape, &ranges)?;
    let shift = |indices: &mut Vec<Expr>| {
        for (i, (base, _)) in indices.iter_mut().zip(&boxed) {
            *i = simplify(&(i.clone() - base.clone()), &ranges);
        }
    };
    f.body.each_block_mut(&mut |block| {
        block.each_expr_mut(&mut |e| {
            *e = e.rewrite(&mut |e| match e {
                Expr::Load { buffer: from, dtype, mut indices } if &from == buffer => {
                    shift(&mut indices);
                    Expr::Load { buffer: from, dtype, indices }
                }
                e => e,
            });
        });
        match &mut block.action {
            Action::Store { buffer: to, indices, .. } if to == buffer => shift(indices),
            Action::Call { args, .. } => {
                args.iter_mut().filter(|v| &v.buffer == buffer).for_each(|v| shift(&mut v.indices));
            }
            Action::Store { .. } => {}
        }
    });
    if let Some(b) = f.locals.iter_mut().find(|b| &b.name == buffer) {
        b.shape = boxed.iter().map(|r| r.1).collect();
    }
    Ok(Vec::new())
}
