//! The rows or columns of an image that windows read.

use crate::te::Expr;

/// Returns the distance from the first to the last tap of a window along one dimension, plus one.
pub fn reach(kernel: usize, dilation: usize) -> usize {
    (kernel - 1) * dilation + 1
}

/// Returns the rows (or columns) that some neighboring outputs read, padding included, for windows of a reach.
pub fn span(outputs: usize, stride: usize, reach: usize) -> usize {
    (outputs - 1) * stride + reach
}

/// Rows (or columns) of the input that some neighboring outputs read: rows inside the image, and padding around them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaddedRange {
    /// First row inside the image.
    pub start: usize,
    /// Rows inside the image.
    pub inside: usize,
    /// Rows of padding before them.
    pub before: usize,
    /// Rows of padding after them.
    pub after: usize,
}

impl PaddedRange {
    /// The rows that outputs `first..first + count` read in an image of `size` rows, for a window of this reach.
    ///
    /// All of them can be outside the image, on one side of it.
    pub fn new(first: usize, count: usize, stride: usize, pad: usize, reach: usize, size: usize) -> PaddedRange {
        let from = (first * stride) as i64 - pad as i64;
        let to = from + span(count, stride, reach) as i64;
        let (start, end) = (from.clamp(0, size as i64), to.clamp(0, size as i64));
        let (all, inside) = ((to - from) as usize, (end - start) as usize);
        let before = (start - from).clamp(0, to - from) as usize;
        PaddedRange { start: start as usize, inside, before, after: all - inside - before }
    }

    /// Number of rows, padding included.
    pub fn padded(&self) -> usize {
        self.before + self.inside + self.after
    }
}

/// Returns the conditions for a position in a padded dimension of `count` elements to be inside its tensor, which has
/// `size` elements behind `before` ones of padding.
pub fn inside(at: &Expr, count: i64, before: i64, size: i64) -> Vec<Expr> {
    let mut list = Vec::new();
    if before > 0 {
        list.push(Expr::int(before).le(at.clone()));
    }
    if count > before + size {
        list.push(at.clone().lt(Expr::int(before + size)));
    }
    list
}

/// Returns a position without the padding before it.
pub fn less(at: &Expr, before: i64) -> Expr {
    if before == 0 { at.clone() } else { at.clone() - Expr::int(before) }
}

/// Returns the element where all conditions hold, and padding elsewhere.
pub fn within(conditions: Vec<Expr>, element: Expr, pad: Expr) -> Expr {
    match conditions.into_iter().reduce(Expr::and) {
        Some(inside) => inside.select(element, pad),
        None => element,
    }
}
