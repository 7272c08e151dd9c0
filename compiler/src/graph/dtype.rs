//! Dimensions and tensor types.

use std::collections::BTreeMap;
use std::fmt;

pub use tilewright_tensor::DType;

/// The size of one dimension: a number, or a symbol that is bound later.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Dim {
    /// Known size.
    Fixed(usize),
    /// Unknown size; equal symbols mean equal sizes.
    Symbol(String),
}

impl Dim {
    /// The size, if it is known.
    pub fn known(&self) -> Option<usize> {
        match self {
            Dim::Fixed(n) => Some(*n),
            Dim::Symbol(_) => None,
        }
    }
}

impl From<usize> for Dim {
    fn from(n: usize) -> Dim {
        Dim::Fixed(n)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Fixed(n) => write!(f, "{n}"),
            Dim::Symbol(s) => f.write_str(s),
        }
    }
}

/// Maximum number of dimensions of a tensor. Networks stay below ten; some steps need memory for each pair of
/// dimensions, so a damaged file must not ask for many.
pub const MAX_RANK: usize = 32;

/// Element type and shape, outermost dimension first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub dims: Vec<Dim>,
}

impl TensorType {
    /// A type with known sizes.
    pub fn new(dtype: DType, shape: &[usize]) -> TensorType {
        TensorType { dtype, dims: shape.iter().map(|&n| Dim::Fixed(n)).collect() }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The sizes, or `None` if one of them is symbolic.
    pub fn shape(&self) -> Option<Vec<usize>> {
        self.dims.iter().map(Dim::known).collect()
    }

    /// Number of elements, or `None` if a size is symbolic or the product overflows.
    pub fn element_count(&self) -> Option<usize> {
        self.dims.iter().try_fold(1usize, |n, d| n.checked_mul(d.known()?))
    }

    /// The same sizes with another element type.
    pub fn with_dtype(&self, dtype: DType) -> TensorType {
        TensorType { dtype, dims: self.dims.clone() }
    }

    /// The type with symbols replaced by the given sizes; other symbols stay.
    pub fn bind(&self, sizes: &BTreeMap<String, usize>) -> TensorType {
        let bind = |d: &Dim| match d {
            Dim::Symbol(s) => sizes.get(s).map_or_else(|| d.clone(), |&n| Dim::Fixed(n)),
            Dim::Fixed(_) => d.clone(),
        };
        TensorType { dtype: self.dtype, dims: self.dims.iter().map(bind).collect() }
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.dtype)?;
        for (i, d) in self.dims.iter().enumerate() {
            write!(f, "{}{d}", if i == 0 { "" } else { "," })?;
        }
        f.write_str("]")
    }
}
