//! `add`: the sum of two tensors.

use super::check;
use super::matmul::broadcast_steps;
use crate::graph::tensor::{strides, walk};
use crate::graph::{DType, Element, OpError, Tensor, TensorData, TensorType};

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
        Ok(match inputs[0].data() {
            TensorData::I8(a) => sums(a, inputs[1], &shape, &ia, &ib, i8::wrapping_add)?,
            TensorData::U8(a) => sums(a, inputs[1], &shape, &ia, &ib, u8::wrapping_add)?,
            TensorData::I32(a) => sums(a, inputs[1], &shape, &ia, &ib, i32::wrapping_add)?,
            TensorData::I64(a) => sums(a, inputs[1], &shape, &ia, &ib, i64::wrapping_add)?,
            TensorData::I16(a) => sums(a, inputs[1], &shape, &ia, &ib, i16::wrapping_add)?,
            TensorData::U16(a) => sums(a, inputs[1], &shape, &ia, &ib, u16::wrapping_add)?,
            TensorData::U32(a) => sums(a, inputs[1], &shape, &ia, &ib, u32::wrapping_add)?,
            TensorData::U64(a) => sums(a, inputs[1], &shape, &ia, &ib, u64::wrapping_add)?,
            TensorData::F64(a) => sums(a, inputs[1], &shape, &ia, &ib, |a, b| a + b)?,
            _ => sums(inputs[0].as_slice::<f32>()?, inputs[1], &shape, &ia, &ib, |a, b| a + b)?,
        })
    }
}

fn sums<T: Element>(
    a: &[T], b: &Tensor, shape: &[usize], ia: &[usize], ib: &[usize], add: fn(T, T) -> T,
) -> Result<Tensor, OpError> {
    let b = b.as_slice::<T>()?;
    Ok(Tensor::from_fn(shape, |i| add(a[ia[i]], b[ib[i]])))
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
