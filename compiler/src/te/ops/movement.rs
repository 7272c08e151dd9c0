//! `concat`, `slice`, `gather`, `gather_elements` and `resample`: operators that move elements.

use crate::graph::DType;
use crate::graph::op::{Concat, Gather, GatherElements, Resample, Slice};
use crate::te::{Builder, Combiner, Expr, TensorRef};

/// Most parts of a concatenation that are compared one after the other. Longer lists are halved first, so that an
/// element of thousands of parts needs few comparisons, and the expression is not too deep for code generators.
const MOST_PARTS: usize = 16;

/// Appends the operands one after the other.
pub fn concat(b: &mut Builder, op: &Concat, args: &[TensorRef], out: &[i64]) -> TensorRef {
    b.compute("concat", out, |i| {
        let mut end = 0;
        let mut parts = Vec::new();
        for t in args.iter().filter(|t| t.shape[op.axis] > 0) {
            let mut at = i.to_vec();
            if end > 0 {
                at[op.axis] = at[op.axis].clone() - end;
            }
            end += t.shape[op.axis];
            parts.push((t.at(&at), end));
        }
        // There is no part only if the tensor has no elements.
        part(&i[op.axis], &parts).unwrap_or_else(|| args[0].at(i))
    })
}

/// Selects the value at a position from parts, each with its end.
fn part(at: &Expr, parts: &[(Expr, i64)]) -> Option<Expr> {
    let (first, behind) = parts.split_at(if parts.len() > MOST_PARTS { parts.len() / 2 } else { parts.len().min(1) });
    let (_, end) = first.last()?;
    let value = if let [(value, _)] = first { value.clone() } else { part(at, first)? };
    Some(match part(at, behind) {
        Some(behind) => at.clone().lt(Expr::int(*end)).select(value, behind),
        None => value,
    })
}

/// Appends a slice with steps.
pub fn slice(b: &mut Builder, op: &Slice, x: &TensorRef, out: &[i64]) -> TensorRef {
    b.compute("slice", out, |i| {
        let place = |(d, e): (usize, &Expr)| {
            let scaled = if op.steps[d] == 1 { e.clone() } else { e.clone() * op.steps[d] };
            if op.starts[d] == 0 { scaled } else { scaled + op.starts[d] as i64 }
        };
        let at: Vec<Expr> = i.iter().enumerate().map(place).collect();
        x.at(&at)
    })
}

/// Resolves an index among `n` elements: negative ones count from the end, and the result is clamped to the range.
fn held(index: Expr, n: i64) -> Expr {
    let index = index.cast(DType::I64);
    let from_end = index.clone().lt(Expr::int(0)).select(index.clone() + n, index);
    from_end.max(Expr::int(0)).min(Expr::int(n - 1))
}

/// Appends slices chosen by indices.
pub fn gather(b: &mut Builder, op: &Gather, x: &TensorRef, indices: &TensorRef, out: &[i64]) -> TensorRef {
    b.compute("gather", out, |i| {
        let (axis, rank) = (op.axis, indices.shape.len());
        let mut at = i[..axis].to_vec();
        at.push(held(indices.at(&i[axis..axis + rank]), x.shape[axis]));
        at.extend_from_slice(&i[axis + rank..]);
        x.at(&at)
    })
}

/// Appends elements chosen by indices of the result's shape.
pub fn gather_elements(
    b: &mut Builder,
    op: &GatherElements,
    x: &TensorRef,
    indices: &TensorRef,
    out: &[i64],
) -> TensorRef {
    b.compute("gather_elements", out, |i| {
        let mut at = i.to_vec();
        at[op.axis] = held(indices.at(i), x.shape[op.axis]);
        x.at(&at)
    })
}

/// Appends weighted sums of elements along one dimension. `None` if an operand is missing.
pub fn resample(b: &mut Builder, op: &Resample, args: &[TensorRef], out: &[i64]) -> Option<TensorRef> {
    let [x, index, weight] = args else { return None };
    let taps = index.shape[1];
    let sum = weight.dtype;
    Some(b.reduce("resample", sum, out, &[("t", taps)], Combiner::Sum, |i, k| {
        let row = [i[op.axis].clone(), k[0].clone()];
        let mut at = i.to_vec();
        at[op.axis] = held(index.at(&row), x.shape[op.axis]);
        x.at(&at).cast(sum) * weight.at(&row)
    }))
}
