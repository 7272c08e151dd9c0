//! `dense`: a fully connected layer.

use super::check;
use crate::graph::tensor::with_real;
use crate::graph::{DType, Dim, Element, OpError, Tensor, TensorType};

operator! {
    /// `data [M, K]` times the transpose of `weight [N, K]`, plus `bias [N]` if the data are floats: `[M, N]`.
    ///
    /// Floats have one type; i8 x i8 -> i32 without bias, the wrapping sum of
    /// `(data - data_zero_point) * (weight - weight_zero_point)`; i8 x i32 -> i32 the same, for weights that are
    /// already less their zero points.
    Dense = "dense"(data, weight, [bias]) {
        /// Zero point of i8 data; 0 with floats.
        data_zero_point: i32 = 0,
        /// Zero point of i8 weights; 0 with other weights.
        weight_zero_point: i32 = 0,
    }
}

impl Dense {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 2, 3)?;
        let (data, weight) = (inputs[0], inputs[1]);
        check::dtype("data", data, DType::FLOATS_OR_I8)?;
        check::weight(data, weight, self.weight_zero_point)?;
        check::rank("data", data, 2)?;
        check::rank("weight", weight, 2)?;
        let w = check::known("weight", weight)?;
        if data.dims[1] != Dim::Fixed(w[1]) {
            return Err(OpError::operand("data", format!("of {} columns, like the weights", w[1]), data));
        }
        let dims = vec![data.dims[0].clone(), Dim::Fixed(w[0])];
        if data.dtype == DType::I8 {
            check::arity(inputs, 2, 2)?;
            check::zero_point_i8("data_zero_point", self.data_zero_point)?;
            check::zero_point_i8("weight_zero_point", self.weight_zero_point)?;
            return Ok(TensorType { dtype: DType::I32, dims });
        }
        check::no_zero_points(self.data_zero_point, self.weight_zero_point)?;
        if let Some(bias) = inputs.get(2) {
            check::vector("bias", bias, data.dtype, &Dim::Fixed(w[0]))?;
        }
        Ok(TensorType { dtype: data.dtype, dims })
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let (k, n) = (inputs[1].shape()[1], inputs[1].shape()[0]);
        let shape = [inputs[0].shape()[0], n];
        let row = |i: usize| i / n * k..(i / n + 1) * k;
        let column = |i: usize| i % n * k..(i % n + 1) * k;
        if inputs[0].dtype() == DType::I8 {
            let x = inputs[0].as_slice::<i8>()?;
            let (zx, zw) = (self.data_zero_point, self.weight_zero_point);
            if let Ok(w) = inputs[1].as_slice::<i32>() {
                let mac = |acc, (&x, &w)| check::mac(acc, x, zx, w);
                return Ok(Tensor::from_fn(&shape, |i| x[row(i)].iter().zip(&w[column(i)]).fold(0, mac)));
            }
            let w = inputs[1].as_slice::<i8>()?;
            let mac = |acc, (&x, &w): (&i8, &i8)| check::mac(acc, x, zx, i32::from(w) - zw);
            return Ok(Tensor::from_fn(&shape, |i| x[row(i)].iter().zip(&w[column(i)]).fold(0, mac)));
        }
        with_real!(inputs[0].dtype(), T => {
            let (x, w) = (inputs[0].as_slice::<T>()?, inputs[1].as_slice::<T>()?);
            let bias = inputs.get(2).map(|b| b.as_slice::<T>()).transpose()?;
            Ok(Tensor::from_fn(&shape, |i| {
                let start = bias.map_or(0.0, |b| b[i % n].double());
                let mac = |acc: f64, (&x, &w): (&T, &T)| acc + x.double() * w.double();
                T::of_double(x[row(i)].iter().zip(&w[column(i)]).fold(start, mac))
            }))
        })
    }
}
