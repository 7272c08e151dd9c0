//! Numbers of lists in the indices and conditions of calls.
//!
//! A list is indexed by loops that run one iteration after the other, so that its number is known, or by reductions,
//! whose iterations are micro-ops: each gets its own number.

use std::sync::Arc;

use super::conditions::conditions_as_sums;
use super::error::LowerError;
use super::lower::Lower;
use crate::te::{Expr, Name, scalar};
use crate::tir::{Affine, Block, For, View, simplify};

/// A number of a list that depends on reductions.
#[derive(Debug, Clone)]
pub struct Pick {
    /// The variable that stands for it in sums.
    pub var: Name,
    /// Its index.
    pub index: Affine,
    list: Arc<[i64]>,
}

impl Pick {
    /// Returns the number at an index.
    pub fn at(&self, index: i64) -> i64 {
        scalar::pick(&self.list, index)
    }
}

/// Whether a list occurs in an expression.
fn has_list(e: &Expr) -> bool {
    let mut found = false;
    e.visit(&mut |e| found |= matches!(e, Expr::Pick(..)));
    found
}

/// Whether all lists are indexed by nothing but loops over which a block sums.
pub fn only_sums(picks: &[Pick], block: &Block, loops: &[&For]) -> bool {
    let summed = |v: &Name| block.reduce.contains(v) && loops.iter().any(|l| l.var == *v);
    picks.iter().all(|pick| pick.index.terms.keys().all(summed))
}

impl<'l> Lower<'l> {
    /// Returns an expression as a sum in which numbers of lists are variables, which are added to `picks`; `None` if it is
    /// not affine.
    fn picked(&self, e: &Expr, picks: &mut Vec<Pick>) -> Option<Affine> {
        let known = simplify(&e.substitute(&|v| self.value(v).map(Expr::int)), &self.bounds);
        let mut is_affine = true;
        let without = known.rewrite(&mut |e| {
            let Expr::Pick(list, index) = &e else { return e };
            let Some(index) = Affine::of(index) else {
                is_affine = false;
                return e;
            };
            let same = |pick: &&Pick| pick.index == index && pick.list == *list;
            if let Some(pick) = picks.iter().find(same) {
                return Expr::Var(pick.var.clone());
            }
            let var = Name::from(format!("@list{}", picks.len()));
            picks.push(Pick { var: var.clone(), index, list: Arc::clone(list) });
            Expr::Var(var)
        });
        Affine::of(&without).filter(|_| is_affine)
    }

    /// Returns the entry at which an argument of an instruction begins, like [`Lower::entry`], in which numbers of lists
    /// are variables.
    ///
    /// # Errors
    /// The argument is not one entry.
    pub fn entry_of_lists(
        &self,
        block: &Block,
        view: &'l View,
        shape: &[i64],
        picks: &mut Vec<Pick>,
    ) -> Result<Option<Affine>, LowerError> {
        if !view.indices.iter().any(has_list) {
            return self.entry(block, view, shape);
        }
        let Some(buffer) = self.f.buffer(&view.buffer) else { return Ok(None) };
        let mut at = Affine::default();
        for (e, &n) in view.indices.iter().zip(&buffer.shape) {
            let Some(index) = self.picked(e, picks) else { return Ok(None) };
            at = at.times(n).plus(&index, 1);
        }
        self.entry_at(block, view, shape, at).map(Some)
    }

    /// Returns conditions as sums that must be at least 0, in which numbers of lists are variables; `None` if one is not
    /// affine.
    pub fn sums_of_lists(&self, conditions: &'l [Expr], picks: &mut Vec<Pick>) -> Option<Vec<Affine>> {
        let mut sums = Vec::new();
        for condition in conditions {
            if has_list(condition) {
                conditions_as_sums(condition, &mut sums, &mut |e| self.picked(e, picks))?;
            } else {
                sums.extend(self.sums(std::slice::from_ref(condition))?);
            }
        }
        Some(sums)
    }
}
