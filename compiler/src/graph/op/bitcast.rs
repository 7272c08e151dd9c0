//! `bitcast`: the same bits as another type.

use super::check;
use crate::graph::{DType, OpError, Tensor, TensorType};

operator! {
    /// The elements of another type with the same bits. Both types have the same size, and neither is bool.
    Bitcast = "bitcast"(data) {
        /// The element type of the result.
        dtype: DType,
    }
}

impl Bitcast {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        let from = inputs[0].dtype;
        if from.size_bytes() != self.dtype.size_bytes() || from == DType::Bool || self.dtype == DType::Bool {
            let reason = format!("must be a type of {} bytes other than bool, found {}", from.size_bytes(), self.dtype);
            return Err(OpError::attribute("dtype", reason));
        }
        Ok(inputs[0].with_dtype(self.dtype))
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let to = Tensor::from_bytes(self.dtype, inputs[0].shape(), &inputs[0].to_bytes());
        to.ok_or_else(|| OpError::operand("data", format!("of elements as wide as {}", self.dtype), inputs[0].ty()))
    }
}
