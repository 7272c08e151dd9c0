//! `resample`: weighted sums of elements along one dimension.

use super::check;
use super::gather::places;
use crate::graph::tensor::{strides, with_real};
use crate::graph::{DType, Dim, Element, OpError, Tensor, TensorType};

operator! {
    /// Element `o` along a dimension is the sum over taps `t` of `data[index[o, t]] * weight[o, t]`.
    ///
    /// Operands: data, index `[O, T]` (i32, from 0), weight `[O, T]`. Floats with weights of their type; or i8 or i32 data with
    /// i32 weights, whose sums are i32 and wrap. Every kind of interpolation has this form.
    Resample = "resample"(data, index, weight) {
        /// The dimension.
        axis: usize,
    }
}

impl Resample {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 3, 3)?;
        let data = inputs[0];
        check::dtype("data", data, &[DType::F32, DType::I8, DType::I32, DType::F64])?;
        let sum = if data.dtype.is_float() { data.dtype } else { DType::I32 };
        check::dtype("index", inputs[1], &[DType::I32])?;
        check::dtype("weight", inputs[2], &[sum])?;
        check::rank("index", inputs[1], 2)?;
        check::axis(self.axis, data)?;
        if inputs[1].dims != inputs[2].dims {
            return Err(OpError::operand("weight", "of the index's shape", inputs[2]));
        }
        if check::known_dim("data", data, self.axis)? == 0 {
            return Err(OpError::operand("data", format!("non-empty along dimension {}", self.axis), data));
        }
        let mut out = data.with_dtype(sum);
        out.dims[self.axis] = Dim::Fixed(check::known_dim("index", inputs[1], 0)?);
        Ok(out)
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let types: Vec<_> = inputs.iter().map(|t| t.ty()).collect();
        let shape = check::known("data", &self.infer(&types.iter().collect::<Vec<_>>())?)?;
        let n = inputs[0].shape()[self.axis];
        let (inner, taps) = (strides(inputs[0].shape())[self.axis], inputs[1].shape()[1]);
        let places = places(inputs[1], n)?;
        let to = shape[self.axis];
        // For each tap of an element, the index of the data and of the weight.
        let terms = |i: usize| {
            let (outer, o, rest) = (i / inner / to, i / inner % to, i % inner);
            let places = &places;
            (o * taps..(o + 1) * taps).map(move |k| ((outer * n + places[k]) * inner + rest, k))
        };
        if inputs[0].dtype().is_float() {
            return with_real!(inputs[0].dtype(), T => {
                let (x, w) = (inputs[0].as_slice::<T>()?, inputs[2].as_slice::<T>()?);
                let sum = |i| T::of_double(terms(i).map(|(at, k)| x[at].double() * w[k].double()).sum::<f64>());
                Ok(Tensor::from_fn(&shape, sum))
            });
        }
        let x: Vec<i32> = match inputs[0].dtype() {
            DType::I8 => inputs[0].as_slice::<i8>()?.iter().map(|&v| i32::from(v)).collect(),
            _ => inputs[0].as_slice::<i32>()?.to_vec(),
        };
        let w = inputs[2].as_slice::<i32>()?;
        let sum = |i| terms(i).fold(0i32, |sum, (at, k)| sum.wrapping_add(x[at].wrapping_mul(w[k])));
        Ok(Tensor::from_fn(&shape, sum))
    }
}
