//! `conv_transpose2d`: transposed two-dimensional convolution with groups.

use super::window::{Image, biased};
use super::{Layout, check};
use crate::graph::tensor::with_real;
use crate::graph::{DType, Dim, Element, OpError, Tensor, TensorType};

operator! {
    /// Transposed convolution of `data` with `weight [O, KH, KW, I/groups]`, plus `bias [O]` if the data are floats.
    ///
    /// Each element of the data adds its products with the kernel to a window of the result. The window begins at the
    /// element's position times the strides, less the pads.
    ///
    /// Floats have one type; i8 x i8 -> i32 without bias, the wrapping sum of
    /// `(data - data_zero_point) * (weight - weight_zero_point)`; i8 x i32 -> i32 the same, for weights that are
    /// already less their zero points.
    ConvTranspose2d = "conv_transpose2d"(data, weight, [bias]) {
        /// Distance between the windows of neighboring elements in height and width.
        strides: [usize; 2] = [1, 1],
        /// Rows cut off at the top of the result, and columns at its left.
        pads: [usize; 2] = [0, 0],
        /// Height and width of the result.
        size: [usize; 2],
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

impl ConvTranspose2d {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 2, 3)?;
        let (data, weight) = (inputs[0], inputs[1]);
        check::dtype("data", data, DType::FLOATS_OR_I8)?;
        check::weight(data, weight, self.weight_zero_point)?;
        let w = check::kernel(data, weight, self.layout.channel_axis(), self.groups)?;
        if self.strides.contains(&0) || self.dilations.contains(&0) || w[1] == 0 || w[2] == 0 {
            return Err(OpError::attribute("strides", "and dilations and the kernel must be positive"));
        }
        let mut dims = data.dims.clone();
        for (i, a) in self.layout.spatial_axes().into_iter().enumerate() {
            // Keeps every index into window and result within range.
            let far = check::known_dim("data", data, a)?
                .checked_mul(self.strides[i])
                .and_then(|n| n.checked_add((w[i + 1] - 1).checked_mul(self.dilations[i])?))
                .and_then(|n| n.checked_add(self.size[i])?.checked_add(self.pads[i]))
                .filter(|&n| (n as u64) < 1 << 40);
            if far.is_none() {
                return Err(OpError::attribute("size", "and strides and dilations are too large"));
            }
            dims[a] = Dim::Fixed(self.size[i]);
        }
        dims[self.layout.channel_axis()] = Dim::Fixed(w[0]);
        if data.dtype == DType::I8 {
            check::arity(inputs, 2, 2)?;
            check::zero_point_i8("data_zero_point", self.data_zero_point)?;
            check::zero_point_i8("weight_zero_point", self.weight_zero_point)?;
            return Ok(TensorType { dtype: DType::I32, dims });
        }
        check::no_zero_points(self.data_zero_point, self.weight_zero_point)?;
        if let Some(bias) = inputs.get(2) {
            check::vector("bias", bias, data.dtype, &Dim::Fixed(w[0]))?;
        }
        Ok(TensorType { dtype: data.dtype, dims })
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
        with_real!(inputs[0].dtype(), T => {
            let out = self.sums(inputs, &shape, |acc: f64, x: T, w: T| acc + x.double() * w.double())?;
            biased::<T>(&out, inputs.get(2), &shape, self.layout)
        })
    }

    fn sums<T: Element, W: Element, A: Copy + Default>(
        &self, inputs: &[&Tensor], out_shape: &[usize], mac: impl Fn(A, T, W) -> A,
    ) -> Result<Vec<A>, OpError> {
        let (x, w) = (inputs[0].as_slice::<T>()?, inputs[1].as_slice::<W>()?);
        let (im, om) = (Image::new(inputs[0].shape(), self.layout), Image::new(out_shape, self.layout));
        let ws = inputs[1].shape();
        let (depth, per_group) = (ws[3], (ws[0] / self.groups).max(1));
        let mut out = vec![A::default(); out_shape.iter().product()];
        let place = |i: usize, at: usize, k: usize| {
            (at * self.strides[i] + k * self.dilations[i]).checked_sub(self.pads[i]).filter(|&o| o < self.size[i])
        };
        for (n, ih, kh) in (0..im.n).flat_map(|n| (0..im.h).flat_map(move |h| (0..ws[1]).map(move |k| (n, h, k)))) {
            let Some(oh) = place(0, ih, kh) else { continue };
            for (iw, kw) in (0..im.w).flat_map(|i| (0..ws[2]).map(move |k| (i, k))) {
                let Some(ow) = place(1, iw, kw) else { continue };
                for oc in 0..om.c {
                    let sum = &mut out[om.at(n, oc, oh, ow)];
                    for d in 0..depth {
                        let v = x[im.at(n, oc / per_group * depth + d, ih, iw)];
                        *sum = mac(*sum, v, w[((oc * ws[1] + kh) * ws[2] + kw) * depth + d]);
                    }
                }
            }
        }
        Ok(out)
    }
}
