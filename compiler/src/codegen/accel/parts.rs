//! A dimension cut into parts.

use std::ops::Range;

/// Parts of `size` in steps of `step`; the last may be shorter.
pub fn cut(size: usize, step: usize) -> Vec<Range<usize>> {
    (0..size).step_by(step.max(1)).map(|at| at..(at + step).min(size)).collect()
}

/// Distinct lengths of the parts when a dimension is cut into 1, 2, 3, ... equal parts, the largest first.
pub fn parts(size: usize) -> Vec<usize> {
    let mut found: Vec<usize> = (1..=size).map(|k| size.div_ceil(k)).collect();
    found.dedup();
    found
}
