//! Which parts of buffers a block accesses.

use super::digits::determined;
use super::error::{Reason, refuse};
use crate::te::{BinOp, Expr, Name};
use crate::tir::{Action, Affine, Block, Bounds, Function, Stmt, Terms, affine::interval};

/// One access of a block to a buffer.
#[derive(Debug, Clone)]
pub struct Access {
    /// The block.
    pub block: Name,
    /// The buffer.
    pub buffer: Name,
    /// Its indices.
    pub indices: Vec<Expr>,
    /// Variables of the access itself: the dimensions of an intrinsic's argument.
    pub dims: Vec<(Name, i64)>,
    /// Whether it writes.
    pub writes: bool,
    /// Whether it reads.
    pub reads: bool,
}

/// Returns all accesses of a block. A store comes last.
pub fn accesses(f: &Function, b: &Block) -> Vec<Access> {
    let mut list = Vec::new();
    b.each_expr(&mut |e| {
        e.visit(&mut |e| {
            if let Expr::Load { buffer, indices, .. } = e {
                list.push(Access {
                    block: b.name.clone(),
                    buffer: buffer.clone(),
                    indices: indices.clone(),
                    dims: Vec::new(),
                    writes: false,
                    reads: true,
                });
            }
        });
    });
    match &b.action {
        Action::Store { buffer, indices, .. } => list.push(Access {
            block: b.name.clone(),
            buffer: buffer.clone(),
            indices: indices.clone(),
            dims: Vec::new(),
            writes: true,
            reads: false,
        }),
        Action::Call { intrinsic, args } => {
            if let Some(i) = f.intrinsic(intrinsic) {
                let (reads, writes) = (i.reads(), i.writes());
                for (k, (v, p)) in args.iter().zip(&i.params).enumerate() {
                    list.push(Access {
                        block: b.name.clone(),
                        buffer: v.buffer.clone(),
                        indices: v.indices.clone(),
                        dims: v.dims.iter().cloned().zip(p.shape.iter().copied()).collect(),
                        writes: writes[k],
                        reads: reads[k],
                    });
                }
            }
        }
    }
    list
}

/// Returns the accesses of all blocks within a statement, in program order.
pub fn accesses_in(f: &Function, s: &Stmt) -> Vec<Access> {
    let mut list = Vec::new();
    s.visit_blocks(&mut |_, b| list.extend(accesses(f, b)));
    list
}

/// Returns whether a block of the statement accesses the buffer.
pub fn touches(f: &Function, s: &Stmt, buffer: &Name) -> bool {
    accesses_in(f, s).iter().any(|a| &a.buffer == buffer)
}

/// Returns whether different values of `vars` always give different elements. The `free` variables can have any values;
/// all others are the same in both cases.
///
/// Each variable must occur in a dimension whose terms, including those of free variables, are digits of a mixed-radix
/// number, or in indices with divisions that determine it.
pub fn injective(indices: &[Expr], vars: &[Name], free: &[(Name, i64)], bounds: &Bounds) -> bool {
    let extent = |v: &Name| {
        let own = free.iter().find(|f| &f.0 == v).map(|f| f.1);
        own.or_else(|| bounds.get(v).map(|(lo, hi)| hi - lo + 1))
    };
    let mut seen: Vec<Name> = Vec::new();
    for e in indices {
        // A dimension that is not affine can only distinguish more elements.
        let Some(a) = Affine::of(e) else { continue };
        let mut digits: Vec<(&Name, i64)> = a
            .terms
            .iter()
            .filter(|(v, _)| vars.contains(v) || free.iter().any(|f| &f.0 == *v))
            .map(|(v, c)| (v, c.abs()))
            .collect();
        digits.sort_by_key(|d| d.1);
        let mut reach = 0i64;
        let mut good = true;
        for &(v, c) in &digits {
            let Some(n) = extent(v) else { return false };
            // A variable with a single value needs no digit, whatever its factor.
            if n == 1 {
                continue;
            }
            good &= c > reach;
            reach = reach.saturating_add(c.saturating_mul(n - 1));
        }
        if good {
            seen.extend(digits.iter().map(|d| d.0.clone()));
        }
    }
    let all = |seen: &[Name]| vars.iter().all(|v| seen.contains(v) || extent(v) == Some(1));
    if !all(&seen) && indices.iter().any(|e| Affine::of(e).is_none()) {
        seen.extend(determined(indices, &extent));
    }
    all(&seen)
}

/// A box of a buffer: for each dimension its start, over outer variables, and its extent.
pub type BufferBox = Vec<(Expr, i64)>;

/// Returns the box that encloses all elements accessed while the variables of `inner` run and all others are fixed.
///
/// A read can have a part that is not affine, such as a choice, whose range is added. A dimension is taken whole if that
/// range is unknown, if a write is not affine, or if accesses do not start at the same sum of outer variables.
pub fn region(list: &[&Access], inner: &[Name], shape: &[i64], bounds: &Bounds) -> Result<BufferBox, Reason> {
    let mut out = Vec::new();
    for (d, &n) in shape.iter().enumerate() {
        let mut common: Option<Terms> = None;
        let mut range: Option<(i64, i64)> = None;
        let mut whole = false;
        for a in list {
            let Some(e) = a.indices.get(d) else { refuse!("{} has a different number of dimensions", a.buffer) };
            let affine = Affine::of(e).map(|sum| (sum, (0, 0)));
            let Some((sum, (least, most))) = affine.or_else(|| if a.writes { None } else { ranged(e, bounds) }) else {
                whole = true;
                break;
            };
            let mut within = bounds.clone();
            within.extend(a.dims.iter().map(|(v, n)| (v.clone(), (0, n - 1))));
            let is_inner = |v: &Name| inner.contains(v) || a.dims.iter().any(|d| &d.0 == v);
            let (running, standing) = sum.partition(is_inner);
            let Some((lo, hi)) = interval(&running.to_expr(), &within) else { refuse!("the range of {e} is unknown") };
            let (lo, hi) = (lo + least + standing.constant, hi + most + standing.constant);
            match &common {
                Some(c) if *c != standing.terms => {
                    whole = true;
                    break;
                }
                _ => common = Some(standing.terms),
            }
            range = Some(range.map_or((lo, hi), |(l, h)| (l.min(lo), h.max(hi))));
        }
        match (whole, common, range) {
            (false, Some(terms), Some((lo, hi))) if hi - lo + 1 < n || (terms.is_empty() && lo == 0 && hi < n) => {
                let extent = hi - lo + 1;
                out.push((Affine { constant: lo, terms }.to_expr(), extent));
            }
            _ => out.push((Expr::int(0), n)),
        }
    }
    Ok(out)
}

/// Returns an index as an affine sum and the range of the rest; `None` if that is unknown.
fn ranged(e: &Expr, bounds: &Bounds) -> Option<(Affine, (i64, i64))> {
    if let Some(sum) = Affine::of(e) {
        return Some((sum, (0, 0)));
    }
    match e {
        Expr::Binary(BinOp::Add, a, b) => {
            let ((a, (la, ha)), (b, (lb, hb))) = (ranged(a, bounds)?, ranged(b, bounds)?);
            Some((a.plus(&b, 1), (la.checked_add(lb)?, ha.checked_add(hb)?)))
        }
        _ => Some((Affine::default(), interval(e, bounds)?)),
    }
}

/// Returns whether a local buffer carries nothing from one run of the statement to the next: it is used nowhere else,
/// its first use is a write, and the elements written cover those read.
pub fn private(f: &Function, s: &Stmt, buffer: &Name, bounds: &Bounds) -> bool {
    let Some(b) = f.locals.iter().find(|l| &l.name == buffer) else { return false };
    let inside: Vec<Access> = accesses_in(f, s).into_iter().filter(|a| &a.buffer == buffer).collect();
    let everywhere = accesses_in(f, &f.body).iter().filter(|a| &a.buffer == buffer).count();
    if inside.len() != everywhere {
        return false;
    }
    // A reduction reads its own target, but it starts with `init`.
    let begins = inside.first().is_some_and(|a| {
        let block = s.find_block(&a.block);
        let owns = inside.iter().any(|o| o.block == a.block && o.writes);
        let starts = block.is_some_and(|b| b.init.is_some()) || (a.writes && !a.reads);
        owns && starts
    });
    let mut inner: Vec<Name> = Vec::new();
    s.visit_loops(&mut |l| inner.push(l.var.clone()));
    let of =
        |writes: bool| -> Vec<&Access> { inside.iter().filter(|a| if writes { a.writes } else { a.reads }).collect() };
    let (Ok(written), Ok(read)) =
        (region(&of(true), &inner, &b.shape, bounds), region(&of(false), &inner, &b.shape, bounds))
    else {
        return false;
    };
    let covers = written.iter().zip(&read).zip(&b.shape).all(|((w, r), &n)| {
        let whole = *w == (Expr::int(0), n);
        let within = match (Affine::of(&w.0), Affine::of(&r.0)) {
            (Some(a), Some(c)) => {
                let behind = c.plus(&a, -1);
                behind.as_constant().is_some_and(|d| d >= 0 && d + r.1 <= w.1)
            }
            _ => false,
        };
        whole || within
    });
    begins && (covers || of(false).is_empty())
}
