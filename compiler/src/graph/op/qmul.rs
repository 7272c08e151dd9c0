//! `qmul`: the product of two quantized tensors.

use super::add::broadcast_index;
use super::check;
use crate::graph::{DType, OpError, Tensor, TensorType};
use tilewright_hw::num::{self, Requant, Rounding};

operator! {
    /// [`num::quantized_mul`] of two i8 tensors, whose shapes broadcast: i8.
    QMul = "qmul" {
        /// Zero point of the first operand.
        a_zero_point: i32,
        /// Zero point of the second operand.
        b_zero_point: i32,
        /// Fixed-point factor, a fraction of 2^31.
        multiplier: i32,
        /// Shift, with the sign of `mode`.
        shift: i8,
        /// Added after scaling.
        zero_point: i32,
        /// Least result.
        lo: i32,
        /// Greatest result.
        hi: i32,
        /// How the product is rounded.
        mode: Rounding,
    }
}

impl QMul {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 2, 2)?;
        check::dtype("a", inputs[0], &[DType::I8])?;
        check::dtype("b", inputs[1], &[DType::I8])?;
        check::zero_point_i8("a_zero_point", self.a_zero_point)?;
        check::zero_point_i8("b_zero_point", self.b_zero_point)?;
        check::zero_point_i8("zero_point", self.zero_point)?;
        check::clamp_i8(self.lo, self.hi)?;
        Ok(TensorType { dtype: DType::I8, dims: check::broadcast(inputs[0], inputs[1])? })
    }

    /// What each product goes through.
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
        let (ia, ib) = broadcast_index(inputs[0].shape(), inputs[1].shape(), &shape);
        let (a, b, r) = (inputs[0].as_slice::<i8>()?, inputs[1].as_slice::<i8>()?, self.requant());
        let (za, zb) = (self.a_zero_point, self.b_zero_point);
        let product = |i: usize| num::quantized_mul(i32::from(a[ia[i]]), i32::from(b[ib[i]]), za, zb, &r);
        Ok(Tensor::from_fn(&shape, |i| product(i) as i8))
    }
}
