//! `sum_pool2d`: the sum of each window.

use super::window::{Image, Window};
use super::{Layout, check};
use crate::graph::{DType, OpError, Tensor, TensorType};

operator! {
    /// The sum of `data - data_zero_point` over each window of height and width, i8 -> i32; padding adds nothing.
    SumPool2d = "sum_pool2d"(data) {
        /// Height and width of the window.
        kernel: [usize; 2],
        /// Steps of height and width.
        strides: [usize; 2] = [1, 1],
        /// Top, left, bottom, right.
        pads: [usize; 4] = [0, 0, 0, 0],
        /// Order of the data's dimensions.
        layout: Layout = Layout::Nhwc,
        /// Zero point of the data.
        data_zero_point: i32 = 0,
    }
}

impl SumPool2d {
    fn window(&self) -> Window<'_> {
        Window { kernel: self.kernel, strides: self.strides, pads: &self.pads, dilations: [1, 1] }
    }

    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        let data = inputs[0];
        check::dtype("data", data, &[DType::I8])?;
        check::rank("data", data, 4)?;
        check::zero_point_i8("data_zero_point", self.data_zero_point)?;
        let out = self.window().output_type(data, self.layout, data.dims[self.layout.channel_axis()].clone())?;
        Ok(out.with_dtype(DType::I32))
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = check::known("data", &self.infer(&[&inputs[0].ty()])?)?;
        let out = sums_less(self.data_zero_point, &self.window(), inputs[0], &shape, self.layout)?;
        Ok(Tensor::from_fn(&shape, |i| out[i].0))
    }
}

/// [`sums`] of bytes less their zero point.
pub(super) fn sums_less(
    zero_point: i32, window: &Window<'_>, data: &Tensor, to: &[usize], layout: Layout,
) -> Result<Vec<(i32, usize)>, OpError> {
    let x = data.as_slice::<i8>()?;
    let add = |acc: i32, i: usize| acc.wrapping_add(i32::from(x[i]) - zero_point);
    Ok(sums(window, data.shape(), to, layout, add))
}

/// For each window, the sum and the number of the elements inside the image, in the output's row-major order.
pub(super) fn sums<A: Copy + Default>(
    window: &Window<'_>, from: &[usize], to: &[usize], layout: Layout, add: impl Fn(A, usize) -> A,
) -> Vec<(A, usize)> {
    let (im, om) = (Image::new(from, layout), Image::new(to, layout));
    let mut out = vec![(A::default(), 0); to.iter().product()];
    for oh in 0..om.h {
        let rows = window.taps(0, oh, im.h);
        for ow in 0..om.w {
            let columns = window.taps(1, ow, im.w);
            for (n, c) in (0..om.n).flat_map(|n| (0..om.c).map(move |c| (n, c))) {
                let places = rows.iter().flat_map(|r| columns.iter().map(move |c| (r.1, c.1)));
                let sum = places.fold(A::default(), |acc, (h, w)| add(acc, im.at(n, c, h, w)));
                out[om.at(n, c, oh, ow)] = (sum, rows.len() * columns.len());
            }
        }
    }
    out
}
