//! `concat`: tensors joined along a dimension.

use super::check;
use crate::graph::tensor::{strides, with_element};
use crate::graph::{Dim, Element, OpError, Tensor, TensorType};

operator! {
    /// The operands joined along a dimension; they have the same element type, and all other sizes are equal.
    Concat = "concat"({data}) {
        /// The dimension.
        axis: usize,
    }
}

impl Concat {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, usize::MAX)?;
        check::axis(self.axis, inputs[0])?;
        let mut out = inputs[0].clone();
        let mut size = 0usize;
        for (i, t) in inputs.iter().enumerate() {
            let name = format!("{i}");
            check::dtype(&name, t, &[out.dtype])?;
            check::rank(&name, t, out.rank())?;
            if (0..out.rank()).any(|a| a != self.axis && t.dims[a] != out.dims[a]) {
                let expected = format!("of the sizes of {} except along dimension {}", inputs[0], self.axis);
                return Err(OpError::operand(&name, expected, t));
            }
            let n = check::known_dim(&name, t, self.axis)?;
            size = size.checked_add(n).ok_or_else(|| OpError::attribute("axis", "has too many elements"))?;
        }
        out.dims[self.axis] = Dim::Fixed(size);
        Ok(out)
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let types: Vec<_> = inputs.iter().map(|t| t.ty()).collect();
        let shape = check::known("0", &self.infer(&types.iter().collect::<Vec<_>>())?)?;
        with_element!(inputs[0].dtype(), T => self.join::<T>(inputs, &shape))
    }

    fn join<T: Element>(&self, inputs: &[&Tensor], shape: &[usize]) -> Result<Tensor, OpError> {
        let outer: usize = shape[..self.axis].iter().product();
        let mut data = Vec::with_capacity(shape.iter().product());
        for o in 0..outer {
            for t in inputs {
                let run = t.shape()[self.axis] * strides(t.shape())[self.axis];
                data.extend_from_slice(&t.as_slice::<T>()?[o * run..][..run]);
            }
        }
        Tensor::new(shape, data).ok_or_else(|| OpError::operand("0", "of its shape's size", inputs[0].ty()))
    }
}
