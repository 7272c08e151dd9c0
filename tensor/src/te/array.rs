//! Dense row-major little-endian arrays, which the evaluators read and write.

use super::{DType, Scalar};

/// A dense row-major array.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<i64>,
    /// Elements, little-endian.
    pub bytes: Vec<u8>,
}

impl Array {
    /// Creates an array of zeros.
    pub fn zeros(dtype: DType, shape: &[i64]) -> Array {
        let len = shape.iter().product::<i64>().max(0) as usize;
        Array { dtype, shape: shape.to_vec(), bytes: vec![0; len * dtype.size_bytes()] }
    }

    /// Creates an array of int8 elements.
    pub fn of_bytes(shape: &[i64], values: &[i8]) -> Array {
        Array { dtype: DType::I8, shape: shape.to_vec(), bytes: values.iter().map(|&v| v as u8).collect() }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.size_bytes()
    }

    /// Returns whether the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the element at a row-major position, or `None` past the end.
    #[inline]
    pub fn get(&self, i: usize) -> Option<Scalar> {
        let n = self.dtype.size_bytes();
        let b = self.bytes.get(i * n..i * n + n)?;
        Some(match self.dtype {
            DType::F32 => Scalar::F(f32::from_le_bytes(b.try_into().ok()?)),
            DType::I8 => Scalar::I(b[0] as i8 as i64),
            DType::U8 => Scalar::I(b[0] as i64),
            DType::Bool => Scalar::I((b[0] != 0) as i64),
            DType::I32 => Scalar::I(i32::from_le_bytes(b.try_into().ok()?) as i64),
            DType::I64 | DType::U64 => Scalar::I(i64::from_le_bytes(b.try_into().ok()?)),
            DType::F64 => Scalar::D(f64::from_le_bytes(b.try_into().ok()?)),
            DType::I16 => Scalar::I(i16::from_le_bytes(b.try_into().ok()?) as i64),
            DType::U16 => Scalar::I(u16::from_le_bytes(b.try_into().ok()?) as i64),
            DType::U32 => Scalar::I(u32::from_le_bytes(b.try_into().ok()?) as i64),
        })
    }

    /// Writes the element at a row-major position, converted to the array's type. Returns `false` past the end.
    #[inline]
    pub fn set(&mut self, i: usize, v: Scalar) -> bool {
        let n = self.dtype.size_bytes();
        let Some(b) = self.bytes.get_mut(i * n..i * n + n) else { return false };
        match self.dtype {
            DType::F32 => b.copy_from_slice(&v.float().to_le_bytes()),
            DType::I8 | DType::U8 => b[0] = v.int() as u8,
            DType::Bool => b[0] = (v.int() != 0) as u8,
            DType::I32 => b.copy_from_slice(&(v.int() as i32).to_le_bytes()),
            DType::F64 => b.copy_from_slice(&v.double().to_le_bytes()),
            DType::I16 | DType::U16 => b.copy_from_slice(&(v.int() as u16).to_le_bytes()),
            DType::U32 => b.copy_from_slice(&(v.int() as u32).to_le_bytes()),
            DType::I64 | DType::U64 => b.copy_from_slice(&v.int().to_le_bytes()),
        }
        true
    }

    /// Returns the row-major position of an index, or `None` if the index is outside the shape.
    pub fn position(&self, index: &[i64]) -> Option<usize> {
        if index.len() != self.shape.len() {
            return None;
        }
        let mut at = 0i64;
        for (&i, &n) in index.iter().zip(&self.shape) {
            if i < 0 || i >= n {
                return None;
            }
            at = at * n + i;
        }
        Some(at as usize)
    }
}
