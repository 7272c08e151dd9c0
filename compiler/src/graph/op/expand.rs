//! `expand`: a tensor repeated as broadcasting repeats it.

use super::add::broadcast_index;
use super::check;
use crate::graph::{OpError, Tensor, TensorType};

operator! {
    /// The data broadcast to a shape as NumPy does; any element type.
    Expand = "expand" {
        /// The sizes.
        shape: Vec<usize>,
    }
}

impl Expand {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        let out = TensorType::new(inputs[0].dtype, &self.shape);
        match check::broadcast(inputs[0], &out) {
            Ok(dims) if dims == out.dims => Ok(out),
            _ => Err(OpError::attribute("shape", format!("{:?} is none that {} broadcasts to", self.shape, inputs[0]))),
        }
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let (index, _) = broadcast_index(inputs[0].shape(), &self.shape, &self.shape);
        Ok(inputs[0].gathered(&self.shape, &index))
    }
}
