//! `reduce`: the sum, mean, minimum or maximum over some dimensions.

use std::ops::Neg;

use super::attr::words;
use super::{check, extreme};
use crate::graph::tensor::{Real, strides, walk};
use crate::graph::{DType, Dim, Element, OpError, Tensor, TensorData, TensorType};

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
        match inputs[0].data() {
            TensorData::F32(v) => self.floats(inputs[0], &shape, v, count, f32::INFINITY),
            TensorData::F64(v) => self.floats(inputs[0], &shape, v, count, f64::INFINITY),
            TensorData::I8(v) => self.integers(inputs[0], &shape, v, (i8::MIN, i8::MAX), i8::wrapping_add),
            TensorData::U8(v) => self.integers(inputs[0], &shape, v, (u8::MIN, u8::MAX), u8::wrapping_add),
            TensorData::I16(v) => self.integers(inputs[0], &shape, v, (i16::MIN, i16::MAX), i16::wrapping_add),
            TensorData::U16(v) => self.integers(inputs[0], &shape, v, (u16::MIN, u16::MAX), u16::wrapping_add),
            TensorData::I32(v) => self.integers(inputs[0], &shape, v, (i32::MIN, i32::MAX), i32::wrapping_add),
            TensorData::U32(v) => self.integers(inputs[0], &shape, v, (u32::MIN, u32::MAX), u32::wrapping_add),
            TensorData::I64(v) => self.integers(inputs[0], &shape, v, (i64::MIN, i64::MAX), i64::wrapping_add),
            TensorData::U64(v) => self.integers(inputs[0], &shape, v, (u64::MIN, u64::MAX), u64::wrapping_add),
            TensorData::Bool(_) => Err(OpError::operand("data", "a number", inputs[0].ty())),
        }
    }

    fn floats<T: Real + Neg<Output = T>>(
        &self, x: &Tensor, shape: &[usize], v: &[T], count: usize, infinity: T,
    ) -> Result<Tensor, OpError> {
        match self.kind {
            ReduceKind::Sum | ReduceKind::Mean => {
                let sums = self.fold(x, |acc: f64, i| acc + v[i].double(), 0.0);
                let n = if self.kind == ReduceKind::Mean { count as f64 } else { 1.0 };
                Ok(Tensor::from_fn(shape, |i| T::of_double(sums[i] / n)))
            }
            ReduceKind::Max => self.extreme(x, shape, v, -infinity, extreme::greatest),
            ReduceKind::Min => self.extreme(x, shape, v, infinity, extreme::least),
        }
    }

    fn integers<T: Element + Ord>(
        &self, x: &Tensor, shape: &[usize], v: &[T], (least, greatest): (T, T), add: fn(T, T) -> T,
    ) -> Result<Tensor, OpError> {
        match self.kind {
            ReduceKind::Max => self.extreme(x, shape, v, least, Ord::max),
            ReduceKind::Min => self.extreme(x, shape, v, greatest, Ord::min),
            _ => {
                let sums = self.fold(x, |acc: T, i| add(acc, v[i]), T::default());
                Ok(Tensor::from_fn(shape, |i| sums[i]))
            }
        }
    }

    fn extreme<T: Element>(
        &self, x: &Tensor, shape: &[usize], v: &[T], first: T, join: impl Fn(T, T) -> T,
    ) -> Result<Tensor, OpError> {
        let found = self.fold(x, |best: T, i| join(best, v[i]), first);
        Ok(Tensor::from_fn(shape, |i| found[i]))
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
