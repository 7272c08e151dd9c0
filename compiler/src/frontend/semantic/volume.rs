//! Windows and convolutions over volumes, `[N, C, D, H, W]`: images for each depth, which are joined along it.

use super::SemanticBuilder;
use super::pad;
use super::window::{Padding, Sliding, Window, count, window};
use crate::frontend::reason::Reason;
use crate::graph::ValueId;
use crate::graph::op::{Conv2d, Layout, Slice, Transpose};

/// What a window over a volume looks like, and how it moves; depth, height, width.
#[derive(Debug, Clone, Copy)]
pub struct Sliding3 {
    pub kernel: [usize; 3],
    pub strides: [usize; 3],
    pub dilations: [usize; 3],
    /// Before all dimensions, then after them; `None` is what `padding` says.
    pub pads: Option<[usize; 6]>,
    /// The rule of padding if there are no pads.
    pub padding: Padding,
    /// Whether a last window may reach beyond the padding.
    pub round_up: bool,
}

impl Sliding3 {
    /// The window over height and width of an image.
    fn image(&self) -> Sliding {
        let pads = self.pads.map(|p| Padding::Given([p[1], p[2], p[4], p[5]]));
        Sliding {
            kernel: [self.kernel[1], self.kernel[2]],
            strides: [self.strides[1], self.strides[2]],
            dilations: [self.dilations[1], self.dilations[2]],
            padding: pads.unwrap_or(self.padding),
            round_up: self.round_up,
        }
    }

    /// The window over depth, as the height of an image with one column for each pixel.
    fn depth(&self) -> Sliding {
        let pads = self.pads.map(|p| Padding::Given([p[0], 0, p[3], 0]));
        Sliding {
            kernel: [self.kernel[0], 1],
            strides: [self.strides[0], 1],
            dilations: [self.dilations[0], 1],
            padding: pads.unwrap_or(self.padding),
            round_up: self.round_up,
        }
    }
}

/// The sizes of a volume.
fn sizes(n: &SemanticBuilder, data: ValueId) -> Result<[usize; 5], Reason> {
    n.shape(data)?.try_into().map_err(|_| Reason("its data must have 5 dimensions".into()))
}

/// A pool over a volume: over the images of each depth, then over depths. `pool` is one of images whose result over a box
/// is that of results over its slices, as of a maximum, an average of what is counted, or a norm.
pub fn pooled(
    n: &mut SemanticBuilder,
    data: ValueId,
    by: Sliding3,
    mut pool: impl FnMut(&mut SemanticBuilder, ValueId, [usize; 2], &Window) -> Result<ValueId, Reason>,
) -> Result<ValueId, Reason> {
    let [images, channels, depth, h, w] = sizes(n, data)?;
    let layers = channels.checked_mul(depth).ok_or("its data are too large")?;
    let v = n.reshape("images", data, &[images, layers, h, w])?;
    let image = by.image();
    let v = pool(n, v, image.kernel, &window(&n.ty(v).clone(), image)?)?;
    let out = n.shape(v)?;
    let v = n.reshape("depths", v, &[images, channels, depth, out[2] * out[3]])?;
    let along = by.depth();
    let v = pool(n, v, along.kernel, &window(&n.ty(v).clone(), along)?)?;
    let deep = n.shape(v)?[2];
    n.reshape("", v, &[images, channels, deep, out[2], out[3]])
}

/// The convolution of a volume with weights `[O, C / groups, D, H, W]`: the sum over the kernel's depths of convolutions
/// of images.
pub fn convolution(
    n: &mut SemanticBuilder,
    data: ValueId,
    weight: ValueId,
    bias: Option<ValueId>,
    by: Sliding3,
    groups: usize,
) -> Result<ValueId, Reason> {
    let [images, channels, depth, h, w] = sizes(n, data)?;
    let [out, per_group, kd, kh, kw] = sizes(n, weight)?;
    // The same rules of padding as of images, along depth.
    let along = n.reshape("along", data, &[images, channels, depth, h * w])?;
    let along = window(&n.ty(along).clone(), by.depth())?;
    let deep = count(depth, [along.pads[0], along.pads[2]], kd, by.strides[0], by.dilations[0]);
    let deep = deep.ok_or("its kernel is larger than the padded volume")?;
    let mut ends = [(0, 0); 5];
    ends[2] = (along.pads[0] as i64, along.pads[2] as i64);
    let data = pad::constant(n, "padded", data, &ends, 0.0)?;
    // [N, D, C, H, W]
    let data = n.node("depth_first", Transpose { perm: vec![0, 2, 1, 3, 4] }, &[data])?;
    let mut sum = None;
    for k in 0..kd {
        let slice = Slice {
            starts: vec![0, k * by.dilations[0], 0, 0, 0],
            sizes: vec![images, deep, channels, h, w],
            steps: vec![1, by.strides[0] as i64, 1, 1, 1],
        };
        let slices = n.node("slices", slice, &[data])?;
        let slices = n.reshape("images", slices, &[images * deep, channels, h, w])?;
        let own = super::movement::part(n, "weight/depth", weight, 2, k, 1)?;
        let own = n.reshape("weight/image", own, &[out, per_group, kh, kw])?;
        let own = n.transposed("weight", own, &[0, 2, 3, 1])?;
        let image = window(&n.ty(slices).clone(), by.image())?;
        let op = Conv2d {
            strides: image.strides,
            pads: image.pads,
            dilations: image.dilations,
            groups,
            layout: Layout::Nchw,
            data_zero_point: 0,
            weight_zero_point: 0,
        };
        let operands: Vec<ValueId> = [slices, own].into_iter().chain(bias.filter(|_| k == 0)).collect();
        let v = n.node("conv", op, &operands)?;
        sum = Some(match sum {
            Some(sum) => n.add("sum", sum, v)?,
            None => v,
        });
    }
    let v = sum.ok_or("its kernel must be positive")?;
    let made = n.shape(v)?;
    let v = n.reshape("volumes", v, &[images, deep, out, made[2], made[3]])?;
    n.node("", Transpose { perm: vec![0, 2, 1, 3, 4] }, &[v])
}

/// How a transposed convolution of a volume moves, and what is cut off; depth, height, width.
#[derive(Debug, Clone, Copy)]
pub struct Transposed3 {
    pub strides: [usize; 3],
    pub dilations: [usize; 3],
    /// Elements that are cut off before each dimension.
    pub before: [usize; 3],
    /// The sizes of the result.
    pub size: [usize; 3],
    pub groups: usize,
}

/// The transposed convolution of a volume with weights `[C, O / groups, D, H, W]`: the sum over the kernel's depths of
/// transposed convolutions of images, each moved to its depth.
pub fn transposed(
    n: &mut SemanticBuilder,
    data: ValueId,
    weight: ValueId,
    bias: Option<ValueId>,
    by: Transposed3,
) -> Result<ValueId, Reason> {
    let [images, channels, depth, h, w] = sizes(n, data)?;
    let [inputs, per_group, kd, kh, kw] = sizes(n, weight)?;
    let data = n.node("depth_first", Transpose { perm: vec![0, 2, 1, 3, 4] }, &[data])?;
    let data = n.reshape("images", data, &[images * depth, channels, h, w])?;
    let (out, stride) = (per_group.checked_mul(by.groups).ok_or("its result is too large")?, by.strides[0]);
    let [deep, high, wide] = by.size;
    let mut sum = None;
    for k in 0..kd {
        let own = super::movement::part(n, "weight/depth", weight, 2, k, 1)?;
        let own = n.reshape("weight/image", own, &[inputs, per_group, kh, kw])?;
        let steps = super::conv::Transposed {
            strides: [by.strides[1], by.strides[2]],
            dilations: [by.dilations[1], by.dilations[2]],
            groups: by.groups,
        };
        let cut = super::conv::Cut { before: [by.before[1], by.before[2]], size: [high, wide] };
        let v = super::conv::transposed(n, data, own, None, steps, |_, _| Ok(cut))?;
        // Depth `d` of the data goes to `d * stride + k * dilation` of the result.
        let v = n.reshape("depths", v, &[images, depth, 1, out * high * wide])?;
        let v = pad::constant(n, "apart", v, &[(0, 0), (0, 0), (0, stride as i64 - 1), (0, 0)], 0.0)?;
        let v = n.reshape("depth", v, &[images, depth * stride, out, high, wide])?;
        let first = (k * by.dilations[0]) as i64 - by.before[0] as i64;
        let last = deep as i64 - first - (depth * stride) as i64;
        let mut ends = [(0, 0); 5];
        ends[1] = (first, last);
        let v = pad::constant(n, "moved", v, &ends, 0.0)?;
        sum = Some(match sum {
            Some(sum) => n.add("sum", sum, v)?,
            None => v,
        });
    }
    let v = sum.ok_or("its kernel must be positive")?;
    let v = n.node("volumes", Transpose { perm: vec![0, 2, 1, 3, 4] }, &[v])?;
    let Some(bias) = bias else { return Ok(v) };
    let bias = super::norm::channels(n, "bias", bias, 5)?;
    n.add("", v, bias)
}
