//! `slice`: a strided part of a tensor.

use super::check;
use crate::graph::tensor::strides;
use crate::graph::{Dim, OpError, Tensor, TensorType};

operator! {
    /// Element `i` along each dimension is the data's element `start + i * step`; any element type.
    Slice = "slice"(data) {
        /// The first element, one per dimension.
        starts: Vec<usize>,
        /// Number of elements, one per dimension.
        sizes: Vec<usize>,
        /// Distance between elements, one per dimension; negative steps go backward.
        steps: Vec<i64>,
    }
}

impl Slice {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        let data = inputs[0];
        for (name, n) in [("starts", self.starts.len()), ("sizes", self.sizes.len()), ("steps", self.steps.len())] {
            if n != data.rank() {
                return Err(OpError::attribute(name, format!("must have {} values, found {n}", data.rank())));
            }
        }
        let mut dims = Vec::with_capacity(data.rank());
        for i in 0..data.rank() {
            let (start, size, step) = (self.starts[i], self.sizes[i], self.steps[i]);
            // Even a dimension that is kept whole must have a known size.
            let have = check::known_dim("data", data, i)?;
            let last = (size as i128 - 1) * i128::from(step) + start as i128;
            if size > 0 && (start >= have || last < 0 || last >= have as i128) {
                let reason = format!("must select from the {have} elements of dimension {i}, found {start} to {last}");
                return Err(OpError::attribute("starts", reason));
            }
            dims.push(Dim::Fixed(size));
        }
        Ok(TensorType { dtype: data.dtype, dims })
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let steps = strides(inputs[0].shape());
        let mut index = vec![0usize];
        for (d, &step) in steps.iter().enumerate() {
            let place = |i: usize| (self.starts[d] as i64 + i as i64 * self.steps[d]) as usize * step;
            index = index.iter().flat_map(|&base| (0..self.sizes[d]).map(move |i| base + place(i))).collect();
        }
        Ok(inputs[0].gathered(&self.sizes, &index))
    }
}
