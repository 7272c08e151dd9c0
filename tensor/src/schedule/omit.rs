//! `omit`: leaves out elements that no output depends on.

use super::error::{Reason, refuse};
use super::linear::in_sums;
use super::tree::{bounds, find_block};
use crate::te::{BinOp, Expr, Name};
use crate::tir::{Action, Block, Bounds, Function, affine::interval, simplify};

/// Makes a block that stores `select(CONDITION, VALUE, CONSTANT)` leave out elements where a part of the condition does
/// not hold, if no output depends on these elements. So they get no padding. Nothing changes if outputs depend on all.
pub fn omit(f: &mut Function, name: &Name) -> Result<Vec<Name>, Reason> {
    let (_, block) = find_block(f, name)?;
    let Action::Store { buffer, value, .. } = &block.action else { refuse!("block {name} calls an intrinsic") };
    let Expr::Select(condition, element, constant) = value else {
        refuse!("block {name} computes {value}, not select(CONDITION, VALUE, CONSTANT)")
    };
    let Some(dims) = dimensions(&block) else {
        refuse!("block {name} does not store with one loop for each dimension; omit before other steps")
    };
    let ranges = bounds(f);
    let is_unread = |part: &&Expr| over(part, &dims).is_some_and(|part| unread(f, buffer, &part, &ranges));
    let (left_out, kept): (Vec<&Expr>, Vec<&Expr>) = condition.conjuncts().into_iter().partition(is_unread);
    let left_out: Vec<Expr> = left_out.into_iter().cloned().collect();
    let kept = kept.into_iter().cloned().reduce(Expr::and);
    let value = kept.map_or((**element).clone(), |kept| kept.select((**element).clone(), (**constant).clone()));
    f.body.each_block_mut(&mut |b| {
        if b.name == *name
            && let Action::Store { value: old, .. } = &mut b.action
        {
            *old = value.clone();
            b.guards.extend(left_out.iter().cloned());
        }
    });
    Ok(Vec::new())
}

/// Stands for the index of a dimension.
fn index(dim: usize) -> Name {
    format!("@{dim}").into()
}

/// Returns the loop of each dimension of what a block stores; `None` if an index is no loop of its own.
fn dimensions(block: &Block) -> Option<Vec<Name>> {
    let Action::Store { indices, .. } = &block.action else { return None };
    let mut dims: Vec<Name> = Vec::new();
    for index in indices {
        match index {
            Expr::Var(v) if !dims.contains(v) && !block.reduce.contains(v) => dims.push(v.clone()),
            // A dimension of one element.
            Expr::Int(0, _) => dims.push(format!("@none{}", dims.len()).into()),
            _ => return None,
        }
    }
    Some(dims)
}

/// Returns a condition over loops as one over the dimensions that they are; `None` if it has other loops.
fn over(condition: &Expr, dims: &[Name]) -> Option<Expr> {
    let mut known = true;
    condition.visit(&mut |e| {
        known &= !matches!(e, Expr::Var(v) if !dims.contains(v)) && !matches!(e, Expr::Load { .. });
    });
    known.then(|| condition.substitute(&|v| dims.iter().position(|d| d == v).map(|d| Expr::Var(index(d)))))
}

/// Whether no output depends on the elements of a buffer where a condition over its dimensions does not hold.
fn unread(f: &Function, buffer: &Name, condition: &Expr, ranges: &Bounds) -> bool {
    if f.output_buffers().iter().any(|b| b.name == *buffer) {
        return false;
    }
    let mut all = true;
    f.body.visit_blocks(&mut |_, block| all &= unread_by(f, block, buffer, condition, ranges));
    all
}

/// A read of a buffer, and the conditions under which a value has it.
struct Read {
    indices: Vec<Expr>,
    conditions: Vec<Expr>,
}

/// Adds the reads of a buffer in an expression. `conditions` are those of the choices around it.
fn reads_of(e: &Expr, buffer: &Name, conditions: &mut Vec<Expr>, reads: &mut Vec<Read>) {
    match e {
        Expr::Select(condition, yes, no) => {
            reads_of(condition, buffer, conditions, reads);
            let before = conditions.len();
            conditions.extend(condition.conjuncts().into_iter().cloned());
            reads_of(yes, buffer, conditions, reads);
            conditions.truncate(before);
            reads_of(no, buffer, conditions, reads);
        }
        Expr::Load { buffer: from, indices, .. } => {
            if from == buffer {
                reads.push(Read { indices: indices.clone(), conditions: conditions.clone() });
            }
            indices.iter().for_each(|e| reads_of(e, buffer, conditions, reads));
        }
        Expr::Call(_, list) => list.iter().for_each(|e| reads_of(e, buffer, conditions, reads)),
        Expr::Binary(_, a, b) => {
            reads_of(a, buffer, conditions, reads);
            reads_of(b, buffer, conditions, reads);
        }
        Expr::Cast(_, a) | Expr::Bitcast(_, a) | Expr::Pick(_, a) => reads_of(a, buffer, conditions, reads),
        Expr::Int(..) | Expr::Float(..) | Expr::Var(_) => {}
    }
}

/// Whether a block does not read the elements, or what it computes of them is not read.
fn unread_by(f: &Function, block: &Block, buffer: &Name, condition: &Expr, ranges: &Bounds) -> bool {
    let mut reads: Vec<Read> = Vec::new();
    block.each_expr(&mut |e| reads_of(e, buffer, &mut Vec::new(), &mut reads));
    let (to, own) = match &block.action {
        Action::Store { buffer: to, indices, .. } => (to, indices),
        Action::Call { args, .. } => return args.iter().all(|view| view.buffer != *buffer),
    };
    reads.iter().all(|Read { indices, conditions }| {
        if to == buffer && indices == own {
            // A reduction adds to its own element.
            return true;
        }
        let at = |v: &Name| (0..indices.len()).find(|&d| *v == index(d)).map(|d| indices[d].clone());
        let holds = in_sums(&simplify(&condition.substitute(&at), ranges), ranges);
        if interval(&holds, ranges) == Some((1, 1)) {
            return true;
        }
        // It is read only where the condition holds.
        if conditions.iter().any(|known| in_sums(&simplify(known, ranges), ranges) == holds) {
            return true;
        }
        // What a block computes of an element is not read either.
        let is_unread = |holds: &Expr| {
            let condition = dimensions(block).and_then(|dims| over(holds, &dims));
            condition.is_some_and(|condition| unread(f, to, &condition, ranges))
        };
        to != buffer && always(&holds, &block.reduce, ranges).is_some_and(|list| list.iter().all(is_unread))
    })
}

/// Whether an expression is linear in each loop that `uses` finds, for any values of the others.
fn is_linear(e: &Expr, uses: &dyn Fn(&Expr) -> bool) -> bool {
    match e {
        _ if !uses(e) => true,
        Expr::Var(_) => true,
        Expr::Binary(BinOp::Add | BinOp::Sub, a, b) => is_linear(a, uses) && is_linear(b, uses),
        Expr::Binary(BinOp::Mul, a, b) => !(uses(a) && uses(b)) && is_linear(a, uses) && is_linear(b, uses),
        _ => false,
    }
}

/// Returns conditions that hold where a condition holds for all iterations of loops: at the first and at the last one, if
/// the condition is linear in the loops; `None` if it is not.
fn always(condition: &Expr, loops: &[Name], ranges: &Bounds) -> Option<Vec<Expr>> {
    let uses = |e: &Expr| loops.iter().any(|l| e.uses(l));
    if !uses(condition) {
        return Some(vec![condition.clone()]);
    }
    let Expr::Binary(BinOp::Lt | BinOp::Le, a, b) = condition else { return None };
    if !(is_linear(a, &uses) && is_linear(b, &uses)) {
        return None;
    }
    let l = loops.iter().find(|l| condition.uses(l))?;
    let (first, last) = *ranges.get(l)?;
    let ends = [first, last].map(|end| {
        let at = condition.substitute(&|v| (v == l).then(|| Expr::int(end)));
        always(&in_sums(&at, ranges), loops, ranges)
    });
    let [first, last] = ends;
    Some([first?, last?].concat())
}
