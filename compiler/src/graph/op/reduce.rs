//! `reduce`: the sum, mean, minimum or maximum over some dimensions.

use super::attr::words;
use super::arithmetic::Arithmetic;
use super::{BinaryKind, check};
use crate::graph::tensor::{strides, walk, with_element};
use crate::graph::{DType, Dim, Element, OpError, Tensor, TensorType};

/// The function of a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduceKind {
    /// Their sum; integers wrap.
    Sum,
    /// Their mean, floats only.
    Mean,
    /// The greatest, NaN if one is NaN; the least value of the type if there are no elements.
    Max,
    /// The least, NaN if one is NaN; the greatest value of the type if there are no elements.
    Min,
}

words! {
    ReduceKind, "`sum`, `mean`, `max` or `min`" {
        ReduceKind::Sum = "sum", ReduceKind::Mean = "mean", ReduceKind::Max = "max", ReduceKind::Min = "min",
    }
}

operator! {
    /// Reduces all elements along some dimensions to one value.
    Reduce = "reduce"(data) {
        /// The function.
        kind: ReduceKind,
        /// The dimensions, ascending.
        axes: Vec<usize>,
        /// Keeps the dimensions, with size 1, instead of removing them.
        keep_dims: bool = false,
    }
}

impl Reduce {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        let data = inputs[0];
        let allowed: &[DType] = match self.kind {
            ReduceKind::Mean => DType::FLOATS,
            _ => DType::NUMBERS,
        };
        check::dtype("data", data, allowed)?;
        check::axes(&self.axes, data)?;
        let mut dims = Vec::new();
        for (i, d) in data.dims.iter().enumerate() {
            match self.axes.contains(&i) {
                true if self.keep_dims => dims.push(Dim::Fixed(1)),
                true => {}
                false => dims.push(d.clone()),
            }
        }
        Ok(TensorType { dtype: data.dtype, dims })
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = check::known("data", &self.infer(&[&inputs[0].ty()])?)?;
        let count: usize = self.axes.iter().map(|&a| inputs[0].shape()[a]).product();
        with_element!(inputs[0].dtype(), T => {
            let v = inputs[0].as_slice::<T>()?;
            let folded = |first: T, join: fn(T, T) -> T| self.fold(inputs[0], |acc: T, i| join(acc, v[i]), first);
            let found = match self.kind {
                ReduceKind::Max => folded(T::LEAST, |a, b| T::binary(BinaryKind::Max, a, b)),
                ReduceKind::Min => folded(T::GREATEST, |a, b| T::binary(BinaryKind::Min, a, b)),
                ReduceKind::Sum if !T::DTYPE.is_float() => folded(T::default(), T::sum),
                // Sums of floats have 64 bits, so that a faster implementation can sum in another order.
                ReduceKind::Sum | ReduceKind::Mean => {
                    let n = if self.kind == ReduceKind::Mean { count as f64 } else { 1.0 };
                    let sums = self.fold(inputs[0], |acc: f64, i| acc + v[i].double(), 0.0);
                    sums.iter().map(|sum| T::of_double(sum / n)).collect()
                }
            };
            Ok(Tensor::from_fn(&shape, |i| found[i]))
        })
    }

    /// Folds over the flat indices of the elements of each result; results in row-major order.
    fn fold<A: Copy>(&self, x: &Tensor, f: impl Fn(A, usize) -> A, first: A) -> Vec<A> {
        let steps = strides(x.shape());
        let pick = |reduced: bool| -> (Vec<usize>, Vec<usize>) {
            let chosen = (0..x.shape().len()).filter(|a| self.axes.contains(a) == reduced);
            chosen.map(|a| (x.shape()[a], steps[a])).unzip()
        };
        let ((outer, outer_steps), (inner, inner_steps)) = (pick(false), pick(true));
        let offsets = walk(&inner, &inner_steps);
        walk(&outer, &outer_steps).iter().map(|&base| offsets.iter().fold(first, |a, &o| f(a, base + o))).collect()
    }
}
