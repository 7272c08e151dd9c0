//! `qavg_pool2d`: the mean of each window, requantized to another scale.

use super::sum_pool2d::sums_less;
use super::window::Window;
use super::{Layout, check};
use crate::graph::{DType, OpError, Tensor, TensorType};
use tilewright_hw::num::{self, Requant, Rounding};

operator! {
    /// [`num::requantize`] of the sum of `data - data_zero_point` over the elements of each window inside the image,
    /// i8 -> i8. The multiplier depends on the number of those elements and includes the division by it.
    QAvgPool2d = "qavg_pool2d"(data) {
        /// Height and width of the window.
        kernel: [usize; 2],
        /// Steps of height and width.
        strides: [usize; 2] = [1, 1],
        /// Top, left, bottom, right; smaller than the window.
        pads: [usize; 4] = [0, 0, 0, 0],
        /// Order of the data's dimensions.
        layout: Layout = Layout::Nhwc,
        /// Zero point of the data.
        data_zero_point: i32 = 0,
        /// Fixed-point factors, fractions of 2^31, for 1 element up to the whole window.
        multiplier: Vec<i32>,
        /// Shifts, one per multiplier; `mode` defines their sign.
        shift: Vec<i32>,
        /// Added after scaling.
        zero_point: i32 = 0,
        /// Least result.
        lo: i32 = -128,
        /// Greatest result.
        hi: i32 = 127,
        /// How the product is rounded.
        mode: Rounding = Rounding::Double,
    }
}

impl QAvgPool2d {
    fn window(&self) -> Window<'_> {
        Window { kernel: self.kernel, strides: self.strides, pads: &self.pads, dilations: [1, 1] }
    }

    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        let data = inputs[0];
        check::dtype("data", data, &[DType::I8])?;
        check::rank("data", data, 4)?;
        check::zero_point_i8("data_zero_point", self.data_zero_point)?;
        check::zero_point_i8("zero_point", self.zero_point)?;
        check::clamp_i8(self.lo, self.hi)?;
        if (0..2).any(|i| self.pads[i] >= self.kernel[i] || self.pads[i + 2] >= self.kernel[i]) {
            return Err(OpError::attribute("pads", "must be smaller than the kernel"));
        }
        let all = self.kernel[0].saturating_mul(self.kernel[1]);
        if self.multiplier.len() != all || self.shift.len() != all {
            let found = format!("{} and {}", self.multiplier.len(), self.shift.len());
            let reason = format!("and `shift` must have {all} values, one for each number of elements, found {found}");
            return Err(OpError::attribute("multiplier", reason));
        }
        self.window().output_type(data, self.layout, data.dims[self.layout.channel_axis()].clone())
    }

    /// Requantization of the sum of `count` elements less their zero points.
    pub fn requant(&self, count: usize) -> Requant {
        let place = count.clamp(1, self.multiplier.len()) - 1;
        Requant {
            bias: 0,
            multiplier: self.multiplier[place],
            shift: self.shift[place].clamp(-128, 127) as i8,
            zero_point: self.zero_point,
            lo: self.lo,
            hi: self.hi,
            mode: self.mode,
        }
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = check::known("data", &self.infer(&[&inputs[0].ty()])?)?;
        let out = sums_less(self.data_zero_point, &self.window(), inputs[0], &shape, self.layout)?;
        Ok(Tensor::from_fn(&shape, |i| num::requantize(out[i].0, &self.requant(out[i].1)) as i8))
    }
}
