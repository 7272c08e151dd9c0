//! What a copy moves.

/// Elements of some tensors put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copy {
    /// What goes where; together they are the whole result.
    pub segments: Vec<Segment>,
}

/// A part of a copy's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Which of the layer's inputs it comes from.
    pub input: usize,
    /// First channel of the data.
    pub c_from: usize,
    /// First channel of the result.
    pub c_to: usize,
    /// Channels.
    pub c: usize,
    /// First row of the result, and the row of the data for it and for each one behind it.
    pub rows: (usize, Vec<usize>),
    /// The same for columns.
    pub columns: (usize, Vec<usize>),
}
