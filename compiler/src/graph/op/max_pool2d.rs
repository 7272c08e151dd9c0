//! `max_pool2d`: the greatest element of each window.

use super::window::{Image, Window};
use super::{Layout, check, extreme};
use crate::graph::tensor::with_real;
use crate::graph::{DType, Element, OpError, Tensor, TensorType};

operator! {
    /// The greatest element of each window over height and width, floats (NaN if one is NaN) or i8. Padding is less than
    /// any element.
    ///
    /// Each pad is smaller than the kernel's reach, so no window at the start of the image covers only padding. A
    /// window that does gives the least value of its type.
    MaxPool2d = "max_pool2d"(data) {
        /// Height and width of the window.
        kernel: [usize; 2],
        /// Steps of height and width.
        strides: [usize; 2] = [1, 1],
        /// Top, left, bottom, right.
        pads: [usize; 4] = [0, 0, 0, 0],
        /// Distance between taps in height and width.
        dilations: [usize; 2] = [1, 1],
        /// Order of the data's dimensions.
        layout: Layout = Layout::Nhwc,
    }
}

impl MaxPool2d {
    fn window(&self) -> Window<'_> {
        Window { kernel: self.kernel, strides: self.strides, pads: &self.pads, dilations: self.dilations }
    }

    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 1, 1)?;
        let data = inputs[0];
        check::dtype("data", data, DType::FLOATS_OR_I8)?;
        check::rank("data", data, 4)?;
        self.window().output_type(data, self.layout, data.dims[self.layout.channel_axis()].clone())
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let shape = check::known("data", &self.infer(&[&inputs[0].ty()])?)?;
        if inputs[0].dtype() == DType::I8 {
            return self.greatest(inputs[0], &shape, i8::MIN, Ord::max);
        }
        with_real!(inputs[0].dtype(), T => self.greatest(inputs[0], &shape, T::NEG_INFINITY, extreme::greatest))
    }

    fn greatest<T: Element>(
        &self, x: &Tensor, shape: &[usize], least: T, join: impl Fn(T, T) -> T,
    ) -> Result<Tensor, OpError> {
        let (im, om) = (Image::new(x.shape(), self.layout), Image::new(shape, self.layout));
        let (x, window) = (x.as_slice::<T>()?, self.window());
        let mut out = vec![least; shape.iter().product()];
        for oh in 0..om.h {
            let rows = window.taps(0, oh, im.h);
            for ow in 0..om.w {
                let columns = window.taps(1, ow, im.w);
                for (n, c) in (0..om.n).flat_map(|n| (0..om.c).map(move |c| (n, c))) {
                    let best = &mut out[om.at(n, c, oh, ow)];
                    for (&(_, h), &(_, w)) in rows.iter().flat_map(|r| columns.iter().map(move |c| (r, c))) {
                        *best = join(*best, x[im.at(n, c, h, w)]);
                    }
                }
            }
        }
        Ok(Tensor::from_fn(shape, |i| out[i]))
    }
}
