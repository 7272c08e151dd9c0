//! `shift_sign`: converts unsigned bytes to signed ones and back.

use super::check;
use crate::graph::{DType, OpError, Tensor, TensorType};

operator! {
    /// `data - 128` from u8 to i8, `data + 128` from i8 to u8: flips the highest bit.
    ///
    /// Used at the inputs and outputs of uint8 networks, which are int8 inside.
    ShiftSign = "shift_sign"(data) {}
}

impl ShiftSign {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        check::dtype("data", inputs[0], &[DType::I8, DType::U8])?;
        let to = if inputs[0].dtype == DType::I8 { DType::U8 } else { DType::I8 };
        Ok(inputs[0].with_dtype(to))
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        if let Ok(x) = inputs[0].as_slice::<u8>() {
            return Ok(Tensor::from_fn(inputs[0].shape(), |i| (x[i] ^ 0x80) as i8));
        }
        let x = inputs[0].as_slice::<i8>()?;
        Ok(Tensor::from_fn(inputs[0].shape(), |i| x[i] as u8 ^ 0x80))
    }
}
