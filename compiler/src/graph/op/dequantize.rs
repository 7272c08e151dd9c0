//! `dequantize`: converts quantized integers to real values.

use super::check;
use super::quantize::channel;
use crate::graph::{DType, OpError, Tensor, TensorData, TensorType};

operator! {
    /// `(data - zero_point) * scale`; i8, u8 or i32 -> f32.
    ///
    /// One scale and zero point, or one for each index along `axis`.
    Dequantize = "dequantize"(data) {
        /// Real value of one step.
        scale: Vec<f32>,
        /// The integer that represents 0.
        zero_point: Vec<i32> = vec![0],
        /// The dimension that has a scale per index, if there are several scales.
        axis: usize = 0,
    }
}

impl Dequantize {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        check::dtype("data", inputs[0], &[DType::I8, DType::U8, DType::I32])?;
        check::quantization(&self.scale, &self.zero_point, self.axis, inputs[0], i32::MIN..=i32::MAX)?;
        Ok(inputs[0].with_dtype(DType::F32))
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = inputs[0].shape();
        let channel = channel(shape, self.axis, self.scale.len());
        let real = |i: usize, q: i32| {
            let c = channel(i);
            (i64::from(q) - i64::from(self.zero_point[c])) as f32 * self.scale[c]
        };
        Ok(match inputs[0].data() {
            TensorData::I8(v) => Tensor::from_fn(shape, |i| real(i, i32::from(v[i]))),
            TensorData::U8(v) => Tensor::from_fn(shape, |i| real(i, i32::from(v[i]))),
            TensorData::I32(v) => Tensor::from_fn(shape, |i| real(i, v[i])),
            _ => return Err(OpError::operand("data", "of type i8, u8 or i32", inputs[0].ty())),
        })
    }
}
