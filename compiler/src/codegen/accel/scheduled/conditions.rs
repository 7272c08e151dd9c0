//! Conditions of blocks, as ranges of loops.

use super::lower::Lower;
use crate::te::{BinOp, DType, Expr};
use crate::tir::{Affine, For};

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

impl Lower<'_> {
    /// Returns for which iterations of a nest all conditions hold.
    pub fn ranges(&self, loops: &[&For], conditions: &[Expr]) -> Ranges {
        let mut ranges: Vec<(i64, i64)> = loops.iter().map(|l| (0, l.extent)).collect();
        let mut never = false;
        for condition in conditions {
            match self.narrow(loops, condition, &mut ranges) {
                Some(holds) => never |= !holds,
                None => return Ranges::Several,
            }
        }
        if never || ranges.iter().any(|r| r.1 <= r.0) { Ranges::Never } else { Ranges::Of(ranges) }
    }

    /// Restricts the ranges by a condition. Returns whether it can hold; `None` if it is none of a single loop.
    fn narrow(&self, loops: &[&For], condition: &Expr, ranges: &mut [(i64, i64)]) -> Option<bool> {
        // Each condition as a sum that must be at least 0.
        let least = |a: &Expr, b: &Expr, slack: i64| -> Option<Affine> {
            let mut difference = self.affine(b)?.plus(&self.affine(a)?, -1);
            difference.constant -= slack;
            Some(difference)
        };
        let sum = match condition {
            Expr::Binary(BinOp::And, a, b) => {
                let first = self.narrow(loops, a, ranges)?;
                return Some(self.narrow(loops, b, ranges)? && first);
            }
            Expr::Int(v, DType::Bool) => return Some(*v != 0),
            Expr::Binary(BinOp::Lt, a, b) => least(a, b, 1)?,
            Expr::Binary(BinOp::Le, a, b) => least(a, b, 0)?,
            _ => return None,
        };
        let Some((var, &factor)) = sum.terms.iter().next() else { return Some(sum.constant >= 0) };
        if sum.terms.len() > 1 {
            return None;
        }
        let range = &mut ranges[loops.iter().position(|l| l.var == *var)?];
        if factor > 0 {
            // The first iteration with constant + factor * x >= 0.
            range.0 = range.0.max((-sum.constant + factor - 1).div_euclid(factor));
        } else {
            range.1 = range.1.min(sum.constant.div_euclid(-factor) + 1);
        }
        Some(range.0 < range.1)
    }
}
