//! `narrow`: floats rounded to those of a narrower type.

use super::attr::words;
use super::check;
use crate::graph::{DType, OpError, Tensor, TensorType};
use tilewright_runtime::tensor::NarrowFloat;

words! {
    NarrowFloat, "a float type of at most 16 bits, such as `bf16`" {
        NarrowFloat::F16 = "f16", NarrowFloat::Bf16 = "bf16", NarrowFloat::F8E4m3fn = "f8e4m3fn",
        NarrowFloat::F8E4m3fnuz = "f8e4m3fnuz", NarrowFloat::F8E5m2 = "f8e5m2", NarrowFloat::F8E5m2fnuz = "f8e5m2fnuz",
        NarrowFloat::F8E8m0 = "f8e8m0", NarrowFloat::F4E2m1 = "f4e2m1",
    }
}

operator! {
    /// Each f32 rounded to the nearest number of a narrower type, ties to even; it stays an f32. For `f8e8m0` it is the
    /// least power of two that is not less.
    Narrow = "narrow"(data) {
        /// The narrower type.
        float: NarrowFloat,
        /// A number beyond the greatest becomes the greatest. Otherwise it becomes infinity, or NaN if the type has no
        /// infinity. `f4e2m1` always saturates, and has -0 for NaN.
        saturate: bool = false,
    }
}

impl Narrow {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        check::dtype("data", inputs[0], &[DType::F32])?;
        Ok(inputs[0].clone())
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let x = inputs[0].as_slice::<f32>()?;
        Ok(Tensor::from_fn(inputs[0].shape(), |i| self.float.round(x[i], self.saturate)))
    }
}
