//! Convolutions, also transposed ones.

use super::{with_batch, without_batch};
use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::conv::{self, Cut, Steps, Transposed};
use crate::frontend::semantic::volume::{self, Sliding3, Transposed3};
use crate::frontend::semantic::window::Padding;
use crate::graph::ValueId;

/// The operands, with a batch, and whether it was added.
struct Operands {
    data: ValueId,
    weight: ValueId,
    bias: Option<ValueId>,
    /// Dimensions over which the kernel moves.
    dims: usize,
    is_single: bool,
}

fn operands(n: &mut NodeContext) -> Result<Operands, Reason> {
    let (data, weight, bias) = (n.tensor("input")?, n.tensor("weight")?, n.optional("bias")?);
    let dims = n.ty(weight).rank().checked_sub(2).filter(|dims| (1..=3).contains(dims));
    let dims = dims.ok_or_else(|| format!("its weights must have 3 to 5 dimensions, found {}", n.ty(weight)))?;
    let (data, is_single) = with_batch(n, data, dims + 2)?;
    if n.ty(data).rank() != dims + 2 {
        return Err(format!("its data must have {} or {} dimensions, found {}", dims + 1, dims + 2, n.ty(data)).into());
    }
    Ok(Operands { data, weight, bias, dims, is_single })
}

/// A number for each of `dims` dimensions: one for all, or one for each.
pub(super) fn each(n: &mut NodeContext, name: &str, default: usize, dims: usize) -> Result<Vec<usize>, Reason> {
    Ok(match dims {
        1 => n.sizes::<1>(name, default)?.to_vec(),
        2 => n.sizes::<2>(name, default)?.to_vec(),
        _ => n.sizes::<3>(name, default)?.to_vec(),
    })
}

fn groups(n: &mut NodeContext) -> Result<usize, Reason> {
    let groups = n.int("groups", 1)?;
    usize::try_from(groups)
        .ok()
        .filter(|g| *g > 0)
        .ok_or_else(|| format!("its groups, {groups}, must be above 0").into())
}

/// Strides and dilations must be above 0.
pub(super) fn check_steps(steps: &[usize]) -> Result<(), Reason> {
    if steps.iter().any(|s| *s == 0 || *s > 1 << 31) {
        return Err("its strides and dilations must be from 1 to 2^31".into());
    }
    Ok(())
}

pub(super) fn convolution(n: &mut NodeContext) -> Result<Value, Reason> {
    let of = operands(n)?;
    let strides = each(n, "stride", 1, of.dims)?;
    let dilations = each(n, "dilation", 1, of.dims)?;
    check_steps(&strides)?;
    check_steps(&dilations)?;
    let groups = groups(n)?;
    let kernel = n.shape(of.weight)?[2..].to_vec();
    let pads: Vec<(usize, usize)> = match n.value("padding")? {
        Value::Text(rule) if rule == "valid" => vec![(0, 0); of.dims],
        Value::Text(rule) if rule == "same" => {
            // An odd element of padding goes to the end.
            let total = kernel.iter().zip(&dilations).map(|(k, d)| k.saturating_sub(1).saturating_mul(*d));
            total.map(|total| (total / 2, total - total / 2)).collect()
        }
        Value::Text(other) => return Err(format!("unknown padding `{other}`; use valid or same").into()),
        _ => each(n, "padding", 0, of.dims)?.into_iter().map(|p| (p, p)).collect(),
    };
    let v = if let (&[d, h, w], [s, t]) = (kernel.as_slice(), [&strides, &dilations]) {
        let by = Sliding3 {
            kernel: [d, h, w],
            strides: [s[0], s[1], s[2]],
            dilations: [t[0], t[1], t[2]],
            pads: Some([pads[0].0, pads[1].0, pads[2].0, pads[0].1, pads[1].1, pads[2].1]),
            padding: Padding::Valid,
            round_up: false,
        };
        volume::convolution(n, of.data, of.weight, of.bias, by, groups)?
    } else {
        let image = |list: &[usize]| if let &[w] = list { [1, w] } else { [list[0], list[1]] };
        let pads = if let &[w] = pads.as_slice() { [(0, 0), w] } else { [pads[0], pads[1]] };
        let padding = Padding::Given([pads[0].0, pads[1].0, pads[0].1, pads[1].1]);
        let by = Steps { strides: image(&strides), dilations: image(&dilations), padding };
        conv::convolution(n, of.data, of.weight, of.bias, by, groups)?
    };
    Ok(without_batch(n, v, of.is_single)?.into())
}

pub(super) fn transposed(n: &mut NodeContext) -> Result<Value, Reason> {
    let of = operands(n)?;
    let mut all = Vec::new();
    for (name, default) in [("stride", 1), ("dilation", 1), ("padding", 0), ("output_padding", 0)] {
        all.push(each(n, name, default, of.dims)?);
    }
    check_steps(&all[0])?;
    check_steps(&all[1])?;
    let groups = groups(n)?;
    let (data, kernel) = (n.shape(of.data)?[2..].to_vec(), n.shape(of.weight)?[2..].to_vec());
    if data.len() != of.dims {
        return Err(format!("its data must have {} dimensions, found {}", of.dims + 2, n.ty(of.data)).into());
    }
    let mut size = Vec::new();
    for i in 0..of.dims {
        let full = conv::full_size(data[i], kernel[i], all[0][i], all[1][i], all[3][i])?;
        let less = all[2][i].checked_mul(2).and_then(|p| full.checked_sub(p));
        size.push(less.ok_or("its padding is larger than its result")?);
    }
    let v = if of.dims == 3 {
        let three = |list: &[usize]| [list[0], list[1], list[2]];
        let by = Transposed3 {
            strides: three(&all[0]),
            dilations: three(&all[1]),
            before: three(&all[2]),
            size: three(&size),
            groups,
        };
        volume::transposed(n, of.data, of.weight, of.bias, by)?
    } else {
        let two = |list: &[usize], default| if let &[w] = list { [default, w] } else { [list[0], list[1]] };
        let by = Transposed { strides: two(&all[0], 1), dilations: two(&all[1], 1), groups };
        let cut = Cut { before: two(&all[2], 0), size: two(&size, 1) };
        conv::transposed(n, of.data, of.weight, of.bias, by, |_, _| Ok(cut))?
    };
    Ok(without_batch(n, v, of.is_single)?.into())
}

/// The form of programs after `run_decompositions()`.
pub(super) fn any(n: &mut NodeContext) -> Result<Value, Reason> {
    if n.flag("transposed", false)? {
        return transposed(n);
    }
    n.ignore(&["output_padding"]);
    convolution(n)
}
