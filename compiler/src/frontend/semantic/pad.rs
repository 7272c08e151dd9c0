//! Padding, in all modes. Numbers below 0 cut elements off.

use super::SemanticBuilder;
use crate::frontend::reason::Reason;
use crate::graph::op::{Gather, Pad, Slice};
use crate::graph::{DType, Tensor, TensorType, ValueId};

/// Elements to add before and after each dimension; below 0, to cut off.
pub type Ends = Vec<(i64, i64)>;

/// What is read at a place that the data do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Border {
    /// The element at the edge.
    Edge,
    /// The element as far inside the edge, which itself is not repeated.
    Reflect,
    /// The element as far inside the edge, which itself is repeated.
    Symmetric,
    /// The element that follows if the data are repeated.
    Wrap,
}

impl Border {
    /// The place that is read at `p`, if there is one.
    fn place(self, p: i64, size: i64) -> Option<i64> {
        let folded = |period: i64, turn: i64| {
            let at = p.rem_euclid(period);
            Some(if at < size { at } else { turn - at }).filter(|at| (0..size).contains(at))
        };
        match self {
            Border::Edge => Some(p.clamp(0, size - 1)),
            Border::Wrap => Some(p.rem_euclid(size)),
            Border::Reflect => folded((2 * (size - 1)).max(1), (2 * (size - 1)).max(1)),
            Border::Symmetric => folded(2 * size, 2 * size - 1),
        }
    }
}

/// Fails if elements to add or to cut off, before and after each dimension, are too many to count with.
pub fn check(ends: &[(i64, i64)]) -> Result<(), Reason> {
    match ends.iter().flat_map(|&(before, after)| [before, after]).find(|pad| pad.unsigned_abs() > 1 << 31) {
        Some(pad) => Err(format!("its pad of {pad} is too large").into()),
        None => Ok(()),
    }
}

/// The data with a border of one value, which is a value of the data as they are stored.
pub fn constant(
    n: &mut SemanticBuilder,
    suffix: &str,
    data: ValueId,
    ends: &[(i64, i64)],
    value: f32,
) -> Result<ValueId, Reason> {
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
    if !dtype.is_float() && (value.abs() > 16_777_216.0 || value.fract() != 0.0) {
        return Err(format!("its value {value} is not supported with {dtype}").into());
    }
    n.node(suffix, Pad { before, after, value }, &[v])
}

/// The data with a border that is read from them.
pub fn bordered(
    n: &mut SemanticBuilder,
    data: ValueId,
    ends: &[(i64, i64)],
    border: Border,
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
        n.reserve(&TensorType::new(DType::I64, &[usize::try_from(to).unwrap_or(usize::MAX)]))?;
        let places = -before.max(0)..left + after.max(0);
        let index: Option<Vec<i64>> = places.map(|p| border.place(p, left).map(|p| first + p)).collect();
        let index = n.made("index", Tensor::vector(index.ok_or("its pads are larger than its data")?));
        v = n.node(&format!("axis{axis}"), Gather { axis }, &[v, index])?;
    }
    Ok(v)
}
