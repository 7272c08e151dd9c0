//! Windows that slide over images: the rules of padding, averages and norms.

use super::SemanticBuilder;
use super::norm::length;
use crate::frontend::reason::Reason;
use crate::graph::op::{AvgPool2d, BinaryKind, Conv2d, GlobalAvgPool, Layout, Pad, ReduceKind};
use crate::graph::{DType, TensorType, ValueId};

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
        if n.ty(data).dtype != DType::F32 {
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
