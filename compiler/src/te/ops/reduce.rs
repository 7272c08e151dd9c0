//! `reduce` and `arg_reduce`: reductions over dimensions.

use crate::graph::op::{ArgReduce, Reduce, ReduceKind};
use crate::te::{BinOp, Builder, Combiner, Expr, TensorRef};

/// Returns the data's index for an index of the result and one of the reduction.
fn place(rank: usize, axes: &[usize], keep_dims: bool, i: &[Expr], k: &[Expr]) -> Vec<Expr> {
    let mut kept = i.iter();
    let mut reduced = k.iter();
    let next = |a: usize| {
        if !axes.contains(&a) {
            return kept.next().cloned();
        }
        if keep_dims {
            kept.next();
        }
        reduced.next().cloned()
    };
    (0..rank).filter_map(next).collect()
}

/// Appends the sum, mean or extreme over some dimensions.
pub fn reduce(b: &mut Builder, op: &Reduce, x: &TensorRef, out: &[i64]) -> TensorRef {
    let names: Vec<String> = op.axes.iter().map(|a| format!("k{a}")).collect();
    let over: Vec<(&str, i64)> = op.axes.iter().zip(&names).map(|(&a, n)| (n.as_str(), x.shape[a])).collect();
    let combiner = match op.kind {
        ReduceKind::Sum | ReduceKind::Mean => Combiner::Sum,
        ReduceKind::Max => Combiner::Max,
        ReduceKind::Min => Combiner::Min,
    };
    let found = b.reduce("reduce", x.dtype, out, &over, combiner, |i, k| {
        x.at(&place(x.shape.len(), &op.axes, op.keep_dims, i, k))
    });
    if op.kind != ReduceKind::Mean {
        return found;
    }
    let count: i64 = over.iter().map(|o| o.1).product();
    b.compute("mean", out, |i| found.at(i) / Expr::number(count as f64, x.dtype))
}

/// Appends the index of the extreme: finds the extreme first, then its least or greatest index.
pub fn arg_reduce(b: &mut Builder, op: &ArgReduce, x: &TensorRef, out: &[i64]) -> TensorRef {
    let n = x.shape[op.axis];
    let at = |i: &[Expr], k: &[Expr]| place(x.shape.len(), &[op.axis], op.keep_dims, i, k);
    let extreme = if op.greatest { Combiner::Max } else { Combiner::Min };
    let best = b.reduce("best", x.dtype, out, &[("k", n)], extreme, |i, k| x.at(&at(i, k)));
    let (which, none) = if op.last { (Combiner::Max, 0) } else { (Combiner::Min, n - 1) };
    b.reduce("arg_reduce", op.dtype, out, &[("k", n)], which, |i, k| {
        let element = x.at(&at(i, k));
        let found = element.clone().equals(best.at(i));
        // If there is a NaN, the extreme is NaN, which equals nothing.
        let found = if x.dtype.is_float() {
            Expr::binary(BinOp::Or, found, Expr::binary(BinOp::Ne, element.clone(), element))
        } else {
            found
        };
        found.select(k[0].clone(), Expr::int(none)).cast(op.dtype)
    })
}
