//! Inputs and outputs whose sizes can be open.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::tensor::DType;

/// The size of a dimension.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Dim {
    /// A number.
    Size(usize),
    /// The name of a size that is known when the model runs.
    Symbol(String),
}

impl Dim {
    /// The size, if it is known.
    pub fn size(&self) -> Option<usize> {
        if let Dim::Size(size) = self { Some(*size) } else { None }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Size(size) => write!(f, "{size}"),
            Dim::Symbol(name) => f.write_str(name),
        }
    }
}

/// An input or output whose sizes can be open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenValue {
    /// Its name.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes of its dimensions.
    pub dims: Vec<Dim>,
}

impl OpenValue {
    /// Its sizes as text, such as `1x3xHxW`.
    pub fn dims_text(&self) -> String {
        self.dims.iter().map(Dim::to_string).collect::<Vec<_>>().join("x")
    }
}

/// A size whose rows are computed independently of each other, so that a smaller one can be padded up to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// The size's name.
    pub symbol: String,
    /// Where each output has the rows; `None` if an output does not depend on them.
    pub outputs: Vec<Option<Rows>>,
}

/// Where a tensor has the rows of a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// The dimension.
    pub axis: usize,
    /// Elements of the dimension that belong to one row.
    pub each: usize,
}
