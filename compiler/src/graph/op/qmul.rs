//! `qmul`: the product of two quantized tensors.

use super::add::int8_pairs;
use super::check;
use crate::graph::{OpError, Tensor, TensorType};
use tilewright_hw::num::{self, Requant, Rounding};

operator! {
    /// [`num::quantized_mul`] of two i8 tensors -> i8; their shapes broadcast.
    QMul = "qmul"(a, b) {
        /// Zero point of the first operand.
        a_zero_point: i32 = 0,
        /// Zero point of the second operand.
        b_zero_point: i32 = 0,
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

impl QMul {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        let ty = check::int8_pair(inputs)?;
        check::zero_point_i8("a_zero_point", self.a_zero_point)?;
        check::zero_point_i8("b_zero_point", self.b_zero_point)?;
        check::zero_point_i8("zero_point", self.zero_point)?;
        check::clamp_i8(self.lo, self.hi)?;
        Ok(ty)
    }

    /// Requantization of each product.
    pub fn requant(&self) -> Requant {
        Requant {
            bias: 0,
            multiplier: self.multiplier,
            shift: self.shift,
            zero_point: self.zero_point,
            lo: self.lo,
            hi: self.hi,
            mode: self.mode,
        }
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = check::known("a", &self.infer(&[&inputs[0].ty(), &inputs[1].ty()])?)?;
        let r = self.requant();
        let (za, zb) = (self.a_zero_point, self.b_zero_point);
        int8_pairs(inputs, &shape, |a, b| num::quantized_mul(a, b, za, zb, &r))
    }
}
