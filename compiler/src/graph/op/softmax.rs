//! `softmax`: exponentials, normalized to sum to 1.

use super::check;
use crate::graph::tensor::strides;
use crate::graph::{DType, OpError, Tensor, TensorType};
use crate::math::{Single, row_sum};

operator! {
    /// `exp(beta * x)` divided by its sum along `axis`.
    ///
    /// Floats; or i8 with the given scales, computed as TFLite does: the exponential of the distance to the greatest
    /// element comes from a table of 256 floats, the sum is a float, and the quotient is rounded to nearest.
    Softmax = "softmax"(data) {
        /// The dimension along which results sum to 1.
        axis: usize,
        /// Factor of the exponent.
        beta: f32 = 1.0,
        /// Scale of i8 data; 1 with floats.
        input_scale: f32 = 1.0,
        /// Scale of the i8 result; 1 with floats.
        output_scale: f32 = 1.0,
        /// Zero point of the i8 result; 0 with floats.
        output_zero_point: i32 = 0,
    }
}

impl Softmax {
    /// The float form.
    pub fn float(axis: usize, beta: f32) -> Softmax {
        Softmax { axis, beta, input_scale: 1.0, output_scale: 1.0, output_zero_point: 0 }
    }

    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        check::dtype("data", inputs[0], DType::FLOATS_OR_I8)?;
        check::axis(self.axis, inputs[0])?;
        check::zero_point_i8("output_zero_point", self.output_zero_point)?;
        let scales = [("beta", self.beta), ("input_scale", self.input_scale), ("output_scale", self.output_scale)];
        for (name, s) in scales {
            if !(s.is_finite() && s > 0.0) {
                return Err(OpError::attribute(name, format!("must be positive and finite, found {s}")));
            }
        }
        Ok(inputs[0].clone())
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = inputs[0].shape();
        let (step, len) = (strides(shape)[self.axis], shape[self.axis]);
        let rows: Vec<usize> = (0..inputs[0].len()).filter(|i| i / step % len == 0).collect();
        let row = |start: usize| (0..len).map(move |k| start + k * step);
        let sum = |exp: &dyn Fn(usize) -> f32| match step {
            1 => row_sum(len, exp),
            _ => (0..len).map(exp).sum(),
        };
        if inputs[0].dtype() == DType::I8 {
            let x = inputs[0].as_slice::<i8>()?;
            let table: Vec<f32> = (0..256).map(|d| Single::exp(-self.input_scale * self.beta * d as f32)).collect();
            let mut out = vec![0i8; x.len()];
            for &start in &rows {
                let greatest = row(start).map(|i| i32::from(x[i])).max().unwrap_or(0);
                let exp = |i: usize| table[(greatest - i32::from(x[i])) as usize];
                let inverse = 1.0 / (sum(&|k| exp(start + k * step)) * self.output_scale);
                for i in row(start) {
                    let q = (exp(i) * inverse).round() as i32 + self.output_zero_point;
                    out[i] = q.clamp(-128, 127) as i8;
                }
            }
            return Ok(Tensor::from_fn(shape, |i| out[i]));
        }
        if let Ok(x) = inputs[0].as_slice::<f64>() {
            let mut out = vec![0.0; x.len()];
            for &start in &rows {
                let greatest = row(start).fold(f64::NEG_INFINITY, |m, i| m.max(x[i]));
                row(start).for_each(|i| out[i] = ((x[i] - greatest) * f64::from(self.beta)).exp());
                let sum: f64 = row(start).map(|i| out[i]).sum();
                row(start).for_each(|i| out[i] /= sum);
            }
            return Ok(Tensor::from_fn(shape, |i| out[i]));
        }
        let x = inputs[0].as_slice::<f32>()?;
        let mut out = vec![0f32; x.len()];
        for &start in &rows {
            let greatest = row(start).fold(f32::NEG_INFINITY, |m, i| m.max(x[i]));
            for i in row(start) {
                out[i] = Single::exp((x[i] - greatest) * self.beta);
            }
            let sum = sum(&|k| out[start + k * step]);
            for i in row(start) {
                out[i] /= sum;
            }
        }
        Ok(Tensor::from_fn(shape, |i| out[i]))
    }
}
