//! `relu`: the positive part.

use super::check;
use crate::graph::{DType, OpError, Tensor, TensorType};

operator! {
    /// `max(data, 0)`, f32; NaN stays NaN.
    Relu = "relu"(data) {}
}

impl Relu {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        check::dtype("data", inputs[0], &[DType::F32])?;
        Ok(inputs[0].clone())
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let x = inputs[0].as_slice::<f32>()?;
        Ok(Tensor::from_fn(inputs[0].shape(), |i| if x[i] < 0.0 { 0.0 } else { x[i] }))
    }
}
