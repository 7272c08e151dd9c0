//! Convolutions over lines and images, also transposed ones. [`volume`](super::volume) has those over volumes.

use super::SemanticBuilder;
use super::window::{Padding, Sliding, Window, window};
use crate::frontend::reason::Reason;
use crate::graph::ValueId;
use crate::graph::op::{Conv2d, ConvTranspose2d, Layout};

/// How a kernel moves over images; height first. Lines have a height of 1.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    pub strides: [usize; 2],
    pub dilations: [usize; 2],
    pub padding: Padding,
}

/// Adds a height of 1 to data that have only a width. The flag says whether it did.
pub fn as_image(n: &mut SemanticBuilder, suffix: &str, v: ValueId) -> Result<(ValueId, bool), Reason> {
    match n.ty(v).rank() {
        4 => Ok((v, false)),
        3 => {
            let mut shape = n.shape(v)?;
            shape.insert(2, 1);
            Ok((n.reshape(suffix, v, &shape)?, true))
        }
        _ => Err(format!(
            "its {suffix} must have one or two dimensions in addition to batch and channels, found {}",
            n.ty(v)
        )
        .into()),
    }
}

/// Removes the height that [`as_image`] added.
pub fn as_data(n: &mut SemanticBuilder, v: ValueId, line: bool) -> Result<ValueId, Reason> {
    if !line {
        return Ok(v);
    }
    let mut shape = n.shape(v)?;
    shape.remove(2);
    n.reshape("line", v, &shape)
}

/// Weights as images, and their shape.
pub fn weights(n: &mut SemanticBuilder, weight: ValueId) -> Result<(ValueId, [usize; 4]), Reason> {
    if n.ty(weight).rank() > 4 || n.ty(weight).rank() < 3 {
        return Err(format!(
            "only convolutions over one or two dimensions are supported, found weights {}",
            n.ty(weight)
        )
        .into());
    }
    let weight = n.weight_image(weight)?;
    let shape: [usize; 4] = n.shape(weight)?.try_into().map_err(|_| "its weights must have 3 or 4 dimensions")?;
    Ok((weight, shape))
}

/// The convolution of `[N, C, W]` or `[N, C, H, W]` with weights `[O, C / groups, ...]`.
pub fn convolution(
    n: &mut SemanticBuilder,
    data: ValueId,
    weight: ValueId,
    bias: Option<ValueId>,
    by: Steps,
    groups: usize,
) -> Result<ValueId, Reason> {
    let (data, line) = as_image(n, "data", data)?;
    let (weight, [_, _, kh, kw]) = weights(n, weight)?;
    let Steps { strides, dilations, padding } = by;
    let by = Sliding { kernel: [kh, kw], strides, dilations, padding, round_up: false };
    let Window { strides, pads, dilations, .. } = window(&n.ty(data).clone(), by)?;
    let weight = n.transposed("weight", weight, &[0, 2, 3, 1])?;
    let mut operands = vec![data, weight];
    operands.extend(bias);
    let op =
        Conv2d { strides, pads, dilations, groups, layout: Layout::Nchw, data_zero_point: 0, weight_zero_point: 0 };
    let v = n.node(if line { "conv" } else { "" }, op, &operands)?;
    as_data(n, v, line)
}

/// How the results of a transposed convolution are cut.
#[derive(Debug, Clone, Copy)]
pub struct Transposed {
    pub strides: [usize; 2],
    pub dilations: [usize; 2],
    pub groups: usize,
}

/// What is cut off before height and width of a transposed convolution, and the sizes that are left.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    pub before: [usize; 2],
    pub size: [usize; 2],
}

/// The size of a dimension that a transposed convolution computes before cropping, for `size` elements of data and `extra`
/// elements of output padding.
pub fn full_size(size: usize, kernel: usize, stride: usize, dilation: usize, extra: usize) -> Result<usize, Reason> {
    let reach = (kernel.max(1) - 1).checked_mul(dilation).and_then(|r| r.checked_add(1));
    let full = (size.max(1) - 1).checked_mul(stride).and_then(|f| f.checked_add(reach?)?.checked_add(extra));
    full.ok_or_else(|| "its result is too large".into())
}

/// The transposed convolution of `[N, C, W]` or `[N, C, H, W]` with weights `[C, O / groups, ...]`. `cut` gets the sizes
/// of the data and of the kernel, height first.
pub fn transposed(
    n: &mut SemanticBuilder,
    data: ValueId,
    weight: ValueId,
    bias: Option<ValueId>,
    by: Transposed,
    cut: impl FnOnce([usize; 2], [usize; 2]) -> Result<Cut, Reason>,
) -> Result<ValueId, Reason> {
    let (data, line) = as_image(n, "data", data)?;
    let (weight, [inputs, per_group, kh, kw]) = weights(n, weight)?;
    let Transposed { strides, dilations, groups } = by;
    if groups == 0 || inputs % groups != 0 {
        return Err(format!("its groups, {groups}, must divide the {inputs} input channels").into());
    }
    let shape = n.shape(data)?;
    let Cut { before, size } = cut([shape[2], shape[3]], [kh, kw])?;
    // [I, O/groups, KH, KW] to [O, KH, KW, I/groups].
    let weight = n.regrouped(weight, [inputs, per_group, kh, kw], groups)?;
    let mut operands = vec![data, weight];
    operands.extend(bias);
    let op = ConvTranspose2d {
        strides,
        pads: before,
        size,
        dilations,
        groups,
        layout: Layout::Nchw,
        data_zero_point: 0,
        weight_zero_point: 0,
    };
    let v = n.node(if line { "conv" } else { "" }, op, &operands)?;
    as_data(n, v, line)
}
