//! `hybrid_conv2d`: convolution of floats with int8 weights.

use super::hybrid_dense::quantize_row;
use super::window::{Image, Window};
use super::{Layout, check};
use crate::graph::{DType, Dim, OpError, Tensor, TensorType};

operator! {
    /// Convolution of `data [N, H, W, I]` (f32) with `weight [O, KH, KW, I/groups]` (i8, with `scale [O]`), plus
    /// `bias [O]`: f32.
    ///
    /// Each image is quantized to 8 bits by its own range, like a row of `hybrid_dense`, multiplied as integers, and
    /// scaled back: `sum((q - z) * w) * (scale * s) + bias`. Padding is 0.
    HybridConv2d = "hybrid_conv2d"(data, weight, scale, bias) {
        /// Steps of height and width.
        strides: [usize; 2] = [1, 1],
        /// Top, left, bottom, right.
        pads: [usize; 4] = [0, 0, 0, 0],
        /// Distance between taps in height and width.
        dilations: [usize; 2] = [1, 1],
        /// Number of groups that input and output channels are split into.
        groups: usize = 1,
        /// Quantizes by the range of an image instead of by its greatest magnitude.
        asymmetric: bool = false,
    }
}

impl HybridConv2d {
    fn window<'a>(&'a self, weight: &[usize]) -> Window<'a> {
        let kernel = [weight[1], weight[2]];
        Window { kernel, strides: self.strides, pads: &self.pads, dilations: self.dilations }
    }

    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 4, 4)?;
        let (data, weight) = (inputs[0], inputs[1]);
        check::dtype("data", data, &[DType::F32])?;
        check::dtype("weight", weight, &[DType::I8])?;
        let w = check::kernel(data, weight, Layout::Nhwc.channel_axis(), self.groups)?;
        check::vector("scale", inputs[2], DType::F32, &Dim::Fixed(w[0]))?;
        check::vector("bias", inputs[3], DType::F32, &Dim::Fixed(w[0]))?;
        self.window(&w).output_type(data, Layout::Nhwc, Dim::Fixed(w[0]))
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let types: Vec<_> = inputs.iter().map(|t| t.ty()).collect();
        let shape = check::known("data", &self.infer(&types.iter().collect::<Vec<_>>())?)?;
        let (x, w) = (inputs[0].as_slice::<f32>()?, inputs[1].as_slice::<i8>()?);
        let (scale, bias) = (inputs[2].as_slice::<f32>()?, inputs[3].as_slice::<f32>()?);
        let (im, om) = (Image::new(inputs[0].shape(), Layout::Nhwc), Image::new(&shape, Layout::Nhwc));
        let images: Vec<(Vec<i32>, f32)> =
            (0..im.n).map(|n| quantize_row(&x[n * im.sn..(n + 1) * im.sn], self.asymmetric)).collect();
        let ws = inputs[1].shape();
        let (window, depth, per_group) = (self.window(ws), ws[3], (ws[0] / self.groups).max(1));
        let mut out = vec![0f32; shape.iter().product()];
        for (n, oh) in (0..om.n).flat_map(|n| (0..om.h).map(move |h| (n, h))) {
            let (q, step) = &images[n];
            let rows = window.taps(0, oh, im.h);
            for ow in 0..om.w {
                let columns = window.taps(1, ow, im.w);
                for oc in 0..om.c {
                    let mut acc = 0i32;
                    for ((kh, ih), (kw, iw)) in rows.iter().flat_map(|r| columns.iter().map(move |c| (r, c))) {
                        let at = im.at(0, oc / per_group * depth, *ih, *iw);
                        let taps = &w[((oc * ws[1] + kh) * ws[2] + kw) * depth..][..depth];
                        let mac = |acc: i32, (&w, &q): (&i8, &i32)| acc.wrapping_add(i32::from(w) * q);
                        acc = taps.iter().zip(&q[at..]).fold(acc, mac);
                    }
                    out[om.at(n, oc, oh, ow)] = acc as f32 * (scale[oc] * step) + bias[oc];
                }
            }
        }
        Ok(Tensor::from_fn(&shape, |i| out[i]))
    }
}
