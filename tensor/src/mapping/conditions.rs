//! Conditions of blocks, as ranges of loops.

use smallvec::SmallVec;

use super::lower::Lower;
use crate::te::{BinOp, DType, Expr, Name};
use crate::tir::{Affine, For};

/// A loop of a nest that becomes one instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NestLoop {
    /// Its variable.
    pub var: Name,
    /// Its iterations.
    pub extent: i64,
}

impl NestLoop {
    /// Returns the loops of a nest.
    pub fn of(loops: &[&For]) -> Vec<NestLoop> {
        loops.iter().map(|l| NestLoop { var: l.var.clone(), extent: l.extent }).collect()
    }
}

/// For which iterations conditions hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ranges {
    /// For none.
    Never,
    /// For these of each loop, from the first to the one after the last.
    Of(Vec<(i64, i64)>),
    /// It depends on several loops at once. The outermost loop must run on its own.
    Several,
}

/// Joins two loops if in every sum a step of the outer one equals a full run of the inner one.
pub fn join(loops: &mut Vec<NestLoop>, sums: &mut [&mut Affine]) {
    // The coefficients of each loop in all sums.
    let steps = |l: &NestLoop| -> SmallVec<[i64; 8]> { sums.iter().map(|s| s.coefficient(&l.var)).collect() };
    let mut steps: SmallVec<[SmallVec<[i64; 8]>; 8]> = loops.iter().map(steps).collect();
    let is_one = |outer: usize, inner: usize, loops: &[NestLoop], steps: &[SmallVec<[i64; 8]>]| {
        outer != inner && steps[outer].iter().zip(&steps[inner]).all(|(o, i)| *o == loops[inner].extent * i)
    };
    while let Some((outer, inner)) = (0..loops.len())
        .flat_map(|outer| (0..loops.len()).map(move |inner| (outer, inner)))
        .find(|&(outer, inner)| is_one(outer, inner, loops, &steps))
    {
        let NestLoop { var, extent } = loops.remove(outer);
        steps.remove(outer);
        loops[if inner > outer { inner - 1 } else { inner }].extent *= extent;
        sums.iter_mut().for_each(|s| s.terms.remove(&var));
    }
}

/// Returns for which iterations of a nest all sums are at least 0.
pub fn ranges(loops: &[NestLoop], sums: &[Affine]) -> Ranges {
    let mut ranges: Vec<(i64, i64)> = loops.iter().map(|l| (0, l.extent)).collect();
    for sum in sums {
        let reach = |wanted: bool| -> i64 {
            let ends = loops.iter().map(|l| sum.coefficient(&l.var) * (l.extent - 1));
            sum.constant + ends.filter(|&end| (end > 0) == wanted).sum::<i64>()
        };
        if reach(true) < 0 {
            return Ranges::Never;
        }
        if reach(false) >= 0 {
            continue;
        }
        let mut terms = loops.iter().zip(&mut ranges).filter(|(l, _)| sum.coefficient(&l.var) != 0);
        let (Some((l, range)), None) = (terms.next(), terms.next()) else { return Ranges::Several };
        let factor = sum.coefficient(&l.var);
        if factor > 0 {
            // The first iteration with constant + factor * x >= 0.
            range.0 = range.0.max((-sum.constant + factor - 1).div_euclid(factor));
        } else {
            range.1 = range.1.min(sum.constant.div_euclid(-factor) + 1);
        }
    }
    if ranges.iter().any(|r| r.1 <= r.0) { Ranges::Never } else { Ranges::Of(ranges) }
}

impl<'l> Lower<'l> {
    /// Returns conditions as sums that must be at least 0; `None` if one is not affine.
    pub fn sums(&self, conditions: &'l [Expr]) -> Option<Vec<Affine>> {
        let mut sums = Vec::new();
        for condition in conditions {
            conditions_as_sums(condition, &mut sums, &mut |e| self.affine(e))?;
        }
        Some(sums)
    }
}

/// Adds the sums that must be at least 0 for a condition to hold; `None` if a side is not affine.
pub fn conditions_as_sums<'e>(
    condition: &'e Expr,
    sums: &mut Vec<Affine>,
    affine: &mut dyn FnMut(&'e Expr) -> Option<Affine>,
) -> Option<()> {
    let (a, b, slack) = match condition {
        Expr::Binary(BinOp::And, a, b) => {
            conditions_as_sums(a, sums, affine)?;
            return conditions_as_sums(b, sums, affine);
        }
        Expr::Int(v, DType::Bool) => {
            sums.push(Affine { constant: v - 1, ..Affine::default() });
            return Some(());
        }
        Expr::Binary(BinOp::Lt, a, b) => (a, b, 1),
        Expr::Binary(BinOp::Le, a, b) => (a, b, 0),
        _ => return None,
    };
    let mut difference = affine(b)?.plus(&affine(a)?, -1);
    difference.constant -= slack;
    sums.push(difference);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(constant: i64, terms: &[(&str, i64)]) -> Affine {
        Affine { constant, terms: terms.iter().map(|&(v, c)| (v.into(), c)).collect() }
    }

    fn loops(list: &[(&str, i64)]) -> Vec<NestLoop> {
        list.iter().map(|&(var, extent)| NestLoop { var: var.into(), extent }).collect()
    }

    #[test]
    fn loops_that_step_alike_are_one() {
        let mut nest = loops(&[("y", 3), ("x", 4), ("b", 16)]);
        let (mut a, mut b) = (sum(7, &[("y", 100), ("x", 16), ("b", 1)]), sum(50, &[("x", -16), ("b", -1)]));
        join(&mut nest, &mut [&mut a, &mut b]);
        assert_eq!(nest, loops(&[("y", 3), ("b", 64)]));
        assert_eq!((a, b.clone()), (sum(7, &[("y", 100), ("b", 1)]), sum(50, &[("b", -1)])));
        assert_eq!(ranges(&nest, &[b]), Ranges::Of(vec![(0, 3), (0, 51)]));
    }

    #[test]
    fn conditions_narrow_one_loop_each() {
        let nest = loops(&[("y", 3), ("x", 4)]);
        assert_eq!(ranges(&nest, &[sum(-1, &[("x", 1)]), sum(3, &[("y", -2)])]), Ranges::Of(vec![(0, 2), (1, 4)]));
        assert_eq!(ranges(&nest, &[sum(5, &[("y", -1), ("x", -1)])]), Ranges::Of(vec![(0, 3), (0, 4)]));
        assert_eq!(ranges(&nest, &[sum(4, &[("y", -1), ("x", -1)])]), Ranges::Several);
        assert_eq!(ranges(&nest, &[sum(-6, &[("y", 1), ("x", 1)])]), Ranges::Never);
        assert_eq!(ranges(&nest, &[sum(-1, &[])]), Ranges::Never);
    }
}
