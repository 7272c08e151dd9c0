//! `quantize`: converts real values to integers.

use super::{QuantRounding, check};
use crate::graph::tensor::strides;
use crate::graph::{DType, OpError, Tensor, TensorType};

operator! {
    /// `round(data / scale) + zero_point`, clamped to the result's range; f32 -> i8 or u8. NaN becomes the zero point.
    ///
    /// One scale and zero point, or one for each index along `axis`.
    Quantize = "quantize"(data) {
        /// Real value of one step.
        scale: Vec<f32>,
        /// The integer that represents 0.
        zero_point: Vec<i32> = vec![0],
        /// The dimension that has a scale per index, if there are several scales.
        axis: usize = 0,
        /// How ties are rounded.
        rounding: QuantRounding = QuantRounding::HalfEven,
        /// Element type of the result: i8 or u8.
        dtype: DType = DType::I8,
    }
}

impl Quantize {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        check::dtype("data", inputs[0], &[DType::F32])?;
        let (lo, hi) = self.range()?;
        check::quantization(&self.scale, &self.zero_point, self.axis, inputs[0], lo..=hi)?;
        Ok(inputs[0].with_dtype(self.dtype))
    }

    fn range(&self) -> Result<(i32, i32), OpError> {
        match self.dtype {
            DType::I8 => Ok((-128, 127)),
            DType::U8 => Ok((0, 255)),
            d => Err(OpError::attribute("dtype", format!("must be i8 or u8, found {d}"))),
        }
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let (x, shape) = (inputs[0].as_slice::<f32>()?, inputs[0].shape());
        let (lo, hi) = self.range()?;
        let channel = channel(shape, self.axis, self.scale.len());
        let q = |i: usize| {
            let c = channel(i);
            // `as` saturates and converts NaN to 0.
            let r = self.rounding.round(x[i] / self.scale[c]) as i32;
            r.saturating_add(self.zero_point[c]).clamp(lo, hi)
        };
        Ok(match self.dtype {
            DType::U8 => Tensor::from_fn(shape, |i| q(i) as u8),
            _ => Tensor::from_fn(shape, |i| q(i) as i8),
        })
    }
}

/// Maps an element's flat index to the index of its parameter among `n`.
pub(super) fn channel(shape: &[usize], axis: usize, n: usize) -> impl Fn(usize) -> usize {
    let step = if n > 1 { strides(shape)[axis] } else { 1 };
    move |i| if n > 1 { i / step % n } else { 0 }
}
