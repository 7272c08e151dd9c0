//! The numbers by which means divide.

use super::op::{Pool, PoolFinish};
use crate::codegen::accel::finish::Finish;
use crate::codegen::accel::view::View;
use crate::te::Expr;
use std::ops::Range;
use tilewright_hw::config::HwConfig;
use tilewright_hw::num::{self, Rounding, average_multiplier};

/// The numbers by which a mean divides: windows at the border of the image can have fewer elements.
pub struct Divisors<'a> {
    finish: &'a PoolFinish,
    /// The distinct numbers in ascending order. Each has parameters of its own.
    pub counts: Vec<usize>,
    /// Number of elements that each output row and column averages.
    along: [Vec<usize>; 2],
}

impl<'a> Divisors<'a> {
    /// The divisors of a pooling; none if it does not divide.
    pub fn of(pool: &'a Pool, input: View, output: View) -> Divisors<'a> {
        let count_pads = matches!(pool.finish, PoolFinish::Mean { count_pads: true, .. });
        let along = pool.counts(input, output, count_pads);
        Divisors { finish: &pool.finish, counts: pool.distinct_counts(input, output), along }
    }

    /// Returns the requantizations that divide, each with the same parameters in all channels of an entry.
    pub fn finish(&self, config: &HwConfig) -> Finish {
        let list: Vec<num::Requant> = self.counts.iter().map(|&count| by_count(self.finish, count)).collect();
        let lanes = |r: &num::Requant| vec![*r; config.block_out as usize];
        let all: Vec<num::Requant> = list.iter().flat_map(lanes).collect();
        let first = by_count(self.finish, 1);
        Finish {
            bias: all.iter().map(|r| r.bias).collect(),
            multiplier: all.iter().map(|r| r.multiplier).collect(),
            shift: all.iter().map(|r| r.shift).collect(),
            zero_point: first.zero_point,
            lo: first.lo,
            hi: first.hi,
            mode: first.mode,
        }
    }

    /// Returns the entry of parameters for an output row and column.
    pub fn entry(&self, row: &Expr, column: &Expr) -> Expr {
        self.entry_among([&self.along[0], &self.along[1]], [row, column])
    }

    fn entry_among(&self, [rows, columns]: [&[usize]; 2], [row, column]: [&Expr; 2]) -> Expr {
        by_run(rows, row, &|y| {
            by_run(columns, column, &|x| {
                let place = self.counts.iter().position(|&count| count == rows[y] * columns[x]);
                Expr::int(place.unwrap_or(0) as i64)
            })
        })
    }

    /// Returns the patterns of divisors in tiles of some rows and columns.
    pub fn patterns(&self, tile: [usize; 2]) -> Patterns {
        let mut found = Patterns::default();
        for ((counts, size), (lists, of_tiles)) in
            self.along.iter().zip(tile).zip(found.lists.iter_mut().zip(&mut found.of_tiles))
        {
            // Without divisors, all tiles are alike.
            let same = self.counts.len() <= 1;
            for tile in counts.chunks(size) {
                let last = tile.last().copied().unwrap_or(1);
                let list: Vec<usize> = (0..size).map(|i| tile.get(i).copied().unwrap_or(last)).collect();
                let known = lists.iter().position(|known| same || *known == list);
                of_tiles.push(known.unwrap_or(lists.len()));
                if known.is_none() {
                    lists.push(list);
                }
            }
        }
        found
    }

    /// Returns the entry of parameters for a row and a column of a tile with a pattern.
    pub fn entry_of_pattern(&self, patterns: &Patterns, pattern: &Expr, at: [&Expr; 2]) -> Expr {
        let [rows, columns] = &patterns.lists;
        let all: Vec<usize> = (0..patterns.count()).collect();
        by_run(&all, pattern, &|p| self.entry_among([&rows[p / columns.len()], &columns[p % columns.len()]], at))
    }
}

/// Along a dimension, the lists of divisors that tiles of the output have, and which list each tile has.
#[derive(Debug, Clone, Default)]
pub struct Patterns {
    lists: [Vec<Vec<usize>>; 2],
    of_tiles: [Vec<usize>; 2],
}

impl Patterns {
    /// Number of patterns of whole tiles.
    pub fn count(&self) -> usize {
        self.lists.iter().map(|lists| lists.len().max(1)).product()
    }

    /// Returns the pattern of a tile in that row and column of tiles.
    pub fn of_tile(&self, at: [&Expr; 2]) -> Expr {
        let [rows, columns] = &self.of_tiles;
        let across = self.lists[1].len();
        by_run(rows, at[0], &|y| by_run(columns, at[1], &|x| Expr::int((rows[y] * across + columns[x]) as i64)))
    }
}

/// Returns the requantization that turns the sum of `count` elements into their mean. All means of a pooling have the
/// same zero point, bounds and mode.
fn by_count(finish: &PoolFinish, count: usize) -> num::Requant {
    match finish {
        PoolFinish::Count(op) => {
            let bias = op.data_zero_point.wrapping_mul(count as i32).wrapping_neg();
            num::Requant { bias, ..op.requant(count) }
        }
        PoolFinish::Mean { lo, hi, unsigned, .. } => {
            // Unsigned bytes, and so their mean, are greater by 128.
            let zero = if *unsigned { 128 } else { 0 };
            // A factor just below 1 leaves a sum of one byte unchanged.
            let multiplier = if count <= 1 { i32::MAX } else { average_multiplier(count as u32) };
            let (bias, zero_point) = (zero * count as i32, -zero);
            num::Requant { bias, multiplier, shift: 0, zero_point, lo: *lo, hi: *hi, mode: Rounding::Single }
        }
        PoolFinish::Clip { lo, hi } | PoolFinish::Requant(Finish { lo, hi, .. }) => num::Requant {
            bias: 0,
            multiplier: i32::MAX,
            shift: 0,
            zero_point: 0,
            lo: *lo,
            hi: *hi,
            mode: Rounding::Single,
        },
    }
}

/// Returns `value` of the first index of the run of equal values that `at` is in.
fn by_run(values: &[usize], at: &Expr, value: &dyn Fn(usize) -> Expr) -> Expr {
    let mut runs = runs(values).into_iter().rev();
    let last = value(runs.next().map_or(0, |run| run.start));
    runs.fold(last, |rest, run| at.clone().lt(Expr::int(run.end as i64)).select(value(run.start), rest))
}

/// Returns the ranges of equal consecutive values.
fn runs(values: &[usize]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (i, value) in values.iter().enumerate() {
        match found.last_mut() {
            Some(run) if values[run.start] == *value => run.end = i + 1,
            _ => found.push(i..i + 1),
        }
    }
    found
}
