//! `requantize`: scales an accumulator to the next layer's 8-bit integers.

use super::check;
use super::quantize::channel;
use crate::graph::{DType, OpError, Tensor, TensorType};
use tilewright_hw::num::{self, Requant, Rounding};

operator! {
    /// [`num::requantize`] of each element of `acc` (i32) -> i8. `bias [C]`, `multiplier [C]` and `shift [C]` (i32) are
    /// indexed along `axis`.
    Requantize = "requantize"(acc, bias, multiplier, shift) {
        /// The channel dimension.
        axis: usize,
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

impl Requantize {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 4, 4)?;
        check::dtype("acc", inputs[0], &[DType::I32])?;
        check::axis(self.axis, inputs[0])?;
        for (name, ty) in ["bias", "multiplier", "shift"].iter().zip(&inputs[1..]) {
            check::vector(name, ty, DType::I32, &inputs[0].dims[self.axis])?;
        }
        check::zero_point_i8("zero_point", self.zero_point)?;
        check::clamp_i8(self.lo, self.hi)?;
        Ok(inputs[0].with_dtype(DType::I8))
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = inputs[0].shape();
        let acc = inputs[0].as_slice::<i32>()?;
        let (bias, multiplier, shift) =
            (inputs[1].as_slice::<i32>()?, inputs[2].as_slice::<i32>()?, inputs[3].as_slice::<i32>()?);
        let parameters: Vec<Requant> = (0..shape[self.axis])
            .map(|c| Requant {
                bias: bias[c],
                multiplier: multiplier[c],
                shift: shift[c].clamp(-128, 127) as i8,
                zero_point: self.zero_point,
                lo: self.lo,
                hi: self.hi,
                mode: self.mode,
            })
            .collect();
        let channel = channel(shape, self.axis, parameters.len());
        Ok(Tensor::from_fn(shape, |i| num::requantize(acc[i], &parameters[channel(i)]) as i8))
    }
}
