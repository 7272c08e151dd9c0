//! `clip`: clamps values to two bounds.

use super::check;
use crate::graph::{DType, OpError, Tensor, TensorType};

operator! {
    /// `min(max(data, lo), hi)`, f32 or i8; NaN stays NaN. With i8 data the bounds are 8-bit integers.
    Clip = "clip"(data) {
        /// Lower bound.
        lo: f32,
        /// Upper bound.
        hi: f32,
    }
}

impl Clip {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        check::dtype("data", inputs[0], &[DType::F32, DType::I8])?;
        // False for a NaN bound, which is not ordered.
        if !matches!(self.lo.partial_cmp(&self.hi), Some(o) if o.is_le()) {
            let reason = format!("must not exceed `hi`, found {} and {}", self.lo, self.hi);
            return Err(OpError::attribute("lo", reason));
        }
        let byte = |x: f32| x.fract() == 0.0 && (-128.0..=127.0).contains(&x);
        if inputs[0].dtype == DType::I8 && !(byte(self.lo) && byte(self.hi)) {
            let reason = format!("and `hi` must be 8-bit integers with i8 data, found {} and {}", self.lo, self.hi);
            return Err(OpError::attribute("lo", reason));
        }
        Ok(inputs[0].clone())
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        if inputs[0].dtype() == DType::I8 {
            let (x, lo, hi) = (inputs[0].as_slice::<i8>()?, self.lo as i8, self.hi as i8);
            return Ok(Tensor::from_fn(inputs[0].shape(), |i| x[i].clamp(lo, hi)));
        }
        let x = inputs[0].as_slice::<f32>()?;
        Ok(Tensor::from_fn(inputs[0].shape(), |i| x[i].clamp(self.lo, self.hi)))
    }
}
