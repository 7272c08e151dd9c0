//! The rows or columns of an image that windows read.

/// Returns the distance from the first to the last tap of a window along one dimension, plus one.
pub fn reach(kernel: usize, dilation: usize) -> usize {
    (kernel - 1) * dilation + 1
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
        let to = ((first + count - 1) * stride + reach) as i64 - pad as i64;
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
