//! Windows that slide over images: the rules of padding, averages and norms.

use super::SemanticBuilder;
use super::norm::length;
use crate::frontend::reason::Reason;
use crate::graph::op::{
    ArgReduce, AvgPool2d, BinaryKind, Concat, Conv2d, ConvTranspose2d, Gather, GlobalAvgPool, Layout, Pad, ReduceKind,
    Slice,
};
use crate::graph::{DType, Tensor, TensorType, ValueId};

/// How much padding there is around an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// Top, left, bottom, right.
    Given([usize; 4]),
    Valid,
    /// So much that there is a window for each step of the strides; an odd one is at the bottom and right.
    SameUpper,
    /// The same with an odd one at the top and left.
    SameLower,
}

/// What a window looks like, and how it moves; height first.
#[derive(Debug, Clone, Copy)]
pub struct Sliding {
    pub kernel: [usize; 2],
    pub strides: [usize; 2],
    pub dilations: [usize; 2],
    pub padding: Padding,
    /// Whether a last window may reach beyond the padding.
    pub round_up: bool,
}

/// The windows of images of one size.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub strides: [usize; 2],
    pub dilations: [usize; 2],
    /// Top, left, bottom, right.
    pub pads: [usize; 4],
    /// The pads without what a last window that reaches beyond them adds.
    pub given: [usize; 4],
    /// True if such a window added padding at the end.
    pub ceil: bool,
}

/// Elements from the first to the last that a window of `kernel` elements reads.
fn reach(kernel: usize, dilation: usize) -> Option<usize> {
    kernel.saturating_sub(1).checked_mul(dilation)?.checked_add(1)
}

/// How many windows there are along a dimension with padding before and after it; `None` if not even one fits.
pub fn count(size: usize, pads: [usize; 2], kernel: usize, stride: usize, dilation: usize) -> Option<usize> {
    let padded = size.checked_add(pads[0])?.checked_add(pads[1])?;
    Some(padded.checked_sub(reach(kernel, dilation)?)? / stride + 1)
}

/// The padding of a dimension, before and after, with which there is a window for each step of the stride; an odd element
/// comes after, or before if `lower`.
pub fn same_padding(
    size: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    lower: bool,
) -> Result<(usize, usize), Reason> {
    if stride == 0 {
        return Err("its stride must be positive".into());
    }
    let reach = reach(kernel, dilation).ok_or("its kernel is too large")?;
    let total = (size.div_ceil(stride).max(1) - 1).saturating_mul(stride).saturating_add(reach).saturating_sub(size);
    let (small, large) = (total / 2, total - total / 2);
    Ok(if lower { (large, small) } else { (small, large) })
}

/// The windows over `[N, C, H, W]`.
pub fn window(data: &TensorType, by: Sliding) -> Result<Window, Reason> {
    let Sliding { kernel, strides, dilations, padding, round_up } = by;
    if data.rank() != 4 {
        return Err(format!("its data must have 4 dimensions, found {data}").into());
    }
    if kernel.contains(&0) {
        return Err("its kernel must be positive".into());
    }
    let mut pads = if let Padding::Given(pads) = padding { pads } else { [0; 4] };
    let (mut given, mut ceil) = (pads, false);
    for i in 0..2 {
        let known = || data.dims[2 + i].known().ok_or("height and width must be known");
        if matches!(padding, Padding::SameUpper | Padding::SameLower) {
            let lower = padding == Padding::SameLower;
            (pads[i], pads[i + 2]) = same_padding(known()?, kernel[i], strides[i], dilations[i], lower)?;
        }
        (given[i], given[i + 2]) = (pads[i], pads[i + 2]);
        if round_up {
            let size = known()?;
            let reach = reach(kernel[i], dilations[i]).ok_or("its kernel is too large")?;
            let padded = size.saturating_add(pads[i]).saturating_add(pads[i + 2]);
            let over = padded.checked_sub(reach).ok_or("its kernel is larger than the padded image")? % strides[i];
            // One more window, if it begins inside the image or the padding in front of it.
            let start = (padded - reach - over).saturating_add(strides[i]);
            if over > 0 && start < size.saturating_add(pads[i]) {
                pads[i + 2] = pads[i + 2].saturating_add(strides[i] - over);
                ceil = true;
            }
        }
    }
    Ok(Window { strides, dilations, pads, given, ceil })
}

/// The averages of the windows over `[N, C, H, W]`, of the image alone or of its padding too.
pub fn averages(
    n: &mut SemanticBuilder,
    suffix: &str,
    data: ValueId,
    kernel: [usize; 2],
    w: &Window,
    count_include_pad: bool,
) -> Result<ValueId, Reason> {
    let op = |kernel, strides, pads, count_include_pad| AvgPool2d {
        kernel,
        strides,
        pads,
        count_include_pad,
        layout: Layout::Nchw,
        lo: -128,
        hi: 127,
        unsigned: false,
    };
    if w.dilations != [1, 1] || (w.ceil && count_include_pad) {
        if !n.ty(data).dtype.is_float() {
            return Err("its dilations must be 1 with integers".into());
        }
        windows(n, data, w, kernel, count_include_pad, suffix)
    } else if !count_include_pad && (0..2).any(|i| w.pads[i] >= kernel[i] || w.pads[i + 2] >= kernel[i]) {
        Err("its pads must be smaller than its kernel".into())
    } else {
        n.node(suffix, op(kernel, w.strides, w.pads, count_include_pad), &[data])
    }
}

/// Sums of windows, divided by the number of elements in each.
fn windows(
    n: &mut SemanticBuilder,
    data: ValueId,
    w: &Window,
    kernel: [usize; 2],
    count_pads: bool,
    suffix: &str,
) -> Result<ValueId, Reason> {
    let shape = n.shape(data)?;
    let [h, width] = [shape[2], shape[3]];
    let sums = sums(n, "sums", data, kernel, w, w.pads)?;
    // Counts the image, and its padding if the file says so, but not what `ceil_mode` added.
    let image = n.table("counted", &[1, 1, h, width], |_| 1f32)?;
    let (image, pads) = if count_pads {
        let p = w.given;
        let border = Pad { before: vec![0, 0, p[0], p[1]], after: vec![0, 0, p[2], p[3]], value: 1.0 };
        let rest = [0, 0, w.pads[2] - p[2], w.pads[3] - p[3]];
        (n.node("counted", border, &[image])?, rest)
    } else {
        (image, w.pads)
    };
    let counts = self::sums(n, "counts", image, kernel, w, pads)?;
    n.binary(suffix, BinaryKind::Div, sums, counts)
}

/// The sums of windows over `[N, C, H, W]` with these pads, by a depthwise convolution with ones.
fn sums(
    n: &mut SemanticBuilder,
    suffix: &str,
    data: ValueId,
    kernel: [usize; 2],
    w: &Window,
    pads: [usize; 4],
) -> Result<ValueId, Reason> {
    let channels = n.shape(data)?[1];
    let op = Conv2d {
        strides: w.strides,
        pads,
        dilations: w.dilations,
        groups: channels,
        layout: Layout::Nchw,
        data_zero_point: 0,
        weight_zero_point: 0,
    };
    let taps = n.table("ones", &[channels, kernel[0], kernel[1], 1], |_| 1f32)?;
    n.node(suffix, op, &[data, taps])
}

/// The norms of the windows over `[N, C, H, W]`.
pub fn norms(
    n: &mut SemanticBuilder,
    suffix: &str,
    data: ValueId,
    kernel: [usize; 2],
    w: &Window,
    p: i64,
) -> Result<ValueId, Reason> {
    length(n, suffix, data, p, |n, v| sums(n, "sums", v, kernel, w, w.pads))
}

/// The averages over all dimensions after batch and channels.
pub fn global_averages(n: &mut SemanticBuilder, name: &str, data: ValueId) -> Result<ValueId, Reason> {
    match n.ty(data).rank() {
        4 => n.node(name, GlobalAvgPool { layout: Layout::Nchw, lo: -128, hi: 127 }, &[data]),
        rank => n.reduce(name, ReduceKind::Mean, &(2..rank).collect::<Vec<_>>(), true, data),
    }
}

/// The place in its image of the greatest element of each window over `[N, C, H, W]`, counted over the whole tensor (i64).
/// Places go along the rows of an image, or along its columns if `by_columns`.
pub fn greatest_places(
    n: &mut SemanticBuilder,
    data: ValueId,
    kernel: [usize; 2],
    w: &Window,
    by_columns: bool,
) -> Result<ValueId, Reason> {
    let shape = n.shape(data)?;
    let &[images, channels, height, width] = shape.as_slice() else { return Err("its data must be images".into()) };
    let sizes = [height, width];
    let mut out = [0; 2];
    for i in 0..2 {
        let found = count(sizes[i], [w.pads[i], w.pads[i + 2]], kernel[i], w.strides[i], w.dilations[i]);
        out[i] = found.ok_or("its kernel is larger than the padded image")?;
    }
    n.reserve_nodes(kernel[0] * kernel[1])?;
    let p = w.pads.map(|pad| pad as i64);
    let float = n.float("float", data)?;
    let ends = [(0, 0), (0, 0), (p[0], p[2]), (p[1], p[3])];
    let padded = super::pad::constant(n, "padded", float, &ends, f32::NEG_INFINITY)?;
    let steps = vec![1, 1, w.strides[0] as i64, w.strides[1] as i64];
    let (mut taps, mut offsets) = (Vec::new(), Vec::new());
    let step = if by_columns { [1, height] } else { [width, 1] };
    for y in 0..kernel[0] {
        for x in 0..kernel[1] {
            let from = [y * w.dilations[0], x * w.dilations[1]];
            let slice = Slice {
                starts: vec![0, 0, from[0], from[1]],
                sizes: vec![images, channels, out[0], out[1]],
                steps: steps.clone(),
            };
            let tap = n.node("tap", slice, &[padded])?;
            taps.push(n.reshape("tap/row", tap, &[1, images, channels, out[0], out[1]])?);
            offsets.push((from[0] * step[0] + from[1] * step[1]) as i64);
        }
    }
    let all = n.node("taps", Concat { axis: 0 }, &taps)?;
    let op = ArgReduce { axis: 0, keep_dims: false, greatest: true, last: false, dtype: DType::I64 };
    let chosen = n.node("chosen", op, &[all])?;
    let offsets = n.made("offsets", Tensor::vector(offsets));
    let offset = n.node("offset", Gather { axis: 0 }, &[offsets, chosen])?;
    let area = (height * width) as i64;
    let base = n.table("base", &[images, channels, out[0], out[1]], |i| {
        let (x, y, image) = (i % out[1], i / out[1] % out[0], i / (out[0] * out[1]));
        let [y, x] = [(y, 0), (x, 1)].map(|(o, i)| (o * w.strides[i]) as i64 - p[i]);
        image as i64 * area + y * step[0] as i64 + x * step[1] as i64
    })?;
    n.add("places", base, offset)
}

/// Sums of columns of windows, `[N, C * kernel, windows]`, where they overlap: the images that the windows are of.
pub fn images_of_columns(
    n: &mut SemanticBuilder,
    data: ValueId,
    image: [usize; 2],
    by: Sliding,
) -> Result<ValueId, Reason> {
    let Sliding { kernel, strides, dilations, padding, .. } = by;
    let pads = if let Padding::Given(pads) = padding { pads } else { [0; 4] };
    let shape = n.shape(data)?;
    let &[images, columns, count] = shape.as_slice() else {
        return Err(format!("its data must have 3 dimensions, found {}", n.ty(data)).into());
    };
    let taps = kernel[0] * kernel[1];
    let mut windows = [0; 2];
    for i in 0..2 {
        let found = self::count(image[i], [pads[i], pads[i + 2]], kernel[i], strides[i], dilations[i]);
        windows[i] = found.ok_or("its blocks are larger than its image")?;
    }
    if taps == 0 || columns % taps != 0 || windows[0] * windows[1] != count {
        return Err(format!("its data {} do not suit blocks {kernel:?} of images {image:?}", n.ty(data)).into());
    }
    let channels = columns / taps;
    let v = n.reshape("windows", data, &[images, columns, windows[0], windows[1]])?;
    // A tap of a column is the element at its place in the window.
    let weight =
        n.table("taps", &[channels, kernel[0], kernel[1], taps], |i| f32::from(u8::from(i % taps == i / taps % taps)))?;
    let op = ConvTranspose2d {
        strides,
        pads: [pads[0], pads[1]],
        size: image,
        dilations,
        groups: channels,
        layout: Layout::Nchw,
        data_zero_point: 0,
        weight_zero_point: 0,
    };
    n.node("", op, &[v, weight])
}
