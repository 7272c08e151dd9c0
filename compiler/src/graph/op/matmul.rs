//! `matmul`: batched matrix products.

use super::check;
use crate::graph::tensor::{strides, walk, with_real};
use crate::graph::{DType, Element, OpError, Tensor, TensorType};

operator! {
    /// `a [..., M, K]` times `b [..., K, N]`, floats; the outer dimensions broadcast.
    MatMul = "matmul"(a, b) {}
}

pub(super) fn outer(t: &TensorType) -> TensorType {
    TensorType { dtype: t.dtype, dims: t.dims[..t.rank() - 2].to_vec() }
}

impl MatMul {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 2, 2)?;
        let (a, b) = (inputs[0], inputs[1]);
        for (name, t) in [("a", a), ("b", b)] {
            check::dtype(name, t, DType::FLOATS)?;
            if t.rank() < 2 {
                return Err(OpError::operand(name, "of 2 or more dimensions", t));
            }
        }
        check::dtype("b", b, &[a.dtype])?;
        let (m, k) = (a.rank() - 2, a.rank() - 1);
        if a.dims[k] != b.dims[b.rank() - 2] {
            return Err(OpError::operand("b", format!("of {} rows", a.dims[k]), b));
        }
        let mut dims = check::broadcast(&outer(a), &outer(b))?;
        dims.push(a.dims[m].clone());
        dims.push(b.dims[b.rank() - 1].clone());
        Ok(TensorType { dtype: a.dtype, dims })
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let (ta, tb) = (inputs[0].ty(), inputs[1].ty());
        let shape = check::known("a", &self.infer(&[&ta, &tb])?)?;
        let batch = &shape[..shape.len() - 2];
        let [m, n] = [shape[shape.len() - 2], shape[shape.len() - 1]];
        let k = inputs[0].shape()[inputs[0].shape().len() - 1];
        let (ia, ib) = (batches(inputs[0].shape(), batch), batches(inputs[1].shape(), batch));
        with_real!(ta.dtype, T => {
            let (a, b) = (inputs[0].as_slice::<T>()?, inputs[1].as_slice::<T>()?);
            Ok(Tensor::from_fn(&shape, |i| {
                let (p, row, column) = (i / (m * n), i / n % m, i % n);
                let product = |j: usize| a[ia[p] + row * k + j].double() * b[ib[p] + j * n + column].double();
                T::of_double((0..k).map(product).sum::<f64>())
            }))
        })
    }
}

/// Flat index of the first element of each matrix in the broadcast batch.
pub(super) fn batches(shape: &[usize], batch: &[usize]) -> Vec<usize> {
    walk(batch, &broadcast_steps(&shape[..shape.len() - 2], &strides(shape), batch.len()))
}

/// Strides of a tensor broadcast to a shape of `rank` dimensions: 0 where its size is 1 or missing.
pub(super) fn broadcast_steps(shape: &[usize], strides: &[usize], rank: usize) -> Vec<usize> {
    let mut steps = vec![0; rank - shape.len()];
    steps.extend(shape.iter().zip(strides).map(|(&n, &s)| if n == 1 { 0 } else { s }));
    steps
}
