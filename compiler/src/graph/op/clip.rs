//! `clip`: clamps values to two bounds.

use super::check;
use crate::graph::tensor::with_element;
use crate::graph::{DType, Element, OpError, Tensor, TensorType};

operator! {
    /// `min(max(data, lo), hi)`, numbers; NaN stays NaN. With integers the bounds are integers of the data's type.
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
        check::dtype("data", inputs[0], DType::NUMBERS)?;
        // False for a NaN bound, which is not ordered.
        if !matches!(self.lo.partial_cmp(&self.hi), Some(o) if o.is_le()) {
            let reason = format!("must not exceed `hi`, found {} and {}", self.lo, self.hi);
            return Err(OpError::attribute("lo", reason));
        }
        for (name, bound) in [("lo", self.lo), ("hi", self.hi)] {
            check::constant(name, bound, inputs[0].dtype)?;
        }
        Ok(inputs[0].clone())
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        with_element!(inputs[0].dtype(), T => {
            clamped::<T>(inputs[0], T::of_double(self.lo.into()), T::of_double(self.hi.into()))
        })
    }
}

/// The elements, those below `lo` as `lo`, and those above `hi` as `hi`.
fn clamped<T: Element>(data: &Tensor, lo: T, hi: T) -> Result<Tensor, OpError> {
    let x = data.as_slice::<T>()?;
    let clamp = |x: T| match x {
        x if x < lo => lo,
        x if x > hi => hi,
        x => x,
    };
    Ok(Tensor::from_fn(data.shape(), |i| clamp(x[i])))
}
