//! `avg_pool2d`: the mean of each window.

use super::sum_pool2d::sums;
use super::window::Window;
use super::{Layout, check};
use crate::graph::tensor::with_real;
use crate::graph::{DType, Element, OpError, Tensor, TensorType};
use tilewright_hw::num;

operator! {
    /// The mean of each window over height and width.
    ///
    /// f32; or i8 if data and result have the same scale and zero point: the sum of the bytes, divided with ties away
    /// from zero, clamped to `lo..=hi` (set to -128 and 127 for floats, which are not clamped).
    AvgPool2d = "avg_pool2d"(data) {
        /// Height and width of the window.
        kernel: [usize; 2],
        /// Steps of height and width.
        strides: [usize; 2] = [1, 1],
        /// Top, left, bottom, right.
        pads: [usize; 4] = [0, 0, 0, 0],
        /// Divides by the kernel's size, with padding as 0, instead of by the number of elements inside the image.
        count_include_pad: bool = false,
        /// Order of the data's dimensions.
        layout: Layout = Layout::Nhwc,
        /// Least i8 result.
        lo: i32 = -128,
        /// Greatest i8 result.
        hi: i32 = 127,
        /// The i8 data are unsigned bytes less 128; the mean is that of the unsigned bytes, so ties round up.
        unsigned: bool = false,
    }
}

impl AvgPool2d {
    fn window(&self) -> Window<'_> {
        Window { kernel: self.kernel, strides: self.strides, pads: &self.pads, dilations: [1, 1] }
    }

    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        let data = inputs[0];
        check::dtype("data", data, DType::FLOATS_OR_I8)?;
        check::rank("data", data, 4)?;
        check::clamp_i8(self.lo, self.hi)?;
        let past = |i: usize| self.pads[i] >= self.kernel[i] || self.pads[i + 2] >= self.kernel[i];
        if !self.count_include_pad && (past(0) || past(1)) {
            return Err(OpError::attribute("pads", "must be smaller than the kernel unless `count_include_pad` is set"));
        }
        self.window().output_type(data, self.layout, data.dims[self.layout.channel_axis()].clone())
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = check::known("data", &self.infer(&[&inputs[0].ty()])?)?;
        let all = self.kernel[0].saturating_mul(self.kernel[1]);
        let count = |n: usize| if self.count_include_pad { all } else { n.max(1) };
        let (from, window) = (inputs[0].shape(), self.window());
        if inputs[0].dtype() == DType::I8 {
            let x = inputs[0].as_slice::<i8>()?;
            let out = sums(&window, from, &shape, self.layout, |acc: i32, i| acc.wrapping_add(i32::from(x[i])));
            return Ok(Tensor::from_fn(&shape, |i| {
                let (sum, n) = (out[i].0, count(out[i].1));
                if self.unsigned { mean_u8(sum, n, self.lo, self.hi) } else { mean(sum, n, self.lo, self.hi) }
            }));
        }
        with_real!(inputs[0].dtype(), T => {
            let x = inputs[0].as_slice::<T>()?;
            let out = sums(&window, from, &shape, self.layout, |acc: f64, i| acc + x[i].double());
            Ok(Tensor::from_fn(&shape, |i| T::of_double(out[i].0 / count(out[i].1) as f64)))
        })
    }
}

/// Like [`mean`], for bytes that are unsigned bytes less 128.
fn mean_u8(sum: i32, count: usize, lo: i32, hi: i32) -> i8 {
    let n = count as i64;
    let q = (i64::from(sum) + 128 * n + n / 2) / n - 128;
    num::offset_clamp(q as i32, 0, lo, hi) as i8
}

/// The sum divided by `count`, ties away from zero, clamped to `lo..=hi`, which are 8-bit values.
pub(super) fn mean(sum: i32, count: usize, lo: i32, hi: i32) -> i8 {
    // The multiplier replaces the division for up to 2,952 elements; beyond that only the division itself is exact.
    let q = match count {
        1 => sum,
        2..=2952 => num::scale_single(sum, num::average_multiplier(count as u32), 0),
        _ => {
            let (n, s) = (count as i64, i64::from(sum));
            ((s + if s > 0 { n / 2 } else { -n / 2 }) / n) as i32
        }
    };
    num::offset_clamp(q, 0, lo, hi) as i8
}
