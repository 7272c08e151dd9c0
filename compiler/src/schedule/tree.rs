//! Finding and replacing parts of a statement tree.

use super::error::{Reason, refuse};
use crate::te::{Expr, Name};
use crate::tir::{Block, Bounds, For, Function, Stmt, simplify};

/// The range of every loop variable of a function.
pub fn bounds(f: &Function) -> Bounds {
    let mut b = Bounds::new();
    f.body.visit_loops(&mut |l| {
        b.insert(l.var.clone(), (0, l.extent - 1));
    });
    b
}

/// A name that no variable, buffer or block of the function has: the one given, or with underscores behind it.
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

/// The loop of a variable.
pub fn find_loop<'a>(f: &'a Function, var: &Name) -> Result<&'a For, Reason> {
    match f.body.find_loop(var) {
        Some(l) => Ok(l),
        None => refuse!("there is no loop {var}"),
    }
}

/// A block and the variables of the loops around it, outermost first.
pub fn find_block(f: &Function, name: &Name) -> Result<(Vec<Name>, Block), Reason> {
    let mut found = None;
    f.body.visit_blocks(&mut |loops, b| {
        if &b.name == name {
            found = Some((loops.iter().map(|l| l.var.clone()).collect(), b.clone()));
        }
    });
    match found {
        Some(x) => Ok(x),
        None => refuse!("there is no block {name}"),
    }
}

/// Replaces the loop of a variable by what `make` gives for it.
pub fn replace_loop(s: Stmt, var: &Name, make: &mut dyn FnMut(For) -> Result<Stmt, Reason>) -> Result<Stmt, Reason> {
    Ok(match s {
        Stmt::Seq(items) => Stmt::Seq(items.into_iter().map(|s| replace_loop(s, var, make)).collect::<Result<_, _>>()?),
        Stmt::For(l) if &l.var == var => make(l)?,
        Stmt::For(l) => Stmt::For(For { body: Box::new(replace_loop(*l.body, var, make)?), ..l }),
        Stmt::Block(b) => Stmt::Block(b),
    })
}

/// Replaces a block by what `make` gives for it, `None` to remove it together with the loops that are then empty.
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

/// Statements one after the other; nested sequences are flattened and a single one stands for itself.
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

/// The statements of the function's body, one after the other.
pub fn top(f: &Function) -> Vec<Stmt> {
    match &f.body {
        Stmt::Seq(items) => items.clone(),
        s => vec![s.clone()],
    }
}

/// Loops around a body, outermost first.
pub fn nest(loops: impl DoubleEndedIterator<Item = (Name, i64)>, body: Stmt) -> Stmt {
    loops.rev().fold(body, |body, (var, extent)| {
        Stmt::For(For { var, extent, kind: crate::tir::LoopKind::Serial, body: Box::new(body) })
    })
}

/// Puts expressions in place of variables in every block, and simplifies under the ranges given.
///
/// `reduce` says what stands for a variable in lists of reduction loops.
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

/// The chain of loops in which each is all of the body of the one before, from `first` on, and what is innermost.
pub fn chain(first: &For) -> (Vec<&For>, &Stmt) {
    let mut loops = vec![first];
    let mut at = first;
    while let Stmt::For(l) = &*at.body {
        loops.push(l);
        at = l;
    }
    (loops, &at.body)
}

/// Blocks within a statement.
pub fn blocks(s: &Stmt) -> Vec<&Block> {
    let mut list = Vec::new();
    s.visit_blocks(&mut |_, b| list.push(b));
    list
}

/// True where the statement holds the block.
pub fn holds_block(s: &Stmt, name: &Name) -> bool {
    s.find_block(name).is_some()
}
