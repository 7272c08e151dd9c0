//! `select`: one of two elements, chosen by a condition.

use super::add::broadcast_index;
use super::check;
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
        match inputs[1].dtype() {
            DType::F32 => choose::<f32>(inputs, &shape),
            DType::I8 => choose::<i8>(inputs, &shape),
            DType::U8 => choose::<u8>(inputs, &shape),
            DType::I32 => choose::<i32>(inputs, &shape),
            DType::I64 => choose::<i64>(inputs, &shape),
            DType::Bool => choose::<bool>(inputs, &shape),
        }
    }
}

fn choose<T: Element>(inputs: &[&Tensor], shape: &[usize]) -> Result<Tensor, OpError> {
    let (ia, ib) = broadcast_index(inputs[1].shape(), inputs[2].shape(), shape);
    let (ic, _) = broadcast_index(inputs[0].shape(), shape, shape);
    let (c, a, b) = (inputs[0].as_slice::<bool>()?, inputs[1].as_slice::<T>()?, inputs[2].as_slice::<T>()?);
    Ok(Tensor::from_fn(shape, |i| if c[ic[i]] { a[ia[i]] } else { b[ib[i]] }))
}
