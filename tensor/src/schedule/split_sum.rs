//! `split_sum`: adds the second of two terms of a sum in a block of its own.

use super::access::accesses;
use super::error::{Reason, refuse};
use super::tree::{blocks, bounds, find_block, find_loop, flatten, fresh, replace_loop, substitute};
use crate::te::{BinOp, DType, Expr, Name};
use crate::tir::{Action, Block, Bounds, For, Function, Stmt};

/// Lets block `name`, which stores `sum + (FIRST + SECOND)`, add only the first term. A new block adds the second one, in
/// a copy of the nest of loop `var` behind it. Returns the new block and its loops.
pub fn split_sum(f: &mut Function, name: &Name, var: &Name) -> Result<Vec<Name>, Reason> {
    let (loops, block) = find_block(f, name)?;
    if !loops.contains(var) {
        refuse!("block {name} is not within loop {var}");
    }
    let target = find_loop(f, var)?.clone();
    if let Some(other) = blocks(&target.body).iter().find(|b| b.name != *name) {
        refuse!("loop {var} also contains block {}", other.name);
    }
    if block.init.is_some() {
        refuse!("block {name} sets its initial value itself; move that out by decompose_reduction first");
    }
    let Action::Store { buffer, indices, value } = &block.action else { refuse!("block {name} calls an intrinsic") };
    let Some((own, [first, second])) = two_terms(value).filter(
        |(own, _)| matches!(own, Expr::Load { buffer: from, indices: at, .. } if from == buffer && at == indices),
    ) else {
        refuse!("block {name} computes {value}, not {buffer}[…] + (FIRST + SECOND) of integers")
    };
    if accesses(f, &block).iter().filter(|a| a.reads && a.buffer == *buffer).count() > 1 {
        refuse!("a term of block {name} reads {buffer}");
    }
    let store = |term: &Expr| Action::Store {
        buffer: buffer.clone(),
        indices: indices.clone(),
        value: own.clone() + term.clone(),
    };
    let more = fresh(f, &format!("{name}.more"));
    let further = Block { name: more.clone(), action: store(second), ..block.clone() };
    let mut renamed: Vec<(Name, Name)> = Vec::new();
    Stmt::For(target).visit_loops(&mut |l| {
        renamed.push((l.var.clone(), fresh(f, &format!("{}.more", l.var))));
    });
    let mut ranges = bounds(f);
    let copied: Bounds = renamed.iter().filter_map(|(old, new)| Some((new.clone(), *ranges.get(old)?))).collect();
    ranges.extend(copied);
    let first = Block { action: store(first), ..block.clone() };
    let of = |l: &For, own: &Block| {
        let mut s = Stmt::For(l.clone());
        s.each_block_mut(&mut |b| *b = own.clone());
        s
    };
    let new = |v: &Name| renamed.iter().find(|(old, _)| old == v).map(|(_, new)| new.clone());
    let body = std::mem::replace(&mut f.body, Stmt::Seq(Vec::new()));
    f.body = replace_loop(body, var, &mut |l| {
        let mut copy = of(&l, &further);
        substitute(&mut copy, &|v| new(v).map(Expr::Var), &|v| new(v).map(|new| vec![new]), &ranges);
        rename(&mut copy, &new);
        Ok(Stmt::Seq(vec![of(&l, &first), copy]))
    })?;
    flatten(&mut f.body);
    Ok(std::iter::once(more).chain(renamed.into_iter().map(|(_, new)| new)).collect())
}

/// Returns the old value and both terms of `old + (first + second)`, whose terms can be added in any order.
fn two_terms(value: &Expr) -> Option<(&Expr, [&Expr; 2])> {
    let Expr::Binary(BinOp::Add, own, terms) = value else { return None };
    let Expr::Binary(BinOp::Add, first, second) = terms.as_ref() else { return None };
    (value.dtype() != DType::F32).then_some((own, [first, second]))
}

/// Renames loops.
fn rename(s: &mut Stmt, new: &dyn Fn(&Name) -> Option<Name>) {
    match s {
        Stmt::Seq(items) => items.iter_mut().for_each(|s| rename(s, new)),
        Stmt::For(l) => {
            l.var = new(&l.var).unwrap_or_else(|| l.var.clone());
            rename(&mut l.body, new);
        }
        Stmt::Block(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::schedule::Schedule;
    use crate::te::text;
    use crate::testing::data;
    use crate::tir::{evaluate, lower, run};

    #[test]
    fn terms_are_added_by_two_blocks() {
        let program = text::parse(
            "te t {\n  input a: i32[4, 6]\n  input b: i32[4, 6]\n  input f: f32[4]\n  output y: i32[i in 4] = sum(j in 6) \
             a[i, j] + select(j < 3, b[i, j] * 2i32, 0i32)\n  output z: f32[i in 4] = sum(j in 6) f[i] + f[i]\n}\n",
        )
        .unwrap();
        let mut s = Schedule::new(lower(&program).unwrap());
        let step = |s: &mut Schedule, text: &str| s.apply(super::super::text::parse(text).unwrap());
        let refused = |s: &mut Schedule, text: &str, why: &str| {
            let e = step(s, text).unwrap_err();
            assert!(e.reason.contains(why), "{e}");
        };
        refused(&mut s, "split_sum y y.i", "decompose_reduction");
        refused(&mut s, "split_sum y z.j", "not within");
        step(&mut s, "split y.j 2").unwrap();
        step(&mut s, "decompose_reduction y y.i").unwrap();
        step(&mut s, "decompose_reduction z z.i").unwrap();
        refused(&mut s, "split_sum z z.i", "of integers");
        let made = step(&mut s, "split_sum y y.j.0").unwrap();
        assert_eq!(made.iter().map(|n| n.as_str()).collect::<Vec<_>>(), ["y.more", "y.j.0.more", "y.j.1.more"]);
        refused(&mut s, "split_sum y y.j.0", "FIRST + SECOND");
        let inputs = data(&program);
        assert_eq!(run(&s.into_function(), &inputs).unwrap(), evaluate(&program, &inputs).unwrap());
    }
}
