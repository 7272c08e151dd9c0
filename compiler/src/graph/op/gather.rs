//! `gather`: slices selected by indices.

use super::check;
use crate::graph::tensor::strides;
use crate::graph::{DType, OpError, Tensor, TensorData, TensorType};

operator! {
    /// The data's slices at the indices (i32 or i64) along a dimension; any element type.
    ///
    /// `[.., I.., ..]`: the indices' dimensions replace `axis`. Negative indices count from the end; indices out of
    /// range are clamped to the first or last element.
    Gather = "gather"(data, indices) {
        /// The dimension.
        axis: usize,
    }
}

impl Gather {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 2, 2)?;
        let (data, indices) = (inputs[0], inputs[1]);
        check::axis(self.axis, data)?;
        check::dtype("indices", indices, &[DType::I32, DType::I64])?;
        if check::known_dim("data", data, self.axis)? == 0 {
            return Err(OpError::operand("data", format!("non-empty along dimension {}", self.axis), data));
        }
        let mut dims = data.dims.clone();
        dims.splice(self.axis..=self.axis, indices.dims.iter().cloned());
        Ok(TensorType { dtype: data.dtype, dims })
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = check::known("data", &self.infer(&[&inputs[0].ty(), &inputs[1].ty()])?)?;
        let from = inputs[0].shape();
        let (n, inner) = (from[self.axis], strides(from)[self.axis]);
        let outer: usize = from[..self.axis].iter().product();
        let places = places(inputs[1], n)?;
        let mut index = Vec::with_capacity(shape.iter().product());
        for o in 0..outer {
            for &p in &places {
                index.extend((0..inner).map(|i| (o * n + p) * inner + i));
            }
        }
        Ok(inputs[0].gathered(&shape, &index))
    }
}

/// Positions of the indices among `n` elements: negative ones count from the end, and all are clamped to the range.
pub(super) fn places(indices: &Tensor, n: usize) -> Result<Vec<usize>, OpError> {
    let n = n as i64;
    let place = |i: i64| (if i < 0 { i.saturating_add(n) } else { i }).clamp(0, n - 1) as usize;
    match indices.data() {
        TensorData::I32(v) => Ok(v.iter().map(|&i| place(i.into())).collect()),
        TensorData::I64(v) => Ok(v.iter().map(|&i| place(i)).collect()),
        _ => Err(OpError::operand("indices", "of type i32 or i64", indices.ty())),
    }
}

/// Fails if an index (i32 or i64, negative ones counted from the end) is outside a dimension of `size` elements.
///
/// # Errors
/// A message with the first such index and the dimension.
pub fn check_indices(indices: &Tensor, axis: usize, size: usize) -> Result<(), String> {
    let n = i64::try_from(size).unwrap_or(i64::MAX);
    let outside = |i: &i64| *i >= n || *i < -n;
    let found = match indices.data() {
        TensorData::I32(v) => v.iter().map(|&i| i64::from(i)).find(outside),
        TensorData::I64(v) => v.iter().copied().find(outside),
        _ => None,
    };
    match found {
        Some(i) => Err(format!("index {i} is out of range for dimension {axis} of the data, with {size} elements")),
        None => Ok(()),
    }
}
