//! Element types, dimensions and tensor types.

use std::collections::BTreeMap;
use std::fmt;

/// The type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// 32-bit IEEE float.
    F32,
    /// Signed byte.
    I8,
    /// Unsigned byte.
    U8,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// Boolean, one byte.
    Bool,
}

impl DType {
    /// Every element type.
    pub const ALL: [DType; 6] = [DType::F32, DType::I8, DType::U8, DType::I32, DType::I64, DType::Bool];

    /// Size of an element in bytes.
    pub const fn size_bytes(self) -> usize {
        match self {
            DType::I8 | DType::U8 | DType::Bool => 1,
            DType::F32 | DType::I32 => 4,
            DType::I64 => 8,
        }
    }

    /// Its name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::I8 => "i8",
            DType::U8 => "u8",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::Bool => "bool",
        }
    }

    /// The element type with this name in the text form.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

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
