//! `resample`: weighted sums of elements along one dimension.

use super::check;
use super::gather::places;
use crate::graph::tensor::strides;
use crate::graph::{DType, Dim, OpError, Tensor, TensorType};

operator! {
    /// Element `o` along a dimension is the sum over taps `t` of `data[index[o, t]] * weight[o, t]`, f32.
    ///
    /// Operands: data, index `[O, T]` (i32, from 0), weight `[O, T]`. Interpolation of every kind has this form.
    Resample = "resample" {
        /// The dimension.
        axis: usize,
    }
}

impl Resample {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 3, 3)?;
        let data = inputs[0];
        check::dtype("data", data, &[DType::F32])?;
        check::dtype("index", inputs[1], &[DType::I32])?;
        check::dtype("weight", inputs[2], &[DType::F32])?;
        check::rank("index", inputs[1], 2)?;
        check::axis(self.axis, data)?;
        if inputs[1].dims != inputs[2].dims {
            return Err(OpError::operand("weight", "of the index's shape", inputs[2]));
        }
        if check::known_dim("data", data, self.axis)? == 0 {
            return Err(OpError::operand("data", format!("of elements along {}", self.axis), data));
        }
        let mut out = data.clone();
        out.dims[self.axis] = Dim::Fixed(check::known_dim("index", inputs[1], 0)?);
        Ok(out)
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let types: Vec<_> = inputs.iter().map(|t| t.ty()).collect();
        let shape = check::known("data", &self.infer(&types.iter().collect::<Vec<_>>())?)?;
        let (x, w) = (inputs[0].as_slice::<f32>()?, inputs[2].as_slice::<f32>()?);
        let n = inputs[0].shape()[self.axis];
        let (inner, taps) = (strides(inputs[0].shape())[self.axis], inputs[1].shape()[1]);
        let places = places(inputs[1], n)?;
        let to = shape[self.axis];
        Ok(Tensor::from_fn(&shape, |i| {
            let (outer, o, rest) = (i / inner / to, i / inner % to, i % inner);
            let term = |t: usize| {
                let k = o * taps + t;
                f64::from(x[(outer * n + places[k]) * inner + rest]) * f64::from(w[k])
            };
            (0..taps).map(term).sum::<f64>() as f32
        }))
    }
}
