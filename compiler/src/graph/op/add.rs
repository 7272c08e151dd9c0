//! `add`: the sum of two tensors.

use super::arithmetic::Arithmetic;
use super::check;
use super::matmul::broadcast_steps;
use crate::graph::tensor::{strides, walk, with_element};
use crate::graph::{DType, OpError, Tensor, TensorType};

operator! {
    /// `a + b`; integers wrap, shapes broadcast as in NumPy.
    Add = "add"(a, b) {}
}

impl Add {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 2, 2)?;
        check::dtype("a", inputs[0], DType::NUMBERS)?;
        check::dtype("b", inputs[1], &[inputs[0].dtype])?;
        Ok(TensorType { dtype: inputs[0].dtype, dims: check::broadcast(inputs[0], inputs[1])? })
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = check::known("a", &self.infer(&[&inputs[0].ty(), &inputs[1].ty()])?)?;
        let (ia, ib) = broadcast_index(inputs[0].shape(), inputs[1].shape(), &shape);
        with_element!(inputs[0].dtype(), T => {
            let (a, b) = (inputs[0].as_slice::<T>()?, inputs[1].as_slice::<T>()?);
            Ok(Tensor::from_fn(&shape, |i| a[ia[i]].sum(b[ib[i]])))
        })
    }
}

/// For each element of the broadcast shape, the flat index into each operand.
pub(super) fn broadcast_index(a: &[usize], b: &[usize], shape: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let index = |s: &[usize]| walk(shape, &broadcast_steps(s, &strides(s), shape.len()));
    (index(a), index(b))
}

/// Applies a function to the elements of two i8 tensors, whose shapes broadcast to `shape`; its results are 8-bit
/// values.
pub(super) fn int8_pairs(inputs: &[&Tensor], shape: &[usize], f: impl Fn(i32, i32) -> i32) -> Result<Tensor, OpError> {
    let (ia, ib) = broadcast_index(inputs[0].shape(), inputs[1].shape(), shape);
    let (a, b) = (inputs[0].as_slice::<i8>()?, inputs[1].as_slice::<i8>()?);
    Ok(Tensor::from_fn(shape, |i| f(a[ia[i]].into(), b[ib[i]].into()) as i8))
}
