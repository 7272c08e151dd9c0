//! `conv2d`: two-dimensional convolution with groups.

use super::window::{Image, Window, biased};
use super::{Layout, Pad, check};
use crate::graph::tensor::with_real;
use crate::graph::{DType, Dim, Element, OpError, Tensor, TensorType};

operator! {
    /// Convolution of `data` with `weight [O, KH, KW, I/groups]`, plus `bias [O]` if the data are floats.
    ///
    /// - f32 x f32 -> f32; padding is 0.
    /// - i8 x i8 -> i32, without bias: the sum of `(data - data_zero_point) * (weight - weight_zero_point)`; padding is
    ///   the zero point, and sums wrap.
    /// - i8 x i32 -> i32: the same, for weights that are already less their zero points.
    ///
    /// `groups = I` makes it depthwise.
    Conv2d = "conv2d"(data, weight, [bias]) {
        /// Steps of height and width.
        strides: [usize; 2] = [1, 1],
        /// Top, left, bottom, right.
        pads: [usize; 4] = [0, 0, 0, 0],
        /// Distance between taps in height and width.
        dilations: [usize; 2] = [1, 1],
        /// Number of groups that input and output channels are split into.
        groups: usize = 1,
        /// Order of the data's dimensions.
        layout: Layout = Layout::Nhwc,
        /// Zero point of i8 data; 0 with floats.
        data_zero_point: i32 = 0,
        /// Zero point of i8 weights; 0 with other weights.
        weight_zero_point: i32 = 0,
    }
}

impl Conv2d {
    fn window<'a>(&'a self, weight: &[usize]) -> Window<'a> {
        let kernel = [weight[1], weight[2]];
        Window { kernel, strides: self.strides, pads: &self.pads, dilations: self.dilations }
    }

    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 2, 3)?;
        let (data, weight) = (inputs[0], inputs[1]);
        check::dtype("data", data, DType::FLOATS_OR_I8)?;
        check::weight(data, weight, self.weight_zero_point)?;
        let w = check::kernel(data, weight, self.layout.channel_axis(), self.groups)?;
        let out = self.window(&w).output_type(data, self.layout, Dim::Fixed(w[0]))?;
        if data.dtype == DType::I8 {
            check::arity(inputs, 2, 2)?;
            check::zero_point_i8("data_zero_point", self.data_zero_point)?;
            check::zero_point_i8("weight_zero_point", self.weight_zero_point)?;
            return Ok(out.with_dtype(DType::I32));
        }
        check::no_zero_points(self.data_zero_point, self.weight_zero_point)?;
        if let Some(bias) = inputs.get(2) {
            check::vector("bias", bias, data.dtype, &Dim::Fixed(w[0]))?;
        }
        Ok(out)
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let types: Vec<_> = inputs.iter().map(|t| t.ty()).collect();
        let shape = check::known("data", &self.infer(&types.iter().collect::<Vec<_>>())?)?;
        if inputs[0].dtype() == DType::I8 {
            let (zx, zw) = (self.data_zero_point, self.weight_zero_point);
            let out = match inputs[1].dtype() {
                DType::I32 => self.sums(inputs, &shape, |acc, x, w| check::mac(acc, x, zx, w))?,
                _ => self.sums(inputs, &shape, |acc, x, w: i8| check::mac(acc, x, zx, i32::from(w) - zw))?,
            };
            return Ok(Tensor::from_fn(&shape, |i| out[i]));
        }
        // Padding zeros times an infinite or NaN weight are NaN, so the padding must take part in the sums.
        if self.pads != [0; 4] && !inputs[1].doubles().iter().all(|w| w.is_finite()) {
            let padded = self.border().eval(&inputs[..1])?;
            let operands: Vec<&Tensor> = std::iter::once(&padded).chain(inputs[1..].iter().copied()).collect();
            return Conv2d { pads: [0; 4], ..self.clone() }.eval(&operands);
        }
        // 64-bit sums, so that a faster implementation can sum in another order.
        with_real!(inputs[0].dtype(), T => {
            let out = self.sums(inputs, &shape, |acc: f64, x: T, w: T| acc + x.double() * w.double())?;
            biased::<T>(&out, inputs.get(2), &shape, self.layout)
        })
    }

    /// The padding as a `pad` operator.
    fn border(&self) -> Pad {
        let (mut before, mut after) = (vec![0; 4], vec![0; 4]);
        for (i, axis) in self.layout.spatial_axes().into_iter().enumerate() {
            (before[axis], after[axis]) = (self.pads[i], self.pads[i + 2]);
        }
        Pad { before, after, value: 0.0 }
    }

    fn sums<T: Element, W: Element, A: Copy + Default>(
        &self, inputs: &[&Tensor], out_shape: &[usize], mac: impl Fn(A, T, W) -> A,
    ) -> Result<Vec<A>, OpError> {
        let (x, w) = (inputs[0].as_slice::<T>()?, inputs[1].as_slice::<W>()?);
        let (im, om) = (Image::new(inputs[0].shape(), self.layout), Image::new(out_shape, self.layout));
        let ws = inputs[1].shape();
        let (window, depth, per_group) = (self.window(ws), ws[3], ws[0] / self.groups);
        let mut out = vec![A::default(); out_shape.iter().product()];
        if depth == 0 {
            return Ok(out);
        }
        let columns: Vec<_> = (0..om.w).map(|ow| window.taps(1, ow, im.w)).collect();
        for oh in 0..om.h {
            let rows = window.taps(0, oh, im.h);
            for (ow, columns) in columns.iter().enumerate() {
                for n in 0..im.n {
                    for oc in 0..om.c {
                        let c0 = oc / per_group * depth;
                        let mut acc = A::default();
                        for &(kh, ih) in &rows {
                            for &(kw, iw) in columns {
                                let taps = &w[((oc * ws[1] + kh) * ws[2] + kw) * depth..][..depth];
                                let data = &x[im.at(n, c0, ih, iw)..];
                                if im.sc == 1 {
                                    acc = taps.iter().zip(data).fold(acc, |acc, (&w, &x)| mac(acc, x, w));
                                } else {
                                    let data = data.iter().step_by(im.sc);
                                    acc = taps.iter().zip(data).fold(acc, |acc, (&w, &x)| mac(acc, x, w));
                                }
                            }
                        }
                        out[om.at(n, oc, oh, ow)] = acc;
                    }
                }
            }
        }
        Ok(out)
    }
}
