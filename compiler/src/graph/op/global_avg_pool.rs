//! `global_avg_pool`: the mean over height and width.

use super::avg_pool2d::mean;
use super::sum_pool2d::sums;
use super::window::Window;
use super::{Layout, check};
use crate::graph::tensor::with_real;
use crate::graph::{DType, Element, Dim, OpError, Tensor, TensorType};

operator! {
    /// The mean over height and width, which become 1.
    ///
    /// f32; or i8 if data and result have the same scale and zero point, as in `avg_pool2d`.
    GlobalAvgPool = "global_avg_pool"(data) {
        /// Order of the data's dimensions.
        layout: Layout = Layout::Nhwc,
        /// Least i8 result.
        lo: i32 = -128,
        /// Greatest i8 result.
        hi: i32 = 127,
    }
}

impl GlobalAvgPool {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        check::dtype("data", inputs[0], DType::FLOATS_OR_I8)?;
        check::rank("data", inputs[0], 4)?;
        check::clamp_i8(self.lo, self.hi)?;
        let mut out = inputs[0].clone();
        for a in self.layout.spatial_axes() {
            if check::known_dim("data", inputs[0], a)? == 0 {
                return Err(OpError::operand("data", "of positive height and width", inputs[0]));
            }
            out.dims[a] = Dim::Fixed(1);
        }
        Ok(out)
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let from = inputs[0].shape();
        let shape = check::known("data", &self.infer(&[&inputs[0].ty()])?)?;
        let kernel = self.layout.spatial_axes().map(|a| from[a]);
        let window = Window { kernel, strides: [1, 1], pads: &[0; 4], dilations: [1, 1] };
        if inputs[0].dtype() == DType::I8 {
            let x = inputs[0].as_slice::<i8>()?;
            let out = sums(&window, from, &shape, self.layout, |acc: i32, i| acc.wrapping_add(i32::from(x[i])));
            return Ok(Tensor::from_fn(&shape, |i| mean(out[i].0, out[i].1, self.lo, self.hi)));
        }
        with_real!(inputs[0].dtype(), T => {
            let x = inputs[0].as_slice::<T>()?;
            let out = sums(&window, from, &shape, self.layout, |acc: f64, i| acc + x[i].double());
            Ok(Tensor::from_fn(&shape, |i| T::of_double(out[i].0 / out[i].1 as f64)))
        })
    }
}
