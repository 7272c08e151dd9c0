//! `reorder`: changes the order of loops in a nest.

use super::access::{accesses, accesses_in, injective, private};
use super::error::{Reason, refuse};
use super::tree::{blocks, bounds, chain, find_loop, replace_loop};
use crate::te::{BinOp, Expr, Name};
use crate::tir::{Action, Affine, Block, For, Function, LoopKind, Stmt};

/// Reorders the named loops. Together they keep the places that they occupy in the nest.
///
/// The nest must be perfect from the outermost to the innermost of them. Iterations must commute: a block writes
/// different elements in each iteration of the loops, or it reduces over them.
pub fn reorder(f: &mut Function, order: &[Name]) -> Result<Vec<Name>, Reason> {
    for (i, v) in order.iter().enumerate() {
        find_loop(f, v)?;
        if order[..i].contains(v) {
            refuse!("loop {v} is given twice");
        }
    }
    // The outermost loop is the one whose chain contains all others.
    let Some(first) = order.iter().find_map(|v| {
        let l = f.body.find_loop(v)?;
        let loops = chain(l).0;
        order.iter().all(|w| loops.iter().any(|l| &l.var == w)).then_some(l)
    }) else {
        refuse!("the loops do not form a perfect nest")
    };
    let (loops, _) = chain(first);
    let last = loops.iter().rposition(|l| order.contains(&l.var)).unwrap_or(0);
    let region: Vec<For> = loops[..=last].iter().map(|l| (*l).clone()).collect();
    let body = (*region[last].body).clone();
    commute(f, &region, &body)?;
    let outer = first.var.clone();
    let mut wanted = order.iter();
    let mut places: Vec<(Name, i64, LoopKind)> = Vec::new();
    for l in &region {
        let source = if order.contains(&l.var) {
            let v = wanted.next().unwrap_or(&l.var);
            region.iter().find(|r| &r.var == v).unwrap_or(l)
        } else {
            l
        };
        places.push((source.var.clone(), source.extent, source.kind));
    }
    if let Some((v, _, kind)) = places[..places.len() - 1].iter().find(|p| p.2 == LoopKind::Vectorized) {
        refuse!("loop {v} is {} and must stay innermost", kind.name());
    }
    let tree = std::mem::replace(&mut f.body, Stmt::Seq(Vec::new()));
    f.body = replace_loop(tree, &outer, &mut |_| {
        let nest = places.iter().rev().fold(body.clone(), |body, (var, extent, kind)| {
            Stmt::For(For { var: var.clone(), extent: *extent, kind: *kind, body: Box::new(body) })
        });
        Ok(nest)
    })?;
    Ok(Vec::new())
}

/// Fails if the iterations of the loops must keep their order.
pub fn commute(f: &Function, loops: &[For], body: &Stmt) -> Result<(), Reason> {
    let ranges = bounds(f);
    let vars: Vec<Name> = loops.iter().map(|l| l.var.clone()).collect();
    let list = blocks(body);
    let all = accesses_in(f, body);
    for b in &list {
        let over = b.reduce.iter().find(|r| vars.contains(r));
        if let Some(r) = over
            && list.len() > 1
        {
            refuse!("block {} reduces over {r}, but is not the only block in the loops", b.name);
        }
        let spatial: Vec<Name> = vars.iter().filter(|v| !b.reduce.contains(v)).cloned().collect();
        for a in accesses(f, b).iter().filter(|a| a.writes) {
            if private(f, body, &a.buffer, &ranges) {
                continue;
            }
            let reads: Vec<_> = all.iter().filter(|o| o.buffer == a.buffer && o.reads).collect();
            if reads.iter().any(|r| r.block != b.name || r.indices != a.indices) {
                refuse!("block {} writes elements of {} that other iterations can read", b.name, a.buffer);
            }
            if over.is_some() && !is_update(f, b) {
                refuse!("block {} combines values in a way that depends on their order", b.name);
            }
            if injective(&a.indices, &spatial, &a.dims, &ranges) {
                continue;
            }
            // Writing an element again is harmless if its value is the same and is not accumulated.
            let again = list.len() == 1 && reads.is_empty() && same_value(b, &a.indices, &vars);
            if !again {
                refuse!("block {} writes the same element of {} in several iterations", b.name, a.buffer);
            }
        }
    }
    Ok(())
}

/// Returns whether the block's value depends on the variables only through the indices of the written element.
fn same_value(b: &Block, indices: &[Expr], vars: &[Name]) -> bool {
    let Action::Store { value, .. } = &b.action else { return false };
    let Some(written) = indices.iter().map(Affine::of).collect::<Option<Vec<_>>>() else { return false };
    let parts: Vec<Affine> = written.iter().map(|a| a.partition(|v| vars.contains(v)).0).collect();
    let determined = |e: &Expr| {
        let Some(mut sum) = Affine::of(e).map(|a| a.partition(|v| vars.contains(v)).0) else { return false };
        for p in &parts {
            if let Some((v, c)) = p.terms.iter().next()
                && sum.coefficient(v) % c == 0
            {
                let times = sum.coefficient(v) / c;
                sum = sum.plus(p, -times);
            }
        }
        sum.terms.is_empty()
    };
    fn holds(e: &Expr, determined: &dyn Fn(&Expr) -> bool) -> bool {
        if e.dtype() == crate::te::DType::I64 && Affine::of(e).is_some() {
            return determined(e);
        }
        match e {
            Expr::Int(..) | Expr::Float(..) => true,
            Expr::Var(_) => determined(e),
            Expr::Load { indices: list, .. } | Expr::Call(_, list) => list.iter().all(|e| holds(e, determined)),
            Expr::Binary(_, x, y) => holds(x, determined) && holds(y, determined),
            Expr::Select(c, x, y) => holds(c, determined) && holds(x, determined) && holds(y, determined),
            Expr::Cast(_, x) | Expr::Bitcast(_, x) | Expr::Pick(_, x) => holds(x, determined),
        }
    }
    holds(value, &determined) && b.guards.iter().all(|g| holds(g, &determined))
}

/// Returns whether the block combines the old element with a new value by an operation whose order does not matter.
pub fn is_update(f: &Function, b: &Block) -> bool {
    let update = |b: &Block| {
        let Action::Store { buffer, indices, value } = &b.action else { return false };
        let Expr::Binary(BinOp::Add | BinOp::Mul | BinOp::Min | BinOp::Max, old, new) = value else { return false };
        let is_old = matches!(&**old, Expr::Load { buffer: o, indices: i, .. } if o == buffer && i == indices);
        let mut reads = false;
        new.visit(&mut |e| reads |= matches!(e, Expr::Load { buffer: o, .. } if o == buffer));
        is_old && !reads
    };
    match &b.action {
        Action::Store { .. } => update(b),
        Action::Call { intrinsic, .. } => {
            f.intrinsic(intrinsic).is_some_and(|i| blocks(&i.body).into_iter().all(update))
        }
    }
}
