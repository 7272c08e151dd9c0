//! `lookup`: a table lookup for each byte.

use super::check;
use crate::graph::{DType, Dim, OpError, Tensor, TensorType};

operator! {
    /// `table[data + 128]`, i8 -> i8, with a table of 256 bytes: any function of one quantized operand.
    Lookup = "lookup"(data, table) {}
}

impl Lookup {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 2, 2)?;
        check::dtype("data", inputs[0], &[DType::I8])?;
        check::vector("table", inputs[1], DType::I8, &Dim::Fixed(256))?;
        Ok(inputs[0].clone())
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        self.infer(&[&inputs[0].ty(), &inputs[1].ty()])?;
        let (x, table) = (inputs[0].as_slice::<i8>()?, inputs[1].as_slice::<i8>()?);
        Ok(Tensor::from_fn(inputs[0].shape(), |i| table[(i32::from(x[i]) + 128) as usize]))
    }
}
