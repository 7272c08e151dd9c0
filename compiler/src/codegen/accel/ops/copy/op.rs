//! Describes what a copy moves.

/// A result that consists of elements of some tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copy {
    /// The parts of the result. Together they cover it.
    pub segments: Vec<Segment>,
}

/// A part of a copy's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Index of the layer's input from which it is copied.
    pub input: usize,
    /// First channel in the input.
    pub c_from: usize,
    /// First channel in the result.
    pub c_to: usize,
    /// Number of channels.
    pub c: usize,
    /// Rows.
    pub rows: Places,
    /// Columns.
    pub columns: Places,
}

/// Consecutive rows or columns of a copy's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The first row or column in the result.
    pub first: usize,
    /// For each of them, the row or column of the input.
    pub sources: Vec<usize>,
}

impl Places {
    /// The first `n` rows or columns of the result, from the same ones of the input.
    pub fn all(n: usize) -> Places {
        Places { first: 0, sources: (0..n).collect() }
    }
}
