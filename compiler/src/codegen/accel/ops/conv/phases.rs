//! The phases of a transposed convolution as one product.
//!
//! Each phase is a convolution whose results are a stride apart in the output. All phases have the same number of taps;
//! those past a phase's own do not count.

use super::first_blocks::by_cases;
use super::op::Conv;
use crate::codegen::accel::finish::{Finish, Slope};
use crate::codegen::accel::tile_groups::times;
use crate::codegen::accel::view::View;
use crate::te::Expr;

/// Where the phases of a product read their data, and where their results belong.
#[derive(Debug, Clone, PartialEq)]
pub struct Phases {
    /// Phases in rows and columns, which is also the distance of a phase's results in the output.
    pub counts: [usize; 2],
    /// Row, and column, of the data that the first tap of each phase multiplies for its first result.
    pub firsts: [Vec<i64>; 2],
    /// Taps of each phase in a column, and in a row.
    pub taps: [Vec<i64>; 2],
    /// Distances between taps in rows and columns.
    pub dilations: [usize; 2],
    /// View of the output.
    pub output: View,
}

impl Phases {
    /// Number of phases.
    pub fn count(&self) -> usize {
        self.counts[0] * self.counts[1]
    }

    /// Returns the number of a phase, given its row and its column.
    pub fn number(&self, phase: &[Expr]) -> Expr {
        times(phase[0].clone(), self.counts[1]) + phase[1].clone()
    }

    /// Returns the row (`k` = 0) or column of the data that a tap multiplies for the first result.
    pub fn position(&self, k: usize, phase: &[Expr], tap: &Expr) -> Expr {
        chosen(&self.firsts[k], &phase[k]) + times(tap.clone(), self.dilations[k])
    }

    /// Returns the condition for a tap, one of `kernel`, to count; `None` if it counts in each phase.
    pub fn condition(&self, k: usize, phase: &[Expr], tap: &Expr, kernel: usize) -> Option<Expr> {
        let all = self.taps[k].iter().all(|taps| *taps == kernel as i64);
        (!all).then(|| tap.clone().lt(chosen(&self.taps[k], &phase[k])))
    }
}

/// Returns the number of a list at an index: a sum if all are the same distance apart, otherwise constants by cases, whose
/// range is that of the list.
fn chosen(list: &[i64], at: &Expr) -> Expr {
    if list.windows(2).all(|pair| pair[1] - pair[0] == list[1] - list[0]) {
        return by_cases(list, at);
    }
    let last = Expr::int(list[list.len() - 1]);
    let ends = (1i64..list.len() as i64).zip(list.windows(2)).filter(|(_, pair)| pair[0] != pair[1]);
    let ends: Vec<_> = ends.collect();
    ends.into_iter()
        .rev()
        .fold(last, |rest, (end, pair)| at.clone().lt(Expr::int(end)).select(Expr::int(pair[0]), rest))
}

/// Returns the requantizations of several products one after the other, with `channels` channels of each.
pub fn joined(convs: &[Conv], channels: usize) -> (Finish, Option<Slope>) {
    let (mut finish, mut slope) = (convs[0].finish.clone(), convs[0].slope.clone());
    if convs.len() == 1 {
        return (finish, slope);
    }
    fn all<T: Copy + Default>(lists: Vec<&Vec<T>>, channels: usize) -> Vec<T> {
        let padded =
            |list: &Vec<T>| (0..channels).map(|c| list.get(c).copied().unwrap_or_default()).collect::<Vec<_>>();
        lists.into_iter().flat_map(padded).collect()
    }
    finish.bias = all(convs.iter().map(|c| &c.finish.bias).collect(), channels);
    finish.multiplier = all(convs.iter().map(|c| &c.finish.multiplier).collect(), channels);
    finish.shift = all(convs.iter().map(|c| &c.finish.shift).collect(), channels);
    if let Some(slope) = &mut slope {
        let slopes = || convs.iter().filter_map(|c| c.slope.as_ref());
        slope.bias = all(slopes().map(|s| &s.bias).collect(), channels);
        slope.multiplier = all(slopes().map(|s| &s.multiplier).collect(), channels);
        slope.shift = all(slopes().map(|s| &s.shift).collect(), channels);
    }
    (finish, slope)
}
