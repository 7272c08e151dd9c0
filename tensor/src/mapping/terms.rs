//! Terms of reductions that count only under a condition.

use super::reuse::writes;
use crate::schedule::bounds;
use crate::te::{BinOp, Combiner, DType, Expr};
use crate::tir::{Action, Block, Function, affine::interval, simplify};

/// Whether no block before it adds to the sum that a block adds to.
fn begins(f: &Function, block: &Block) -> bool {
    let Some(sum) = block.target() else { return false };
    let mut first = None;
    f.body.visit_blocks(&mut |_, other| {
        let starts = matches!(&other.action, Action::Store { value: Expr::Int(..), .. });
        if first.is_none() && writes(other, sum) && !starts {
            first = Some(other.name.clone());
        }
    });
    first.as_ref() == Some(&block.name)
}

/// Returns a block that adds `select(CONDITION, TERM, 0)` as one that adds the term where the condition holds, and so for
/// a maximum or minimum with its identity; `None` if it joins no such term.
///
/// # Errors
/// The sum starts from a constant, and its first term does not always count. The first product of a sum overwrites, so it
/// cannot be left out.
pub fn guarded(f: &Function, block: &Block) -> Result<Option<Block>, String> {
    let Action::Store { buffer, indices, value } = &block.action else { return Ok(None) };
    let Expr::Binary(op, sum, term) = value else { return Ok(None) };
    let Expr::Select(condition, term, other) = term.as_ref() else { return Ok(None) };
    let combiner = match op {
        BinOp::Add => Combiner::Sum,
        BinOp::Max => Combiner::Max,
        BinOp::Min => Combiner::Min,
        _ => return Ok(None),
    };
    let own = matches!(sum.as_ref(), Expr::Load { buffer: from, indices: at, .. } if from == buffer && at == indices);
    if !own || **other != combiner.identity(DType::I32) {
        return Ok(None);
    }
    let conditions = condition.conjuncts();
    let mut constant = matches!(block.init, Some(Expr::Int(..)));
    f.body.visit_blocks(&mut |_, other| {
        let starts = |value: &Expr| matches!(value, Expr::Int(..));
        constant |= matches!(&other.action, Action::Store { buffer: to, value, .. } if to == buffer && starts(value));
    });
    let ranges = bounds(f);
    let first = |v: &crate::te::Name| block.reduce.contains(v).then(|| Expr::int(0));
    let always = |e: &&Expr| interval(&simplify(&e.substitute(&first), &ranges), &ranges) == Some((1, 1));
    if constant
        && begins(f, block)
        && let Some(e) = conditions.iter().find(|e| !always(e))
    {
        return Err(format!(
            "the sum {buffer} starts from a constant, and its first term counts only if {e}; let the sum start with a term \
             that always counts"
        ));
    }
    let action = Action::Store {
        buffer: buffer.clone(),
        indices: indices.clone(),
        value: Expr::Binary(*op, sum.clone(), term.clone()),
    };
    let guards = block.guards.iter().cloned().chain(conditions.into_iter().cloned()).collect();
    Ok(Some(Block { guards, action, ..block.clone() }))
}
