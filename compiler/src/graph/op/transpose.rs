//! `transpose`: permutes dimensions.

use super::check;
use crate::graph::{OpError, Tensor, TensorType};

operator! {
    /// Dimension `i` of the result is dimension `perm[i]` of the data; any element type.
    Transpose = "transpose"(data) {
        /// A permutation of the dimensions.
        perm: Vec<usize>,
    }
}

impl Transpose {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        let data = inputs[0];
        let mut sorted = self.perm.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..data.rank()) {
            let reason = format!("must be a permutation of {} dimensions, found {:?}", data.rank(), self.perm);
            return Err(OpError::attribute("perm", reason));
        }
        Ok(TensorType { dtype: data.dtype, dims: self.perm.iter().map(|&p| data.dims[p].clone()).collect() })
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        inputs[0].transposed(&self.perm).ok_or_else(|| OpError::attribute("perm", "is not a permutation"))
    }
}
