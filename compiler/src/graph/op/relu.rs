//! `relu`: the positive part.

use super::check;
use crate::graph::tensor::with_element;
use crate::graph::{DType, Element, OpError, Tensor, TensorType};

operator! {
    /// `max(data, 0)` of numbers; NaN stays NaN.
    Relu = "relu"(data) {}
}

impl Relu {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        check::dtype("data", inputs[0], DType::NUMBERS)?;
        Ok(inputs[0].clone())
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        with_element!(inputs[0].dtype(), T => positive::<T>(inputs[0]))
    }
}

fn positive<T: Element>(data: &Tensor) -> Result<Tensor, OpError> {
    let (x, zero) = (data.as_slice::<T>()?, T::default());
    Ok(Tensor::from_fn(data.shape(), |i| if x[i] < zero { zero } else { x[i] }))
}
