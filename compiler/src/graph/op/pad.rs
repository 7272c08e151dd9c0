//! `pad`: adds a border with one value.

use super::check;
use crate::graph::tensor::{strides, with_element};
use crate::graph::{Dim, Element, OpError, Tensor, TensorType};

operator! {
    /// `data` with `before` and `after` elements of `value` added to each dimension, of any type.
    Pad = "pad"(data) {
        /// Elements added at the start, one number per dimension.
        before: Vec<usize>,
        /// Elements added at the end, one number per dimension.
        after: Vec<usize>,
        /// The border's value, which the data's type must have.
        value: f32 = 0.0,
    }
}

impl Pad {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        let data = inputs[0];
        for (name, v) in [("before", &self.before), ("after", &self.after)] {
            if v.len() != data.rank() {
                let reason = format!("must have {} values, one per dimension, found {}", data.rank(), v.len());
                return Err(OpError::attribute(name, reason));
            }
        }
        check::constant("value", self.value, data.dtype)?;
        let mut dims = Vec::with_capacity(data.rank());
        for (i, d) in data.dims.iter().enumerate() {
            let (before, after) = (self.before[i], self.after[i]);
            if before == 0 && after == 0 {
                dims.push(d.clone());
                continue;
            }
            let size = check::known_dim("data", data, i)?;
            let size = size.checked_add(before).and_then(|n| n.checked_add(after));
            dims.push(Dim::Fixed(size.ok_or_else(|| OpError::attribute("before", "is too large"))?));
        }
        Ok(TensorType { dtype: data.dtype, dims })
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = check::known("data", &self.infer(&[&inputs[0].ty()])?)?;
        with_element!(inputs[0].dtype(), T => self.border(inputs[0], &shape, T::of_double(self.value.into())))
    }

    fn border<T: Element>(&self, x: &Tensor, shape: &[usize], value: T) -> Result<Tensor, OpError> {
        let (from, to) = (strides(x.shape()), strides(shape));
        let data = x.as_slice::<T>()?;
        let source = |i: usize| {
            let mut flat = 0;
            for d in 0..shape.len() {
                let p = (i / to[d] % shape[d]).checked_sub(self.before[d]).filter(|&p| p < x.shape()[d])?;
                flat += p * from[d];
            }
            Some(flat)
        };
        Ok(Tensor::from_fn(shape, |i| source(i).map_or(value, |s| data[s])))
    }
}
