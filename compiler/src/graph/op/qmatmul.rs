//! `qmatmul`: batched matrix products of bytes.

use super::check;
use super::matmul::{batches, outer};
use crate::graph::{DType, OpError, Tensor, TensorType};

operator! {
    /// `a - a_zero_point [..., M, K]` times `b - b_zero_point [..., K, N]`, i8 -> i32, wrapping; the outer dimensions
    /// broadcast.
    QMatMul = "qmatmul"(a, b) {
        /// Zero point of the first operand.
        a_zero_point: i32 = 0,
        /// Zero point of the second operand.
        b_zero_point: i32 = 0,
    }
}

impl QMatMul {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 2, 2)?;
        let (a, b) = (inputs[0], inputs[1]);
        for (name, t) in [("a", a), ("b", b)] {
            check::dtype(name, t, &[DType::I8])?;
            if t.rank() < 2 {
                return Err(OpError::operand(name, "of 2 or more dimensions", t));
            }
        }
        check::zero_point_i8("a_zero_point", self.a_zero_point)?;
        check::zero_point_i8("b_zero_point", self.b_zero_point)?;
        if a.dims[a.rank() - 1] != b.dims[b.rank() - 2] {
            return Err(OpError::operand("b", format!("of {} rows", a.dims[a.rank() - 1]), b));
        }
        let mut dims = check::broadcast(&outer(a), &outer(b))?;
        dims.push(a.dims[a.rank() - 2].clone());
        dims.push(b.dims[b.rank() - 1].clone());
        Ok(TensorType { dtype: DType::I32, dims })
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let (ta, tb) = (inputs[0].ty(), inputs[1].ty());
        let shape = check::known("a", &self.infer(&[&ta, &tb])?)?;
        let (a, b) = (inputs[0].as_slice::<i8>()?, inputs[1].as_slice::<i8>()?);
        let batch = &shape[..shape.len() - 2];
        let [m, n] = [shape[shape.len() - 2], shape[shape.len() - 1]];
        let k = inputs[0].shape()[inputs[0].shape().len() - 1];
        let (ia, ib) = (batches(inputs[0].shape(), batch), batches(inputs[1].shape(), batch));
        let (za, zb) = (self.a_zero_point, self.b_zero_point);
        Ok(Tensor::from_fn(&shape, |i| {
            let (p, row, column) = (i / (m * n), i / n % m, i % n);
            let product = |j: usize| {
                (i32::from(a[ia[p] + row * k + j]) - za) * (i32::from(b[ib[p] + j * n + column]) - zb)
            };
            (0..k).map(product).fold(0i32, i32::wrapping_add)
        }))
    }
}
