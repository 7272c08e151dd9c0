//! `add`: the sum of two tensors.

use super::check;
use super::matmul::broadcast_steps;
use crate::graph::tensor::{strides, walk};
use crate::graph::{DType, OpError, Tensor, TensorType};

operator! {
    /// `a + b`, f32 or i32 (wrapping); the shapes broadcast as NumPy does.
    Add = "add" {}
}

impl Add {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 2, 2)?;
        check::dtype("a", inputs[0], &[DType::F32, DType::I32])?;
        check::dtype("b", inputs[1], &[inputs[0].dtype])?;
        Ok(TensorType { dtype: inputs[0].dtype, dims: check::broadcast(inputs[0], inputs[1])? })
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = check::known("a", &self.infer(&[&inputs[0].ty(), &inputs[1].ty()])?)?;
        let (ia, ib) = broadcast_index(inputs[0].shape(), inputs[1].shape(), &shape);
        if inputs[0].dtype() == DType::I32 {
            let (a, b) = (inputs[0].as_slice::<i32>()?, inputs[1].as_slice::<i32>()?);
            return Ok(Tensor::from_fn(&shape, |i| a[ia[i]].wrapping_add(b[ib[i]])));
        }
        let (a, b) = (inputs[0].as_slice::<f32>()?, inputs[1].as_slice::<f32>()?);
        Ok(Tensor::from_fn(&shape, |i| a[ia[i]] + b[ib[i]]))
    }
}

/// For each element of the broadcast shape, the flat index into each operand.
pub(super) fn broadcast_index(a: &[usize], b: &[usize], shape: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let index = |s: &[usize]| walk(shape, &broadcast_steps(s, &strides(s), shape.len()));
    (index(a), index(b))
}
