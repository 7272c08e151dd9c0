//! Local buffers as arrays of each thread.
//!
//! Threads can have a local buffer as private arrays only if every thread uses just the elements that it wrote itself.
//! The thread terms of an index then select the owner of an element, and the rest is the position in the owner's array.

use std::collections::BTreeMap;

use tilewright_compiler::te::{Expr, Name};
use tilewright_compiler::tir::affine::interval;
use tilewright_compiler::tir::{Action, Affine, Bounds, Buffer, For, Stmt};

use crate::EmitError;

/// A local buffer as one thread's array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// Extents of the thread's array.
    pub shape: Vec<i64>,
}

/// Splits an index into the part without thread variables, and the coefficients of thread variables by block dimension.
fn parts(e: &Expr, loops: &[&For]) -> Option<(Affine, BTreeMap<usize, i64>)> {
    let sum = Affine::of(e)?;
    let thread = |v: &Name| loops.iter().find(|l| &l.var == v).and_then(|l| l.kind.thread());
    let (threads, rest) = sum.partition(|v| thread(v).is_some());
    let terms = threads.terms.iter().filter_map(|(v, c)| Some((thread(v)?, c))).collect();
    Some((rest, terms))
}

/// Returns the index within a thread's array.
pub fn inner(e: &Expr, loops: &[&For]) -> Expr {
    match parts(e, loops) {
        Some((rest, terms)) if !terms.is_empty() => rest.to_expr(),
        _ => e.clone(),
    }
}

/// Returns the array that each thread has for a local buffer of the nest.
///
/// # Errors
/// [`EmitError::Bound`] if a thread would read what another thread wrote.
pub fn own(nest: &Stmt, buffer: &Buffer, bounds: &Bounds, block: &[i64; 3]) -> Result<Own, EmitError> {
    let refuse = |why: &str| Err(EmitError::Bound(format!("local buffer {} {why}", buffer.name)));
    let mut uses: Vec<(Vec<Expr>, Vec<For>)> = Vec::new();
    nest.visit_blocks(&mut |loops, b| {
        let mut add = |indices: &[Expr]| uses.push((indices.to_vec(), loops.iter().map(|l| (*l).clone()).collect()));
        if let Action::Store { buffer: to, indices, .. } = &b.action
            && to == &buffer.name
        {
            add(indices);
        }
        b.each_expr(&mut |e| {
            e.visit(&mut |e| {
                if let Expr::Load { buffer: from, indices, .. } = e
                    && from == &buffer.name
                {
                    add(indices);
                }
            });
        });
    });
    let mut shape = Vec::new();
    for (d, &extent) in buffer.shape.iter().enumerate() {
        if extent == 1 {
            shape.push(1);
            continue;
        }
        let mut shared: Option<BTreeMap<usize, i64>> = None;
        let mut reach = 0;
        for (indices, loops) in &uses {
            let loops: Vec<&For> = loops.iter().collect();
            let Some(e) = indices.get(d) else { return refuse("is indexed with a different number of dimensions") };
            let (rest, terms) = parts(e, &loops).unwrap_or_default();
            if Affine::of(e).is_none() && loops.iter().any(|l| l.kind.thread().is_some() && e.uses(&l.var)) {
                return refuse("is indexed by threads in a way that is not affine");
            }
            if shared.as_ref().is_some_and(|t| *t != terms) {
                return refuse("is shared between threads");
            }
            if !terms.is_empty() {
                let Some((lo, hi)) = interval(&rest.to_expr(), bounds) else {
                    return refuse("has an index without known bounds");
                };
                if lo < 0 {
                    return refuse("has an index before a thread's own elements");
                }
                reach = reach.max(hi + 1);
            }
            shared = Some(terms);
        }
        let terms = shared.unwrap_or_default();
        if terms.is_empty() {
            shape.push(extent);
            continue;
        }
        // The index has digits: a thread's own range and the contribution of each block dimension must not overlap.
        let mut digits: Vec<(i64, i64)> = terms.iter().map(|(dim, c)| (*c, block[*dim])).collect();
        digits.sort_unstable();
        if apart(&digits, reach) {
            shape.push(reach);
        } else if let Some(steps) = strided(&digits, &uses, d) {
            shape.push(steps);
        } else {
            return refuse("has elements of different threads that overlap");
        }
    }
    Ok(Own { shape })
}

/// Returns whether each thread owns `reach` consecutive elements.
fn apart(digits: &[(i64, i64)], reach: i64) -> bool {
    let mut taken = reach;
    digits.iter().all(|&(c, n)| {
        let fits = c >= taken;
        taken = c * n;
        fits
    })
}

/// Returns the span of a thread's elements if neighboring elements belong to neighboring threads: one block dimension
/// has coefficient 1, and everything else moves in steps of its size.
fn strided(digits: &[(i64, i64)], uses: &[(Vec<Expr>, Vec<For>)], d: usize) -> Option<i64> {
    let &[(1, n)] = digits else { return None };
    let mut span = 0;
    for (indices, loops) in uses {
        let loops: Vec<&For> = loops.iter().collect();
        let (rest, _) = parts(indices.get(d)?, &loops)?;
        if rest.constant % n != 0 || rest.terms.values().any(|c| c % n != 0 || c < 0) {
            return None;
        }
        let most = rest.terms.iter().map(|(v, c)| {
            let extent = loops.iter().find(|l| &l.var == v).map_or(1, |l| l.extent);
            c * (extent - 1)
        });
        span = span.max(rest.constant + most.sum::<i64>() + 1);
    }
    Some(span)
}
