//! `arg_reduce`: the index of the greatest or least element.

use super::{check, extreme};
use crate::graph::tensor::{strides, with_element};
use crate::graph::{DType, Dim, Element, OpError, Tensor, TensorType};

operator! {
    /// The index, i32 or i64, of the greatest or least element along a dimension. If there is a NaN, it is the NaN's
    /// index. Data: any numbers.
    ArgReduce = "arg_reduce"(data) {
        /// The dimension.
        axis: usize,
        /// Keeps the dimension, with size 1, instead of removing it.
        keep_dims: bool = false,
        /// Finds the greatest element instead of the least.
        greatest: bool = true,
        /// Returns the last of equal elements instead of the first.
        last: bool = false,
        /// Element type of the result.
        dtype: DType = DType::I64,
    }
}

impl ArgReduce {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        let data = inputs[0];
        check::dtype("data", data, DType::NUMBERS)?;
        check::axis(self.axis, data)?;
        if !matches!(self.dtype, DType::I32 | DType::I64) {
            return Err(OpError::attribute("dtype", format!("must be i32 or i64, found {}", self.dtype)));
        }
        if check::known_dim("data", data, self.axis)? == 0 {
            return Err(OpError::operand("data", format!("of elements along {}", self.axis), data));
        }
        let mut dims = data.dims.clone();
        if self.keep_dims {
            dims[self.axis] = Dim::Fixed(1);
        } else {
            dims.remove(self.axis);
        }
        Ok(TensorType { dtype: self.dtype, dims })
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        with_element!(inputs[0].dtype(), T => self.find::<T>(inputs[0]))
    }

    fn find<T: Element>(&self, x: &Tensor) -> Result<Tensor, OpError> {
        let shape = check::known("data", &self.infer(&[&x.ty()])?)?;
        let v = x.as_slice::<T>()?;
        let (n, step) = (x.shape()[self.axis], strides(x.shape())[self.axis]);
        let at = |i: usize| {
            let base = i / step * step * n + i % step;
            let value = |k: usize| v[base + k * step];
            let better = |a: T, b: T| if self.greatest { extreme::above(a, b) } else { extreme::below(a, b) };
            let taken = |best: usize, k: usize| match self.last {
                true => !better(value(k), value(best)),
                false => better(value(best), value(k)),
            };
            (1..n).fold(0, |best, k| if taken(best, k) { k } else { best })
        };
        Ok(match self.dtype {
            DType::I32 => Tensor::from_fn(&shape, |i| at(i) as i32),
            _ => Tensor::from_fn(&shape, |i| at(i) as i64),
        })
    }
}
