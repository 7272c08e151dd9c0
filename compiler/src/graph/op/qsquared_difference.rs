//! `qsquared_difference`: the square of the difference of two quantized tensors.

use super::add::int8_pairs;
use super::check;
use crate::graph::{OpError, Tensor, TensorType};
use tilewright_hw::num::{self, Qadd};

operator! {
    /// [`num::quantized_squared_difference`] of two i8 tensors -> i8; their shapes broadcast.
    QSquaredDifference = "qsquared_difference"(a, b) {
        /// Zero point, multiplier and shift of `a`, of `b` and of the result, then the left shift, `lo` and `hi`.
        params: Qadd,
    }
}

impl QSquaredDifference {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        let ty = check::int8_pair(inputs)?;
        check::clamp_i8(self.params.lo, self.params.hi)?;
        Ok(ty)
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = check::known("a", &self.infer(&[&inputs[0].ty(), &inputs[1].ty()])?)?;
        int8_pairs(inputs, &shape, |a, b| num::quantized_squared_difference(a, b, &self.params))
    }
}
