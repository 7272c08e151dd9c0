//! `decompose_padding`: separates padding from the values that it surrounds.

use super::error::{Reason, refuse};
use super::tree::{bounds, chain, find_block, find_loop, flatten, fresh, nest, replace_loop, seq, substitute};
use crate::te::{BinOp, Expr, Name};
use crate::tir::{Action, Block, Function, Stmt};

/// Makes a block that stores `select(CONDITION, VALUE, CONSTANT)` store the value only where the condition holds. Before
/// loop `var`, which must have nothing but the block in it, one nest for each part of the condition stores the constant
/// where that part is the first that does not hold.
pub fn decompose_padding(f: &mut Function, name: &Name, var: &Name) -> Result<Vec<Name>, Reason> {
    let (_, block) = find_block(f, name)?;
    let target = find_loop(f, var)?.clone();
    let (loops, inside) = chain(&target);
    if !matches!(inside, Stmt::Block(b) if b.name == *name) {
        refuse!("loop {var} has more in it than {name}, or does not enclose it");
    }
    let Action::Store { buffer, indices, value } = &block.action else { refuse!("block {name} calls an intrinsic") };
    let (condition, constant) = match value {
        Expr::Select(condition, _, constant) if matches!(**constant, Expr::Int(..)) => (condition, constant),
        other => refuse!("block {name} computes {other}, not select(CONDITION, VALUE, CONSTANT)"),
    };
    let parts: Vec<Expr> = condition.conjuncts().into_iter().cloned().collect();
    let within = bounds(f);
    let (mut made, mut fills): (Vec<Name>, Vec<Stmt>) = (Vec::new(), Vec::new());
    for part in &parts {
        let opposite = match part {
            Expr::Binary(BinOp::Le, a, b) => Expr::Binary(BinOp::Lt, b.clone(), a.clone()),
            Expr::Binary(BinOp::Lt, a, b) => Expr::Binary(BinOp::Le, b.clone(), a.clone()),
            other => refuse!("the condition of {name} has the part {other}; only < and <= have an opposite here"),
        };
        let number = fills.len();
        let filled = fresh(f, &format!("{name}.pad{number}"));
        let action = Action::Store { buffer: buffer.clone(), indices: indices.clone(), value: (**constant).clone() };
        // Each element belongs to the first part that does not hold.
        let guards = block.guards.iter().chain(&parts[..number]).cloned().chain([opposite]).collect();
        let mut body = Stmt::Block(Block { name: filled.clone(), reduce: Vec::new(), guards, init: None, action });
        let renamed: Vec<(Name, Name, i64)> =
            (loops.iter()).map(|l| (l.var.clone(), fresh(f, &format!("{}.pad{number}", l.var)), l.extent)).collect();
        let mut ranges = within.clone();
        ranges.extend(renamed.iter().map(|(_, v, n)| (v.clone(), (0, n - 1))));
        let map = |v: &Name| renamed.iter().find(|r| r.0 == *v).map(|r| Expr::Var(r.1.clone()));
        substitute(&mut body, &map, &|_| None, &ranges);
        fills.push(nest(renamed.iter().map(|r| (r.1.clone(), r.2)), body));
        made.push(filled);
    }
    f.body.each_block_mut(&mut |b| {
        if b.name != *name {
            return;
        }
        b.guards.extend(parts.iter().cloned());
        if let Action::Store { value, .. } = &mut b.action
            && let Expr::Select(_, inner, _) = value
        {
            *value = (**inner).clone();
        }
    });
    let tree = std::mem::replace(&mut f.body, Stmt::Seq(Vec::new()));
    f.body = replace_loop(tree, var, &mut |l| Ok(seq(fills.iter().cloned().chain([Stmt::For(l)]).collect())))?;
    flatten(&mut f.body);
    Ok(made)
}
