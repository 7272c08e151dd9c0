//! `qsquared_difference`: the square of the difference of two quantized tensors.

use super::add::broadcast_index;
use super::check;
use crate::graph::{DType, OpError, Tensor, TensorType};
use tilewright_hw::num::{self, Qadd};

operator! {
    /// [`num::quantized_squared_difference`] of two i8 tensors, whose shapes broadcast: i8.
    QSquaredDifference = "qsquared_difference" {
        /// Zero points, multipliers and shifts of both operands and of the result, left shift and clamp.
        params: Qadd,
    }
}

impl QSquaredDifference {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 2, 2)?;
        check::dtype("a", inputs[0], &[DType::I8])?;
        check::dtype("b", inputs[1], &[DType::I8])?;
        check::clamp_i8(self.params.lo, self.params.hi)?;
        Ok(TensorType { dtype: DType::I8, dims: check::broadcast(inputs[0], inputs[1])? })
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = check::known("a", &self.infer(&[&inputs[0].ty(), &inputs[1].ty()])?)?;
        let (ia, ib) = broadcast_index(inputs[0].shape(), inputs[1].shape(), &shape);
        let (a, b) = (inputs[0].as_slice::<i8>()?, inputs[1].as_slice::<i8>()?);
        let square = |i: usize| {
            num::quantized_squared_difference(i32::from(a[ia[i]]), i32::from(b[ib[i]]), &self.params)
        };
        Ok(Tensor::from_fn(&shape, |i| square(i) as i8))
    }
}
