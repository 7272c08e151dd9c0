//! Element types.

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
    /// 64-bit IEEE float.
    F64,
    /// 16-bit signed integer.
    I16,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
}

impl DType {
    /// Every element type.
    pub const ALL: [DType; 11] = {
        use DType::*;
        [F32, I8, U8, I32, I64, Bool, F64, I16, U16, U32, U64]
    };
    /// The types of floats.
    pub const FLOATS: &[DType] = &[DType::F32, DType::F64];
    /// The types of floats, and i8, which stands for a quantized float.
    pub const FLOATS_OR_I8: &[DType] = &[DType::F32, DType::I8, DType::F64];
    /// The types of integers, without booleans.
    pub const INTEGERS: &[DType] = {
        use DType::*;
        &[I8, U8, I32, I64, I16, U16, U32, U64]
    };
    /// The types of numbers: all but booleans.
    pub const NUMBERS: &[DType] = {
        use DType::*;
        &[F32, I8, U8, I32, I64, F64, I16, U16, U32, U64]
    };

    /// Size of an element in bytes.
    pub const fn size_bytes(self) -> usize {
        match self {
            DType::I8 | DType::U8 | DType::Bool => 1,
            DType::I16 | DType::U16 => 2,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::I64 | DType::F64 | DType::U64 => 8,
        }
    }

    /// True for floats.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64)
    }

    /// True for integers without a sign, and for booleans.
    pub const fn is_unsigned(self) -> bool {
        matches!(self, DType::U8 | DType::U16 | DType::U32 | DType::U64 | DType::Bool)
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
            DType::F64 => "f64",
            DType::I16 => "i16",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
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
