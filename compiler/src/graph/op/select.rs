//! `select`: one of two elements, chosen by a condition.

use super::add::broadcast_index;
use super::check;
use crate::graph::tensor::with_element;
use crate::graph::{DType, Element, OpError, Tensor, TensorType};

operator! {
    /// `a` where the condition (bool) is true, else `b`; the three shapes broadcast as in NumPy. Any element type.
    Select = "select"(condition, a, b) {}
}

impl Select {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 3, 3)?;
        check::dtype("condition", inputs[0], &[DType::Bool])?;
        check::dtype("b", inputs[2], &[inputs[1].dtype])?;
        let both = inputs[1].clone();
        let both = TensorType { dtype: both.dtype, dims: check::broadcast(&both, inputs[2])? };
        Ok(TensorType { dtype: both.dtype, dims: check::broadcast(&both, inputs[0])? })
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let types: Vec<_> = inputs.iter().map(|t| t.ty()).collect();
        let shape = check::known("a", &self.infer(&types.iter().collect::<Vec<_>>())?)?;
        with_element!(inputs[1].dtype(), T => choose::<T>(inputs, &shape))
    }
}

fn choose<T: Element>(inputs: &[&Tensor], shape: &[usize]) -> Result<Tensor, OpError> {
    let (ia, ib) = broadcast_index(inputs[1].shape(), inputs[2].shape(), shape);
    let (ic, _) = broadcast_index(inputs[0].shape(), shape, shape);
    let (c, a, b) = (inputs[0].as_slice::<bool>()?, inputs[1].as_slice::<T>()?, inputs[2].as_slice::<T>()?);
    Ok(Tensor::from_fn(shape, |i| if c[ic[i]] { a[ia[i]] } else { b[ib[i]] }))
}
