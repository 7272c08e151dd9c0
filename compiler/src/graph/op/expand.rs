//! `expand`: broadcasts a tensor to a shape.

use super::add::broadcast_index;
use super::check;
use crate::graph::{OpError, Tensor, TensorType};

operator! {
    /// The data broadcast to a shape as in NumPy; any element type.
    Expand = "expand"(data) {
        /// Sizes of the result.
        shape: Vec<usize>,
    }
}

impl Expand {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        let out = TensorType::new(inputs[0].dtype, &self.shape);
        match check::broadcast(inputs[0], &out) {
            Ok(dims) if dims == out.dims => Ok(out),
            _ => {
                let reason = format!("{:?} is not a shape that {} broadcasts to", self.shape, inputs[0]);
                Err(OpError::attribute("shape", reason))
            }
        }
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let (index, _) = broadcast_index(inputs[0].shape(), &self.shape, &self.shape);
        Ok(inputs[0].gathered(&self.shape, &index))
    }
}
