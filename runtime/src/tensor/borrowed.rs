//! Tensors in memory of the caller.

use super::{DType, Tensor};

/// A tensor in the caller's memory.
#[derive(Debug, Clone, Copy)]
pub struct TensorRef<'a> {
    /// Element type.
    pub dtype: DType,
    /// Lengths of the axes, slowest first.
    pub shape: &'a [usize],
    /// The elements.
    pub bytes: &'a [u8],
}

impl<'a> From<&'a Tensor> for TensorRef<'a> {
    fn from(tensor: &'a Tensor) -> TensorRef<'a> {
        TensorRef { dtype: tensor.dtype, shape: &tensor.shape, bytes: &tensor.bytes }
    }
}

/// The caller's memory for a tensor.
#[derive(Debug)]
pub struct TensorMut<'a> {
    /// Element type.
    pub dtype: DType,
    /// Lengths of the axes, slowest first.
    pub shape: &'a [usize],
    /// Room for the elements.
    pub bytes: &'a mut [u8],
}

/// The tensors as those of a caller.
pub(crate) fn refs(tensors: &[Tensor]) -> Vec<TensorRef<'_>> {
    tensors.iter().map(TensorRef::from).collect()
}
