//! Pad, in all modes.

use crate::frontend::onnx::node::{NodeContext, Reason};
use crate::graph::op::{Gather, Pad, Slice};
use crate::graph::{DType, Tensor, TensorType, ValueId};

pub(super) fn pad(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let rank = n.ty(data).rank();
    let (mode, late) = (n.word("mode").unwrap_or_else(|| "constant".into()), n.opset() >= 11);
    let pads = if late { n.integers(1)? } else { n.ints("pads").ok_or("it has no pads")?.to_vec() };
    let axes: Vec<usize> = if late && n.has_input(3) {
        n.integers(3)?.iter().map(|&a| n.axis(a, rank)).collect::<Result<_, _>>()?
    } else {
        (0..rank).collect()
    };
    if pads.len() != 2 * axes.len() {
        return Err(format!("its pads must have {} values, found {}", 2 * axes.len(), pads.len()).into());
    }
    let mut ends = vec![(0i64, 0i64); rank];
    for (i, &a) in axes.iter().enumerate() {
        ends[a] = (pads[i], pads[i + axes.len()]);
    }
    if ends.iter().any(|&(b, a)| b.unsigned_abs().max(a.unsigned_abs()) > 1 << 31) {
        return Err(format!("its pads {pads:?} are too large").into());
    }
    if mode != "constant" {
        // Only constant mode uses the value.
        if late {
            n.has_input(2);
        } else {
            n.without_effect("value");
        }
    }
    let v = match mode.as_str() {
        "constant" => {
            let value = match late {
                false => n.float("value").unwrap_or(0.0),
                true if n.has_input(2) && matches!(n.ty(data).dtype, DType::I32 | DType::I64) => {
                    let value = n.whole(2)?;
                    // The graph's operator holds a float.
                    if value as f32 as i64 != value {
                        return Err(
                            format!("a padding value of {value} is not supported; use one of up to 24 bits").into()
                        );
                    }
                    value as f32
                }
                true if n.has_input(2) => n.number(2)? as f32,
                true => 0.0,
            };
            constant(n, data, &ends, value)?
        }
        "edge" => chosen(n, data, &ends, |p, size| Some(p.clamp(0, size - 1)))?,
        "wrap" => chosen(n, data, &ends, |p, size| Some(p.rem_euclid(size)))?,
        "reflect" => chosen(n, data, &ends, |p, size| {
            let period = (2 * (size - 1)).max(1);
            let at = p.rem_euclid(period);
            Some(if at < size { at } else { period - at }).filter(|&at| at < size)
        })?,
        other => return Err(format!("unknown mode `{other}`; use constant, edge, reflect or wrap").into()),
    };
    n.output_like(v, data)
}

/// Constant mode; negative pads cut elements off.
fn constant(n: &mut NodeContext, data: ValueId, ends: &[(i64, i64)], value: f32) -> Result<ValueId, Reason> {
    let mut v = data;
    if ends.iter().any(|&(b, a)| b < 0 || a < 0) {
        let shape = n.shape(data)?;
        let (mut starts, mut sizes) = (Vec::new(), Vec::new());
        for (&size, &(b, a)) in shape.iter().zip(ends) {
            let (front, back) = ((-b).max(0) as usize, (-a).max(0) as usize);
            let left = size.checked_sub(front).and_then(|s| s.checked_sub(back));
            starts.push(front);
            sizes.push(left.filter(|&s| s > 0).ok_or("its pads cut off all elements")?);
        }
        let steps = vec![1; sizes.len()];
        v = n.node("cut", Slice { starts, sizes, steps }, &[v])?;
    }
    let before: Vec<usize> = ends.iter().map(|e| e.0.max(0) as usize).collect();
    let after: Vec<usize> = ends.iter().map(|e| e.1.max(0) as usize).collect();
    if before.iter().chain(&after).all(|&p| p == 0) {
        return Ok(v);
    }
    let dtype = n.ty(v).dtype;
    let value = if n.unsigned(data) { value - 128.0 } else { value };
    if matches!(dtype, DType::F32 | DType::I8) {
        return n.node("", Pad { before, after, value }, &[v]);
    }
    if value.abs() > 16_777_216.0 || value.fract() != 0.0 {
        return Err(format!("its value {value} is not supported with {dtype}").into());
    }
    // Tensors of other integer types are small: sizes and masks.
    (0..before.len()).try_fold(v, |v, a| {
        let part = |n: &mut NodeContext, size: usize| -> Result<Option<ValueId>, Reason> {
            if size == 0 {
                return Ok(None);
            }
            let mut shape = n.shape(v)?;
            shape[a] = size;
            let one = n.scalar("value", value);
            let one = n.cast("value", one, dtype)?;
            Ok(Some(n.node("border", crate::graph::op::Expand { shape }, &[one])?))
        };
        let (front, back) = (part(n, before[a])?, part(n, after[a])?);
        let list: Vec<ValueId> = front.into_iter().chain([v]).chain(back).collect();
        if list.len() == 1 { Ok(v) } else { n.node("part", crate::graph::op::Concat { axis: a }, &list) }
    })
}

/// Builds each padded dimension from the elements that `place` selects, by coordinates relative to what negative pads
/// leave.
fn chosen(
    n: &mut NodeContext,
    data: ValueId,
    ends: &[(i64, i64)],
    place: impl Fn(i64, i64) -> Option<i64>,
) -> Result<ValueId, Reason> {
    let mut v = data;
    for (axis, &(before, after)) in ends.iter().enumerate() {
        if (before, after) == (0, 0) {
            continue;
        }
        let size = n.shape(v)?[axis] as i64;
        let (first, left) = ((-before).max(0), size + before.min(0) + after.min(0));
        if left <= 0 {
            return Err("its pads cut off all elements".into());
        }
        let to = size + before + after;
        if to > 1 << 24 {
            return Err(format!("{to} elements along dimension {axis} are not supported; the maximum is 2^24").into());
        }
        n.room(&TensorType::new(DType::I64, &[usize::try_from(to).unwrap_or(usize::MAX)]))?;
        let places = -before.max(0)..left + after.max(0);
        let index: Option<Vec<i64>> = places.map(|p| place(p, left).map(|p| first + p)).collect();
        let index = n.made("index", Tensor::vector(index.ok_or("its pads are larger than its data")?));
        v = n.node(&format!("axis{axis}"), Gather { axis }, &[v, index])?;
    }
    Ok(v)
}
