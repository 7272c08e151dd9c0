//! `rescale`: converts quantized values to another scale and zero point.

use super::check;
use crate::graph::{DType, OpError, Tensor, TensorType};
use tilewright_hw::num::{self, Requant, Rounding};

operator! {
    /// [`num::requantize`] of `data - data_zero_point`, i8 -> i8.
    Rescale = "rescale"(data) {
        /// Zero point of the data.
        data_zero_point: i32 = 0,
        /// Fixed-point factor, a fraction of 2^31.
        multiplier: i32,
        /// Shift; `mode` defines its sign.
        shift: i8,
        /// Added after scaling.
        zero_point: i32 = 0,
        /// Least result.
        lo: i32 = -128,
        /// Greatest result.
        hi: i32 = 127,
        /// How the product is rounded.
        mode: Rounding = Rounding::Double,
    }
}

impl Rescale {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        check::dtype("data", inputs[0], &[DType::I8])?;
        check::zero_point_i8("data_zero_point", self.data_zero_point)?;
        check::zero_point_i8("zero_point", self.zero_point)?;
        check::clamp_i8(self.lo, self.hi)?;
        Ok(inputs[0].clone())
    }

    /// Requantization of each element.
    pub fn requant(&self) -> Requant {
        Requant {
            bias: -self.data_zero_point,
            multiplier: self.multiplier,
            shift: self.shift,
            zero_point: self.zero_point,
            lo: self.lo,
            hi: self.hi,
            mode: self.mode,
        }
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let (x, r) = (inputs[0].as_slice::<i8>()?, self.requant());
        Ok(Tensor::from_fn(inputs[0].shape(), |i| num::requantize(i32::from(x[i]), &r) as i8))
    }
}
