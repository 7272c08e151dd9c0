//! `cast`: converts to another element type.

use super::check;
use crate::graph::tensor::with_element;
use crate::graph::{DType, Element, OpError, Tensor, TensorType};

operator! {
    /// Each element converted to another type: floats become integers by truncation and saturation (NaN becomes 0),
    /// integers wrap, and a boolean is true for anything but 0.
    Cast = "cast"(data) {
        /// The element type of the result.
        dtype: DType,
    }
}

impl Cast {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        Ok(inputs[0].with_dtype(self.dtype))
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = inputs[0].shape();
        let floats = inputs[0].dtype().is_float();
        Ok(with_element!(self.dtype, T => match floats {
            true => converted(shape, inputs[0].doubles(), <T as Element>::of_double),
            false => converted(shape, inputs[0].ints(), <T as Element>::of_int),
        }))
    }
}

fn converted<F: Copy, T: Element>(shape: &[usize], from: Vec<F>, to: fn(F) -> T) -> Tensor {
    Tensor::from_fn(shape, |i| to(from[i]))
}
