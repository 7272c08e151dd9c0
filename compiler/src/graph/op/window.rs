//! Windows of convolution and pooling over the height and width of an image.

use super::{Layout, check};
use crate::graph::tensor::{Real, strides};
use crate::graph::{Dim, OpError, Tensor, TensorType};

/// A window. Kernel, strides and dilations are `[height, width]`, pads are `[top, left, bottom, right]`.
pub(crate) struct Window<'a> {
    pub kernel: [usize; 2],
    pub strides: [usize; 2],
    pub pads: &'a [usize; 4],
    pub dilations: [usize; 2],
}

impl Window<'_> {
    /// Checks the window and returns height and width of the output.
    pub fn output(&self, data: &TensorType, layout: Layout) -> Result<[usize; 2], OpError> {
        check::rank("data", data, 4)?;
        let mut out = [0; 2];
        for i in 0..2 {
            for (name, v) in
                [("kernel", self.kernel[i]), ("strides", self.strides[i]), ("dilations", self.dilations[i])]
            {
                if v == 0 {
                    return Err(OpError::attribute(name, "must be positive, found 0"));
                }
            }
            let size = check::known_dim("data", data, layout.spatial_axes()[i])?;
            let reach = (self.kernel[i] - 1).checked_mul(self.dilations[i]).and_then(|r| r.checked_add(1));
            let padded = size.checked_add(self.pads[i]).and_then(|s| s.checked_add(self.pads[i + 2]));
            let (Some(reach), Some(padded)) = (reach, padded) else {
                return Err(OpError::attribute("pads", "make the padded image too large"));
            };
            if reach > padded {
                let name = ["height", "width"][i];
                let reason = format!("covers {reach} elements of {name}, but the padded image has only {padded}");
                return Err(OpError::attribute("kernel", reason));
            }
            out[i] = (padded - reach) / self.strides[i] + 1;
        }
        Ok(out)
    }

    /// The type of an output with these channels.
    pub fn output_type(&self, data: &TensorType, layout: Layout, channels: Dim) -> Result<TensorType, OpError> {
        let [h, w] = self.output(data, layout)?;
        let n = data.dims[0].clone();
        let dims = match layout {
            Layout::Nhwc => vec![n, h.into(), w.into(), channels],
            Layout::Nchw => vec![n, channels, h.into(), w.into()],
        };
        Ok(TensorType { dtype: data.dtype, dims })
    }

    /// For row or column `o` of the output, the kernel taps inside the image, each with its image coordinate.
    pub fn taps(&self, i: usize, o: usize, size: usize) -> Vec<(usize, usize)> {
        let place = |k: usize| (o * self.strides[i] + k * self.dilations[i]).checked_sub(self.pads[i]);
        (0..self.kernel[i]).filter_map(|k| Some((k, place(k).filter(|&p| p < size)?))).collect()
    }
}

/// The sums of an image of floats, with the bias of their channel added.
pub(super) fn biased<T: Real>(
    sums: &[f64],
    bias: Option<&&Tensor>,
    shape: &[usize],
    layout: Layout,
) -> Result<Tensor, OpError> {
    let (bias, o) = (bias.map(|bias| bias.as_slice::<T>()).transpose()?, Image::new(shape, layout));
    let of_channel = |i: usize| bias.map_or(0.0, |bias| bias[i / o.sc % o.c].double());
    Ok(Tensor::from_fn(shape, |i| T::of_double(sums[i] + of_channel(i))))
}

/// Sizes of an image tensor and the stride of each dimension.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Image {
    pub n: usize,
    pub c: usize,
    pub h: usize,
    pub w: usize,
    pub sn: usize,
    pub sc: usize,
    pub sh: usize,
    pub sw: usize,
}

impl Image {
    /// The image of a four-dimensional shape.
    pub fn new(shape: &[usize], layout: Layout) -> Image {
        let s = strides(shape);
        let (c, [h, w]) = (layout.channel_axis(), layout.spatial_axes());
        Image { n: shape[0], c: shape[c], h: shape[h], w: shape[w], sn: s[0], sc: s[c], sh: s[h], sw: s[w] }
    }

    /// Flat index of an element.
    pub fn at(&self, n: usize, c: usize, h: usize, w: usize) -> usize {
        n * self.sn + c * self.sc + h * self.sh + w * self.sw
    }
}
