//! Conv and ConvTranspose.

use super::window_3d;
use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::conv;
use crate::frontend::semantic::sample::{self, Deformable};
use crate::frontend::semantic::volume;
use crate::frontend::semantic::window::Padding;
use crate::graph::ValueId;

fn groups(n: &NodeContext) -> Result<usize, Reason> {
    usize::try_from(n.int("group").unwrap_or(1)).map_err(|_| "its group must not be negative".into())
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
    let line = n.ty(data).rank() == 3;
    let shape = n.shape(weight)?;
    check_kernel(n, weight, &shape)?;
    let super::Steps { strides, dilations, pads } = super::steps(n, line)?;
    let by = conv::Steps { strides, dilations, padding: super::padding(n, pads)? };
    let groups = groups(n)?;
    conv::convolution(n, data, weight, bias, by, groups)
}

pub(super) fn conv_transpose(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, weight) = (n.plain(0)?, n.input(1)?);
    let bias = n.optional(2)?;
    let line = n.ty(data).rank() == 3;
    let shape = n.shape(weight)?;
    check_kernel(n, weight, &shape)?;
    let groups = groups(n)?;
    let super::Steps { strides, dilations, pads } = super::steps(n, line)?;
    let extra = super::spatial(n, "output_padding", 0, line)?;
    let given = n.ints("output_shape").map(<[i64]>::to_vec);
    let padding = super::padding(n, pads)?;
    let cut = |sizes: [usize; 2], kernel: [usize; 2]| {
        let (mut before, mut size) = ([0; 2], [0; 2]);
        for i in 0..2 {
            let full = conv::full_size(sizes[i], kernel[i], strides[i], dilations[i], extra[i])?;
            let want = match &given {
                _ if line && i == 0 => None,
                // Some files include the batch and the channels.
                Some(list) => {
                    let at = list.len().checked_sub(2 - i).and_then(|p| list.get(p));
                    Some(at.and_then(|&s| usize::try_from(s).ok()).ok_or("its output_shape does not match its data")?)
                }
                // If strides leave gaps between kernels, nothing is cut off and nothing is added.
                None if matches!(padding, Padding::SameUpper | Padding::SameLower) => {
                    Some(sizes[i].saturating_mul(strides[i]).min(full))
                }
                None => None,
            };
            (before[i], size[i]) = match want {
                Some(s) => {
                    let total = full.saturating_sub(s);
                    (if padding == Padding::SameUpper { total / 2 } else { total - total / 2 }, s)
                }
                None if padding == Padding::Valid => (0, full),
                None => {
                    (pads[i], full.checked_sub(pads[i] + pads[i + 2]).ok_or("its pads are larger than its result")?)
                }
            };
        }
        Ok(conv::Cut { before, size })
    };
    let v = conv::transposed(n, data, weight, bias, conv::Transposed { strides, dilations, groups }, cut)?;
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
