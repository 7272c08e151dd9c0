//! Conv and ConvTranspose.

use super::{NCHW, window, window_3d};
use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::sample::{self, Deformable};
use crate::frontend::semantic::volume;
use crate::frontend::semantic::window::{Padding, Window};
use crate::graph::ValueId;
use crate::graph::op::{Conv2d, ConvTranspose2d};

/// Adds a height of 1 to data that have only a width. The flag says whether it did.
pub(super) fn as_image(n: &mut NodeContext, suffix: &str, v: ValueId) -> Result<(ValueId, bool), Reason> {
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
pub(super) fn as_data(n: &mut NodeContext, v: ValueId, line: bool) -> Result<ValueId, Reason> {
    if !line {
        return Ok(v);
    }
    let mut shape = n.shape(v)?;
    shape.remove(2);
    n.reshape("line", v, &shape)
}

fn groups(n: &NodeContext) -> Result<usize, Reason> {
    usize::try_from(n.int("group").unwrap_or(1)).map_err(|_| "its group must not be negative".into())
}

/// Weights as images, and their shape.
fn weights(n: &mut NodeContext, weight: ValueId) -> Result<(ValueId, [usize; 4]), Reason> {
    if n.ty(weight).rank() > 4 || n.ty(weight).rank() < 3 {
        return Err(format!(
            "only convolutions over one or two dimensions are supported, found weights {}",
            n.ty(weight)
        )
        .into());
    }
    let weight = n.weight_image(weight)?;
    let shape: [usize; 4] = n.shape(weight)?.try_into().map_err(|_| "its weights must have 3 or 4 dimensions")?;
    check_kernel(n, weight, &shape)?;
    Ok((weight, shape))
}

/// Fails if `kernel_shape` is not the shape of the weights.
pub(super) fn check_kernel(n: &NodeContext, weight: ValueId, shape: &[usize]) -> Result<(), Reason> {
    match n.ints("kernel_shape") {
        Some(k) if k.iter().rev().zip(shape.iter().rev()).any(|(&k, &s)| k != s as i64) => {
            Err(format!("its kernel_shape {k:?} does not match its weights {}", n.ty(weight)).into())
        }
        _ => Ok(()),
    }
}

pub(super) fn conv(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, weight) = (n.plain(0)?, n.input(1)?);
    let bias = n.optional(2)?;
    let v = convolution(n, data, weight, bias)?;
    n.output(v)
}

/// The convolution of these operands with the node's attributes.
pub(super) fn convolution(
    n: &mut NodeContext,
    data: ValueId,
    weight: ValueId,
    bias: Option<ValueId>,
) -> Result<ValueId, Reason> {
    if n.ty(data).rank() == 5 {
        let shape = n.shape(weight)?;
        let &[_, _, depth, height, width] = shape.as_slice() else {
            return Err(format!("its weights must have 5 dimensions, found {}", n.ty(weight)).into());
        };
        check_kernel(n, weight, &shape)?;
        let (by, groups) = (window_3d(n, Some([depth, height, width]))?, groups(n)?);
        return volume::convolution(n, data, weight, bias, by, groups);
    }
    let (data, line) = as_image(n, "data", data)?;
    let (weight, [_, _, kh, kw]) = weights(n, weight)?;
    let Window { strides, pads, dilations, .. } = window(n, &n.ty(data).clone(), [kh, kw], line)?;
    let groups = groups(n)?;
    let weight = n.transposed("weight", weight, &[0, 2, 3, 1])?;
    let mut operands = vec![data, weight];
    operands.extend(bias);
    let op = Conv2d { strides, pads, dilations, groups, layout: NCHW, data_zero_point: 0, weight_zero_point: 0 };
    let v = n.node(if line { "conv" } else { "" }, op, &operands)?;
    as_data(n, v, line)
}

pub(super) fn conv_transpose(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let (data, line) = as_image(n, "data", data)?;
    let weight = n.input(1)?;
    let (weight, [inputs, per_group, kh, kw]) = weights(n, weight)?;
    let groups = groups(n)?;
    if groups == 0 || inputs % groups != 0 {
        return Err(format!("its group {groups} must divide the {inputs} input channels").into());
    }
    let super::Steps { strides, dilations, pads } = super::steps(n, line)?;
    let shape = n.shape(data)?;
    let extra = super::spatial(n, "output_padding", 0, line)?;
    let given = n.ints("output_shape").map(<[i64]>::to_vec);
    let padding = super::padding(n, pads)?;
    let (mut before, mut size) = ([0; 2], [0; 2]);
    for i in 0..2 {
        let (d, k) = (shape[2 + i], [kh, kw][i]);
        let reach = (k.max(1) - 1).checked_mul(dilations[i]).and_then(|r| r.checked_add(1));
        let full = (d.max(1) - 1).checked_mul(strides[i]).and_then(|f| f.checked_add(reach?)?.checked_add(extra[i]));
        let full = full.ok_or("its result is too large")?;
        let want = match &given {
            _ if line && i == 0 => None,
            // Some files include the batch and the channels.
            Some(list) => {
                let at = list.len().checked_sub(2 - i).and_then(|p| list.get(p));
                Some(at.and_then(|&s| usize::try_from(s).ok()).ok_or("its output_shape does not match its data")?)
            }
            // If strides leave gaps between kernels, nothing is cut off and nothing is added.
            None if matches!(padding, Padding::SameUpper | Padding::SameLower) => {
                Some(d.saturating_mul(strides[i]).min(full))
            }
            None => None,
        };
        (before[i], size[i]) = match want {
            Some(s) => {
                let total = full.saturating_sub(s);
                (if padding == Padding::SameUpper { total / 2 } else { total - total / 2 }, s)
            }
            None if padding == Padding::Valid => (0, full),
            None => (pads[i], full.checked_sub(pads[i] + pads[i + 2]).ok_or("its pads are larger than its result")?),
        };
    }
    // [I, O/groups, KH, KW] to [O, KH, KW, I/groups].
    let weight = n.regrouped(weight, [inputs, per_group, kh, kw], groups)?;
    let mut operands = vec![data, weight];
    if n.has_input(2) {
        operands.push(n.plain(2)?);
    }
    let op = ConvTranspose2d {
        strides,
        pads: before,
        size,
        dilations,
        groups,
        layout: NCHW,
        data_zero_point: 0,
        weight_zero_point: 0,
    };
    let v = n.node(if line { "conv" } else { "" }, op, &operands)?;
    let v = as_data(n, v, line)?;
    n.output(v)
}

pub(super) fn deformable(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, weight, offset) = (n.plain(0)?, n.plain(1)?, n.plain(2)?);
    let (bias, mask) = (n.optional(3)?, n.optional(4)?);
    let shape = n.shape(weight)?;
    check_kernel(n, weight, &shape)?;
    let super::Steps { strides, dilations, pads } = super::steps(n, false)?;
    let groups = groups(n)?;
    let offset_groups = usize::try_from(n.int("offset_group").unwrap_or(1)).unwrap_or(0);
    let pads = [pads[0], pads[1]];
    let of = Deformable { weight, offset, mask, bias, strides, dilations, pads, groups, offset_groups };
    let v = sample::deformable(n, data, of)?;
    n.output(v)
}
