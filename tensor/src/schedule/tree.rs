//! Searches and replaces parts of a statement tree.

use tilewright_hw::list;

use super::error::{Reason, refuse};
use crate::te::{Expr, Name};
use crate::tir::{Block, Bounds, Buffer, For, Function, Stmt, simplify};

/// Returns the range of every loop variable of a function.
pub fn bounds(f: &Function) -> Bounds {
    let mut b = Bounds::default();
    f.body.visit_loops(&mut |l| {
        b.insert(l.var.clone(), (0, l.extent - 1));
    });
    b
}

/// Returns a name that no variable, buffer or block of the function uses: `wanted`, with underscores appended if
/// needed.
pub fn fresh(f: &Function, wanted: &str) -> Name {
    let mut taken: Vec<Name> = f.params.iter().chain(&f.locals).map(|b| b.name.clone()).collect();
    f.body.visit_loops(&mut |l| taken.push(l.var.clone()));
    f.body.visit_blocks(&mut |_, b| taken.push(b.name.clone()));
    let mut name = wanted.to_string();
    while taken.iter().any(|t| t.as_str() == name) {
        name.push('_');
    }
    name.into()
}

/// Returns the local buffer with that name.
pub fn local<'a>(f: &'a Function, name: &Name) -> Result<&'a Buffer, Reason> {
    let names = || f.locals.iter().map(|b| b.name.as_str()).collect::<Vec<_>>().join(", ");
    match f.locals.iter().find(|b| b.name == *name) {
        Some(buffer) => Ok(buffer),
        None if f.locals.is_empty() => refuse!("{name} is not a local buffer; there are none, cache_read makes one"),
        None => refuse!("{name} is not a local buffer; there are: {}", names()),
    }
}

/// Returns the loop with that variable.
pub fn find_loop<'a>(f: &'a Function, var: &Name) -> Result<&'a For, Reason> {
    match f.body.find_loop(var) {
        Some(l) => Ok(l),
        None => refuse!("there is no loop {var}"),
    }
}

/// Returns a block and the variables of its enclosing loops, outermost first.
pub fn find_block(f: &Function, name: &Name) -> Result<(Vec<Name>, Block), Reason> {
    let mut found = None;
    f.body.visit_blocks(&mut |loops, b| {
        if &b.name == name {
            found = Some((loops.iter().map(|l| l.var.clone()).collect(), b.clone()));
        }
    });
    match found {
        Some(x) => Ok(x),
        None => {
            let mut names = Vec::new();
            f.body.visit_blocks(&mut |_, b| names.push(b.name.to_string()));
            names.dedup();
            refuse!("there is no block {name}; there are: {}", list::first(&names, ", "))
        }
    }
}

/// Replaces the loop with that variable by the result of `make`.
pub fn replace_loop(s: Stmt, var: &Name, make: &mut dyn FnMut(For) -> Result<Stmt, Reason>) -> Result<Stmt, Reason> {
    Ok(match s {
        Stmt::Seq(items) => Stmt::Seq(items.into_iter().map(|s| replace_loop(s, var, make)).collect::<Result<_, _>>()?),
        Stmt::For(l) if &l.var == var => make(l)?,
        Stmt::For(l) => Stmt::For(For { body: Box::new(replace_loop(*l.body, var, make)?), ..l }),
        Stmt::Block(b) => Stmt::Block(b),
    })
}

/// Replaces a block by the result of `make`. `None` removes the block and the loops that become empty.
pub fn replace_block(s: Stmt, name: &Name, make: &mut dyn FnMut(Block) -> Option<Stmt>) -> Option<Stmt> {
    match s {
        Stmt::Seq(items) => Some(seq(items.into_iter().filter_map(|s| replace_block(s, name, make)).collect())),
        Stmt::For(l) => {
            let body = replace_block(*l.body, name, make)?;
            if matches!(&body, Stmt::Seq(items) if items.is_empty()) {
                return None;
            }
            Some(Stmt::For(For { body: Box::new(body), ..l }))
        }
        Stmt::Block(b) if &b.name == name => make(b),
        Stmt::Block(b) => Some(Stmt::Block(b)),
    }
}

/// Joins statements into a sequence. Flattens nested sequences, and returns a single statement unchanged.
pub fn seq(items: Vec<Stmt>) -> Stmt {
    let mut flat = Vec::new();
    for s in items {
        match s {
            Stmt::Seq(inner) => flat.extend(inner),
            s => flat.push(s),
        }
    }
    if flat.len() == 1 { flat.remove(0) } else { Stmt::Seq(flat) }
}

/// Returns the top-level statements of the function's body.
pub fn top(f: &Function) -> Vec<Stmt> {
    match &f.body {
        Stmt::Seq(items) => items.clone(),
        s => vec![s.clone()],
    }
}

/// Wraps a body in serial loops, outermost first.
pub fn nest(loops: impl DoubleEndedIterator<Item = (Name, i64)>, body: Stmt) -> Stmt {
    loops.rev().fold(body, |body, (var, extent)| {
        Stmt::For(For { var, extent, kind: crate::tir::LoopKind::Serial, body: Box::new(body) })
    })
}

/// Replaces variables by expressions in every block, and simplifies within `bounds`.
///
/// `reduce` returns the replacements of a variable in lists of reduction loops.
pub fn substitute(
    s: &mut Stmt,
    map: &dyn Fn(&Name) -> Option<Expr>,
    reduce: &dyn Fn(&Name) -> Option<Vec<Name>>,
    bounds: &Bounds,
) {
    s.each_block_mut(&mut |b| {
        let mut list = Vec::new();
        for r in &b.reduce {
            match reduce(r) {
                Some(new) => list.extend(new.into_iter().filter(|n| !list.contains(n)).collect::<Vec<_>>()),
                None => list.push(r.clone()),
            }
        }
        b.reduce = list;
        b.each_expr_mut(&mut |e| *e = simplify(&e.substitute(map), bounds));
    });
}

/// Returns `first` and all loops that are the whole body of the previous one, and the innermost body.
pub fn chain(first: &For) -> (Vec<&For>, &Stmt) {
    let mut loops = vec![first];
    let mut at = first;
    while let Stmt::For(l) = &*at.body {
        loops.push(l);
        at = l;
    }
    (loops, &at.body)
}

/// Returns the blocks within a statement.
pub fn blocks(s: &Stmt) -> Vec<&Block> {
    let mut list = Vec::new();
    s.visit_blocks(&mut |_, b| list.push(b));
    list
}

/// Returns whether the statement contains the block.
pub fn holds_block(s: &Stmt, name: &Name) -> bool {
    s.find_block(name).is_some()
}

/// Merges nested sequences.
pub fn flatten(s: &mut Stmt) {
    match s {
        Stmt::Seq(items) => {
            items.iter_mut().for_each(flatten);
            *s = seq(std::mem::take(items));
        }
        Stmt::For(l) => flatten(&mut l.body),
        Stmt::Block(_) => {}
    }
}
