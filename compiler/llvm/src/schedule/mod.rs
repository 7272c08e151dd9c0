//! The default schedule of CPU code.
//!
//! - Element-wise stages are computed where they are read.
//! - Products with packed weights stay in registers ([`product`]).
//! - Other sums are initialized outside their loops.
//! - The innermost loop walks along memory.
//! - Large nests run in parallel.
//!
//! Steps that do not apply to a program are skipped.

pub mod dot;
mod product;
mod space;
mod tile;

use tilewright_compiler::cost::PARALLEL_WORK;
use tilewright_compiler::schedule::Schedule;
use tilewright_compiler::te::{Expr, Name};
use tilewright_compiler::tir::{Action, Affine, Block, Function, LoopKind};

pub use tile::{Outer, ProductKind, Tile, TileSpace};

/// Schedules a function for the CPU. `tile` is the tile of its product if the weights are packed. Every step is
/// optional: a step that is rejected leaves the function unchanged.
pub fn schedule(f: Function, tile: Option<&Tile>) -> Function {
    scheduled(f, tile).into_function()
}

/// Returns the schedule whose result is that of [`schedule`].
pub(crate) fn scheduled(f: Function, tile: Option<&Tile>) -> Schedule {
    let fours = tile.and_then(|tile| match tile.kind {
        ProductKind::Fours { signed } => Some(dot::intrinsic(tile.lanes, signed)),
        ProductKind::Plain | ProductKind::Window => None,
    });
    let mut s = Schedule::with_intrinsics(f, fours.as_slice());
    inline_elementwise(&mut s);
    if let Some(tile) = tile {
        let mut tiled = s.clone();
        if product::tile(&mut tiled, tile).is_ok() {
            s = tiled;
        }
    }
    let blocks: Vec<Name> = names(s.function());
    for b in &blocks {
        order_loops(&mut s, b);
        begin_apart(&mut s, b);
        spread(&mut s, b);
    }
    s
}

fn names(f: &Function) -> Vec<Name> {
    let mut list = Vec::new();
    f.body.visit_blocks(&mut |_, b| list.push(b.name.clone()));
    list
}

/// Returns the loops around a block with their extents, and the loops that it reduces over.
fn nest(f: &Function, block: &Name) -> (Vec<(Name, i64)>, Vec<Name>) {
    let mut found = (Vec::new(), Vec::new());
    f.body.visit_blocks(&mut |loops, b| {
        if &b.name == block {
            found = (loops.iter().map(|l| (l.var.clone(), l.extent)).collect(), b.reduce.clone());
        }
    });
    found
}

/// Returns the blocks other than `own` that read a buffer, once for each read.
fn readers<'f>(f: &'f Function, own: &Name, buffer: &Name) -> Vec<&'f Block> {
    let mut list = Vec::new();
    f.body.visit_blocks(&mut |_, b| {
        b.each_expr(&mut |e| {
            e.visit(&mut |e| {
                if matches!(e, Expr::Load { buffer: read, .. } if read == buffer) && &b.name != own {
                    list.push(b);
                }
            });
        });
    });
    list
}

/// Computes a stage where it is read, if that is a single place in a stage without a sum.
fn inline_elementwise(s: &mut Schedule) {
    for name in names(s.function()) {
        if matches!(readers(s.function(), &name, &name)[..], [reader] if reader.init.is_none()) {
            // Rejected if it is not an element-wise stage.
            let _ = s.compute_inline(name.as_str());
        }
    }
}

/// Returns the memory stride of each access in the block between neighboring iterations of a loop. `None` if one is not
/// affine.
fn strides(f: &Function, block: &Name, var: &Name) -> Option<Vec<i64>> {
    let b = f.body.find_block(block)?;
    let mut list = Some(Vec::new());
    let mut add = |buffer: &Name, indices: &[Expr]| {
        let stride = || {
            let shape = &f.buffer(buffer)?.shape;
            let (mut step, mut sum) = (1, 0);
            for (e, n) in indices.iter().zip(shape).rev() {
                sum += Affine::of(e)?.coefficient(var) * step;
                step *= n;
            }
            Some(sum)
        };
        match (stride(), &mut list) {
            (Some(n), Some(l)) => l.push(n),
            _ => list = None,
        }
    };
    if let Action::Store { buffer, indices, value } = &b.action {
        add(buffer, indices);
        value.visit(&mut |e| {
            if let Expr::Load { buffer, indices, .. } = e {
                add(buffer, indices);
            }
        });
    }
    list
}

/// Moves a loop innermost along which a sum's operands are contiguous in memory.
fn order_loops(s: &mut Schedule, block: &Name) {
    let (loops, reduce) = nest(s.function(), block);
    if reduce.is_empty() {
        return;
    }
    let cost = |s: &Schedule, v: &Name, n: i64| -> i64 {
        let Some(list) = strides(s.function(), block, v) else { return i64::MAX };
        // Short loops do not fill a vector. For other loops, each strided access costs.
        let jumps = list.iter().filter(|s| s.abs() > 1).count() as i64;
        jumps * 4 + if n < 8 { 6 } else { 0 } + !reduce.contains(v) as i64
    };
    let best = loops.iter().min_by_key(|(v, n)| cost(s, v, *n)).map(|l| l.0.clone());
    let Some(best) = best else { return };
    if reduce.contains(&best) {
        let mut order: Vec<&str> = reduce.iter().filter(|r| **r != best).map(Name::as_str).collect();
        order.push(best.as_str());
        let _ = s.reorder(&order);
    } else {
        // The best loop is along a dimension of the result, so the sum's loops go around it.
        let mut order: Vec<&str> = reduce.iter().map(Name::as_str).collect();
        order.push(best.as_str());
        let _ = s.reorder(&order);
    }
}

/// Moves a sum's initialization in front of the outermost of its loops.
fn begin_apart(s: &mut Schedule, block: &Name) {
    let (loops, reduce) = nest(s.function(), block);
    if let Some((first, _)) = loops.iter().find(|l| reduce.contains(&l.0)) {
        let _ = s.decompose_reduction(block.as_str(), first.as_str());
    }
}

/// Runs the outermost loop with more than one iteration in parallel, if the nest is large.
fn spread(s: &mut Schedule, block: &Name) {
    let (loops, reduce) = nest(s.function(), block);
    let work = loops.iter().fold(1i64, |w, l| w.saturating_mul(l.1));
    if work < PARALLEL_WORK {
        return;
    }
    if let Some((v, _)) = loops.iter().find(|l| l.1 > 1)
        && !reduce.contains(v)
    {
        let _ = s.annotate(v.as_str(), LoopKind::Parallel);
    }
}
