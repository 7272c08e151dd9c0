//! Cuts a dimension into parts.

use std::ops::Range;

/// Cuts `0..size` into ranges of length `step`; the last one can be shorter.
pub fn cut(size: usize, step: usize) -> Vec<Range<usize>> {
    (0..size).step_by(step.max(1)).map(|at| at..(at + step).min(size)).collect()
}

/// Returns the distinct part lengths when `size` is cut into 1, 2, 3, ... equal parts, the largest first.
pub fn parts(size: usize) -> Vec<usize> {
    let mut found: Vec<usize> = (1..=size).map(|k| size.div_ceil(k)).collect();
    found.dedup();
    found
}
