//! `layer_norm`: data less their mean, divided by their standard deviation.

use super::check;
use crate::graph::tensor::{Real, with_real};
use crate::graph::{DType, OpError, Tensor, TensorType};

operator! {
    /// `(data - mean) / sqrt(variance + epsilon)`, with mean and variance over the dimensions from `axis` on, times
    /// `scale`, plus `bias`. Both are optional, and have the sizes of these dimensions; all are floats of one type.
    LayerNorm = "layer_norm"(data, [scale], [bias]) {
        /// The first dimension that is normalized.
        axis: usize,
        /// Added to the variance.
        epsilon: f32 = 1e-5,
    }
}

impl LayerNorm {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 3)?;
        let data = inputs[0];
        check::dtype("data", data, DType::FLOATS)?;
        check::axis(self.axis, data)?;
        if !(self.epsilon.is_finite() && self.epsilon >= 0.0) {
            let reason = format!("must be finite and not negative, found {}", self.epsilon);
            return Err(OpError::attribute("epsilon", reason));
        }
        let normalized = TensorType { dtype: data.dtype, dims: data.dims[self.axis..].to_vec() };
        for (name, ty) in ["scale", "bias"].into_iter().zip(&inputs[1..]) {
            if **ty != normalized {
                return Err(OpError::operand(name, format!("of type {normalized}, like the normalized data"), ty));
            }
        }
        Ok(data.clone())
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        with_real!(inputs[0].dtype(), T => self.normalized::<T>(inputs))
    }

    fn normalized<T: Real>(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let x = inputs[0].as_slice::<T>()?;
        let row: usize = inputs[0].shape()[self.axis..].iter().product();
        let parameter = |i: usize| inputs.get(i).map(|t| t.as_slice::<T>()).transpose();
        let (scale, bias) = (parameter(1)?, parameter(2)?);
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / row as f64;
        let mut out = Vec::with_capacity(x.len());
        for data in x.chunks(row.max(1)) {
            let middle = mean(&mut data.iter().map(|x| x.double()));
            let variance = mean(&mut data.iter().map(|x| (x.double() - middle).powi(2)));
            let factor = 1.0 / (variance + f64::from(self.epsilon)).sqrt();
            out.extend(data.iter().enumerate().map(|(i, x)| {
                let standard = (x.double() - middle) * factor * scale.map_or(1.0, |s| s[i].double());
                T::of_double(standard + bias.map_or(0.0, |b| b[i].double()))
            }));
        }
        Ok(Tensor::from_fn(inputs[0].shape(), |i| out[i]))
    }
}
