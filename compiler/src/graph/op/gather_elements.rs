//! `gather_elements`: elements selected by indices with the result's shape.

use super::check;
use super::gather::places;
use crate::graph::tensor::{strides, walk};
use crate::graph::{DType, OpError, Tensor, TensorType};

operator! {
    /// Each result element is the data's element at the same position, except along `axis`, where the index (i32 or
    /// i64) at that position selects it.
    ///
    /// Negative indices count from the end; indices out of range are clamped to the first or last element. Any element
    /// type.
    GatherElements = "gather_elements"(data, indices) {
        /// The dimension.
        axis: usize,
    }
}

impl GatherElements {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 2, 2)?;
        let (data, indices) = (inputs[0], inputs[1]);
        check::axis(self.axis, data)?;
        check::dtype("indices", indices, &[DType::I32, DType::I64])?;
        check::rank("indices", indices, data.rank())?;
        let (d, i) = (check::known("data", data)?, check::known("indices", indices)?);
        if d[self.axis] == 0 || (0..d.len()).any(|a| a != self.axis && i[a] > d[a]) {
            let expected = format!("no larger than {data} except along dimension {}", self.axis);
            return Err(OpError::operand("indices", expected, indices));
        }
        Ok(indices.with_dtype(data.dtype))
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let (from, shape) = (inputs[0].shape(), inputs[1].shape());
        let mut steps = strides(from);
        let step = std::mem::replace(&mut steps[self.axis], 0);
        let places = places(inputs[1], from[self.axis])?;
        let index: Vec<usize> = walk(shape, &steps).iter().zip(places).map(|(base, p)| base + p * step).collect();
        Ok(inputs[0].gathered(shape, &index))
    }
}
