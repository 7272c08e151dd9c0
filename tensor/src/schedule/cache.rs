//! `cache_read`, `cache_write` and `set_scope`: moving data through another memory.

use tilewright_hw::list;

use super::access::touches;
use super::error::{Reason, refuse};
use super::tree::{find_block, fresh, holds_block, nest, seq, top};
use crate::te::{Expr, Name};
use crate::tir::{Action, Block, Buffer, Function, Scope, Stmt};

/// Creates a nest that copies all of `from` to `to`. Its block is called `block`.
fn copy(f: &Function, from: &Buffer, to: &Buffer, block: &Name) -> Stmt {
    let vars: Vec<Name> = (0..from.shape.len()).map(|i| fresh(f, &format!("{block}.i{i}"))).collect();
    let indices: Vec<Expr> = vars.iter().map(|v| Expr::Var(v.clone())).collect();
    let value = Expr::Load { buffer: from.name.clone(), dtype: from.dtype, indices: indices.clone() };
    let action = Action::Store { buffer: to.name.clone(), indices, value };
    let body = Block { name: block.clone(), reduce: Vec::new(), guards: Vec::new(), init: None, action };
    nest(vars.into_iter().zip(from.shape.iter().copied()), Stmt::Block(body))
}

fn buffer_of(f: &Function, name: &Name) -> Result<Buffer, Reason> {
    match f.buffer(name) {
        Some(b) => Ok(b.clone()),
        None => {
            let names: Vec<&Name> = f.params.iter().chain(&f.locals).map(|b| &b.name).collect();
            refuse!("there is no buffer {name}; there are: {}", list::first(&names, ", "))
        }
    }
}

/// Copies the whole `buffer` before the statement that contains `block`, and makes the block read the copy. Returns the
/// name shared by the copy's buffer and block.
pub fn cache_read(f: &mut Function, block: &Name, buffer: &Name, scope: Scope) -> Result<Vec<Name>, Reason> {
    let (_, reader) = find_block(f, block)?;
    let source = buffer_of(f, buffer)?;
    if matches!(reader.action, Action::Call { .. }) {
        refuse!("block {block} calls an intrinsic; cache before tensorizing");
    }
    if reader.target() == Some(buffer) {
        refuse!("block {block} writes {buffer}, so it cannot read a copy");
    }
    let mut items = top(f);
    let Some(at) = items.iter().position(|s| holds_block(s, block)) else { refuse!("there is no block {block}") };
    let mut read = false;
    reader.each_expr(&mut |e| e.visit(&mut |e| read |= matches!(e, Expr::Load { buffer: b, .. } if b == buffer)));
    if !read {
        refuse!("block {block} does not read {buffer}");
    }
    let writes = |s: &Stmt| super::access::accesses_in(f, s).iter().any(|a| a.writes && &a.buffer == buffer);
    if items[at..].iter().any(writes) {
        refuse!("{buffer} is written in the nest of {block} or after it, so a copy before the nest would be too early");
    }
    let name = fresh(f, &format!("{buffer}.{}", scope.name()));
    let cache = Buffer { name: name.clone(), scope, ..source.clone() };
    let nest = copy(f, &source, &cache, &name);
    items[at].each_block_mut(&mut |b| {
        if &b.name == block {
            b.each_expr_mut(&mut |e| {
                *e = e.rewrite(&mut |e| match e {
                    Expr::Load { buffer: from, dtype, indices } if &from == buffer => {
                        Expr::Load { buffer: name.clone(), dtype, indices }
                    }
                    e => e,
                });
            });
        }
    });
    items.insert(at, nest);
    f.locals.push(cache);
    f.body = seq(items);
    Ok(vec![name])
}

/// Makes `block` write a new buffer, and adds a nest after it that copies to the original. Returns the new buffer and
/// the copying block.
pub fn cache_write(f: &mut Function, block: &Name, scope: Scope) -> Result<Vec<Name>, Reason> {
    let (_, writer) = find_block(f, block)?;
    let Some(target) = writer.target().cloned() else {
        refuse!("block {block} calls an intrinsic; cache before tensorizing")
    };
    let out = buffer_of(f, &target)?;
    let mut items = top(f);
    let Some(at) = items.iter().position(|s| holds_block(s, block)) else { refuse!("there is no block {block}") };
    let mut others = Vec::new();
    items[at].visit_blocks(&mut |_, b| {
        if &b.name != block {
            others.push(Stmt::Block(b.clone()));
        }
    });
    if others.iter().any(|s| touches(f, s, &target)) || items[..at].iter().any(|s| touches(f, s, &target)) {
        refuse!("{target} is also used by another block in the nest of {block} or before it");
    }
    if items[at + 1..].iter().any(|s| super::access::accesses_in(f, s).iter().any(|a| a.writes && a.buffer == target)) {
        refuse!("{target} is written again after {block}");
    }
    let name = fresh(f, &format!("{target}.{}", scope.name()));
    let cache = Buffer { name: name.clone(), scope, ..out.clone() };
    f.locals.push(cache.clone());
    let copier = fresh(f, &format!("{target}.write"));
    let nest = copy(f, &cache, &out, &copier);
    items[at].each_block_mut(&mut |b| {
        if &b.name == block {
            b.each_expr_mut(&mut |e| {
                *e = e.rewrite(&mut |e| match e {
                    Expr::Load { buffer, dtype, indices } if buffer == target => {
                        Expr::Load { buffer: name.clone(), dtype, indices }
                    }
                    e => e,
                });
            });
            if let Action::Store { buffer, .. } = &mut b.action {
                *buffer = name.clone();
            }
        }
    });
    items.insert(at + 1, nest);
    f.body = seq(items);
    Ok(vec![name, copier])
}

/// Sets the scope of a local buffer.
pub fn set_scope(f: &mut Function, buffer: &Name, scope: Scope) -> Result<Vec<Name>, Reason> {
    buffer_of(f, buffer)?;
    let Some(local) = f.locals.iter_mut().find(|b| &b.name == buffer) else {
        refuse!("{buffer} is an input or output, which stays in device memory; use cache_read or cache_write")
    };
    local.scope = scope;
    Ok(Vec::new())
}
