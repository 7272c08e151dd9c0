//! `cast`: converts to another element type.

use super::check;
use crate::graph::{DType, OpError, Tensor, TensorData, TensorType};

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
        Ok(match inputs[0].data() {
            TensorData::F32(v) => match self.dtype {
                DType::F32 => Tensor::from_fn(shape, |i| v[i]),
                DType::I8 => Tensor::from_fn(shape, |i| v[i] as i8),
                DType::U8 => Tensor::from_fn(shape, |i| v[i] as u8),
                DType::I32 => Tensor::from_fn(shape, |i| v[i] as i32),
                DType::I64 => Tensor::from_fn(shape, |i| v[i] as i64),
                DType::Bool => Tensor::from_fn(shape, |i| v[i] != 0.0),
            },
            TensorData::I8(v) => self.integers(shape, |i| v[i].into()),
            TensorData::U8(v) => self.integers(shape, |i| v[i].into()),
            TensorData::I32(v) => self.integers(shape, |i| v[i].into()),
            TensorData::I64(v) => self.integers(shape, |i| v[i]),
            TensorData::Bool(v) => self.integers(shape, |i| v[i].into()),
        })
    }

    fn integers(&self, shape: &[usize], v: impl Fn(usize) -> i64) -> Tensor {
        match self.dtype {
            DType::F32 => Tensor::from_fn(shape, |i| v(i) as f32),
            DType::I8 => Tensor::from_fn(shape, |i| v(i) as i8),
            DType::U8 => Tensor::from_fn(shape, |i| v(i) as u8),
            DType::I32 => Tensor::from_fn(shape, |i| v(i) as i32),
            DType::I64 => Tensor::from_fn(shape, v),
            DType::Bool => Tensor::from_fn(shape, |i| v(i) != 0),
        }
    }
}
