//! `reshape`: the same elements with another shape.

use super::check;
use crate::graph::{Dim, OpError, Tensor, TensorType};

operator! {
    /// The same elements, row-major, with another shape; any element type.
    Reshape = "reshape"(data) {
        /// The new sizes. One of them can be -1: it is computed from the others. 0 copies the size of the same
        /// dimension.
        shape: Vec<i64>,
    }
}

impl Reshape {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        let data = inputs[0];
        let wrong = |reason: String| OpError::attribute("shape", format!("{:?} {reason}", self.shape));
        if self.shape.iter().filter(|&&d| d == -1).count() > 1 {
            return Err(wrong("has -1 more than once".into()));
        }
        let mut dims = Vec::with_capacity(self.shape.len());
        for (i, &d) in self.shape.iter().enumerate() {
            dims.push(match d {
                -1 => None,
                0 => Some(data.dims.get(i).cloned().ok_or_else(|| wrong(format!("has no dimension {i} to copy")))?),
                d => Some(Dim::Fixed(usize::try_from(d).map_err(|_| wrong("has a negative size".into()))?)),
            });
        }
        // Both shapes must use each symbol equally often; the remaining sizes are numbers.
        let mut symbols: Vec<&Dim> = data.dims.iter().filter(|d| d.known().is_none()).collect();
        for d in dims.iter().flatten().filter(|d| d.known().is_none()) {
            let place = symbols.iter().position(|s| *s == d);
            symbols.remove(place.ok_or_else(|| wrong(format!("uses {d} more often than {data}")))?);
        }
        let from = product(data.dims.iter());
        let to = product(dims.iter().flatten());
        let (Some(from), Some(to)) = (from, to) else { return Err(wrong("has too many elements".into())) };
        let hole = match symbols.as_slice() {
            [] if to != 0 && from % to == 0 => Some(Dim::Fixed(from / to)),
            [] if to == from => Some(Dim::Fixed(0)),
            [symbol] if from == to => Some((*symbol).clone()),
            _ => None,
        };
        let unknown = dims.iter().any(Option::is_none);
        let fits = if unknown { hole.is_some() } else { symbols.is_empty() && from == to };
        if !fits {
            return Err(wrong(format!("does not fit {data}")));
        }
        let dims = dims.into_iter().map(|d| d.or_else(|| hole.clone()).unwrap_or(Dim::Fixed(0))).collect();
        Ok(TensorType { dtype: data.dtype, dims })
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = check::known("data", &self.infer(&[&inputs[0].ty()])?)?;
        inputs[0].reshaped(&shape).ok_or_else(|| OpError::attribute("shape", "has another number of elements"))
    }
}

/// The product of the known sizes; `None` if it overflows.
fn product<'a>(mut dims: impl Iterator<Item = &'a Dim>) -> Option<usize> {
    dims.try_fold(1usize, |n, d| n.checked_mul(d.known().unwrap_or(1)))
}
