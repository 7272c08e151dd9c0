//! Maps loop programs to a GPU.
//!
//! - A stage is computed where it is read, if that computes nothing twice.
//! - A reduction stays within the thread of the element that uses it.
//! - The remaining loops over results of each nest are fused into one loop over blocks of threads.
//! - Products are tiled in shared memory ([`product`]).
//!
//! A step that is rejected leaves the program unchanged.

mod product;

use tilewright_compiler::schedule::Schedule;
use tilewright_compiler::te::{Expr, Func, Name};
use tilewright_compiler::tir::{Action, Block, For, Function, LoopKind, Scope, Stmt};

pub(crate) use product::tiled;
#[cfg(test)]
pub(crate) use product::try_tiled;

/// Default number of threads in a block.
const THREADS: i64 = 256;

/// Schedules a function with one result element per thread.
pub fn schedule(f: Function) -> Function {
    scheduled(f).into_function()
}

/// Returns the schedule whose result is that of [`schedule`].
pub(crate) fn scheduled(f: Function) -> Schedule {
    let mut s = Schedule::new(f);
    inline(&mut s, true);
    join_reductions(&mut s);
    for block in names(s.function()) {
        bind(&mut s, &block);
    }
    s
}

/// Schedules a function for one thread: only stages are joined.
pub(crate) fn serial(f: Function) -> Schedule {
    let mut s = Schedule::new(f);
    inline(&mut s, true);
    join_reductions(&mut s);
    s
}

/// Returns the names of the blocks in order.
fn names(f: &Function) -> Vec<Name> {
    let mut list = Vec::new();
    f.body.visit_blocks(&mut |_, b| list.push(b.name.clone()));
    list
}

/// Returns the loops around a block, outermost first.
fn loops_of(f: &Function, block: &Name) -> Vec<(Name, i64, LoopKind)> {
    let mut found = Vec::new();
    f.body.visit_blocks(&mut |loops, b| {
        if &b.name == block {
            found = loops.iter().map(|l| (l.var.clone(), l.extent, l.kind)).collect();
        }
    });
    found
}

/// Returns the reads of a buffer in other blocks, with their indices.
fn reads<'f>(f: &'f Function, own: &Name, buffer: &Name) -> Vec<(&'f Block, Vec<Expr>)> {
    let mut list = Vec::new();
    f.body.visit_blocks(&mut |_, b| {
        b.each_expr(&mut |e| {
            e.visit(&mut |e| match e {
                Expr::Load { buffer: read, indices, .. } if read == buffer && &b.name != own => {
                    list.push((b, indices.clone()));
                }
                _ => {}
            });
        });
    });
    list
}

/// Computes stages where they are read, if that is a single place. Inside reductions, this applies only to stages
/// without function calls, if at all.
fn inline(s: &mut Schedule, into_reductions: bool) {
    for name in names(s.function()) {
        let f = s.function();
        let Some(block) = f.body.find_block(&name) else { continue };
        let Some(target) = block.target().cloned() else { continue };
        let [(reader, _)] = &reads(f, &name, &target)[..] else { continue };
        let is_sum = reader.init.is_some() || !reader.reduce.is_empty();
        if !is_sum || into_reductions && !calls(block) {
            // Rejected if it is not an element-wise stage.
            let _ = s.compute_inline(name.as_str());
        }
    }
}

/// Returns whether a block calls a function that takes many instructions.
fn calls(b: &Block) -> bool {
    let mut found = false;
    b.each_expr(&mut |e| {
        e.visit(&mut |e| {
            found |= matches!(e, Expr::Call(f, _) if !matches!(f, Func::Abs | Func::Floor | Func::OffsetClamp))
        });
    });
    found
}

/// Computes each reduction within the innermost loop of the stage that reads it, once per element.
fn join_reductions(s: &mut Schedule) {
    for name in names(s.function()) {
        let f = s.function();
        let Some(block) = f.body.find_block(&name) else { continue };
        let Some(buffer) = block.target().and_then(|t| f.locals.iter().find(|b| &b.name == t)).cloned() else {
            continue;
        };
        if block.reduce.is_empty() || !matches!(block.action, Action::Store { .. }) {
            continue;
        }
        let users = reads(f, &name, &buffer.name);
        let Some((reader, indices)) = users.first() else { continue };
        let loops = loops_of(f, &reader.name);
        let once = users.iter().all(|(b, i)| b.name == reader.name && i == indices)
            && reader.reduce.is_empty()
            && loops.iter().map(|l| l.1).product::<i64>() == buffer.len();
        let Some((inner, ..)) = loops.last().filter(|_| once) else { continue };
        let mut moved = s.clone();
        let done = moved
            .compute_at(name.as_str(), inner.as_str())
            .and_then(|()| moved.compact(buffer.name.as_str()))
            .and_then(|()| moved.set_scope(buffer.name.as_str(), Scope::Local));
        let small = moved.function().buffer(&buffer.name).is_some_and(|b| b.len() == 1);
        if done.is_ok() && small {
            *s = moved;
        }
    }
}

/// Fuses the loops over results around a block's nest into one loop over blocks of threads.
fn bind(s: &mut Schedule, block: &Name) {
    let chain = outer_chain(s.function(), block);
    if chain.iter().any(|l| l.kind != LoopKind::Serial) {
        return;
    }
    let mut free: Vec<Name> = Vec::new();
    for l in &chain {
        if s.annotate(l.var.as_str(), LoopKind::Parallel).is_err() {
            break;
        }
        free.push(l.var.clone());
    }
    let Some(mut all) = free.first().cloned() else { return };
    for next in &free[1..] {
        match s.fuse(all.as_str(), next.as_str()) {
            Ok(name) => all = name,
            Err(_) => break,
        }
    }
    let count = s.function().body.find_loop(&all).map_or(1, |l| l.extent);
    let threads = THREADS.min((count.max(1) as u64).next_power_of_two() as i64);
    if let Ok(parts) = s.split(all.as_str(), &[threads]) {
        let _ = s.bind(parts[0].as_str(), LoopKind::BlockX);
        let _ = s.bind(parts[1].as_str(), LoopKind::ThreadX);
    }
}

/// Returns the directly nested loops, outermost first, of the top-level nest that contains a block.
fn outer_chain(f: &Function, block: &Name) -> Vec<For> {
    let items: Vec<&Stmt> = match &f.body {
        Stmt::Seq(items) => items.iter().collect(),
        one => vec![one],
    };
    let mut chain = Vec::new();
    let mut at = items.into_iter().find(|s| s.find_block(block).is_some());
    while let Some(Stmt::For(l)) = at {
        chain.push(For { body: Box::new(Stmt::Seq(Vec::new())), ..l.clone() });
        at = Some(&l.body);
    }
    chain
}
