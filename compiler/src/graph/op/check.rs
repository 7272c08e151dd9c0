//! Checks shared by several operators.

use crate::graph::tensor::with_element;
use crate::graph::{DType, Dim, Element, MAX_RANK, OpError, TensorType};

/// Fails if the number of operands is not in `from..=to`.
pub(super) fn arity(inputs: &[&TensorType], from: usize, to: usize) -> Result<(), OpError> {
    if (from..=to).contains(&inputs.len()) {
        return Ok(());
    }
    let expected = match to {
        _ if from == to => from.to_string(),
        usize::MAX => format!("{from} or more"),
        _ => format!("{from} to {to}"),
    };
    Err(OpError::Arity { expected, found: inputs.len() })
}

/// Fails if the element type is not one of `allowed`.
pub(super) fn dtype(operand: &str, ty: &TensorType, allowed: &[DType]) -> Result<(), OpError> {
    if allowed.contains(&ty.dtype) {
        return Ok(());
    }
    let names: Vec<_> = allowed.iter().map(|d| d.name()).collect();
    Err(OpError::operand(operand, format!("of type {}", names.join(" or ")), ty))
}

/// Fails if the number of dimensions differs.
pub(super) fn rank(operand: &str, ty: &TensorType, rank: usize) -> Result<(), OpError> {
    if ty.rank() == rank {
        return Ok(());
    }
    Err(OpError::operand(operand, format!("of {rank} dimensions"), ty))
}

/// The sizes; fails if one is symbolic.
pub(super) fn known(operand: &str, ty: &TensorType) -> Result<Vec<usize>, OpError> {
    ty.shape().ok_or_else(|| OpError::Symbolic { operand: operand.into(), found: ty.clone() })
}

/// One size; fails if it is symbolic.
pub(super) fn known_dim(operand: &str, ty: &TensorType, axis: usize) -> Result<usize, OpError> {
    let symbolic = || OpError::Symbolic { operand: operand.into(), found: ty.clone() };
    ty.dims.get(axis).and_then(Dim::known).ok_or_else(symbolic)
}

/// Fails if there are more dimensions than [`MAX_RANK`].
///
/// # Errors
/// [`OpError::Rank`].
pub fn rank_in_bounds(found: usize) -> Result<(), OpError> {
    if found > MAX_RANK { Err(OpError::Rank { found }) } else { Ok(()) }
}

/// Maximum number of elements of a result. No tensor of a network has as many; a damaged file must not ask for all
/// memory.
const MOST_ELEMENTS: usize = 1 << 31;

/// Fails if a result is too large to compute.
pub(super) fn size(ty: &TensorType) -> Result<(), OpError> {
    if ty.element_count().is_some_and(|n| n <= MOST_ELEMENTS) {
        return Ok(());
    }
    Err(OpError::operand("result", format!("of at most {MOST_ELEMENTS} elements"), ty))
}

/// Fails unless the operand is a vector with this type and length.
pub(super) fn vector(operand: &str, ty: &TensorType, d: DType, len: &Dim) -> Result<(), OpError> {
    dtype(operand, ty, &[d])?;
    if ty.dims.as_slice() == std::slice::from_ref(len) {
        return Ok(());
    }
    Err(OpError::operand(operand, format!("a vector of {len} elements"), ty))
}

/// Fails if the operand has no such axis.
pub(super) fn axis(axis: usize, ty: &TensorType) -> Result<(), OpError> {
    if axis < ty.rank() {
        return Ok(());
    }
    Err(OpError::attribute("axis", format!("must be below {}, the number of dimensions, found {axis}", ty.rank())))
}

/// Fails unless the axes ascend and exist in the operand.
pub(super) fn axes(axes: &[usize], ty: &TensorType) -> Result<(), OpError> {
    if axes.windows(2).all(|w| w[0] < w[1]) && axes.last().is_none_or(|&a| a < ty.rank()) {
        return Ok(());
    }
    Err(OpError::attribute("axes", format!("must ascend and be below {}, found {axes:?}", ty.rank())))
}

/// The sizes of two shapes broadcast against each other as in NumPy.
pub(super) fn broadcast(a: &TensorType, b: &TensorType) -> Result<Vec<Dim>, OpError> {
    let n = a.rank().max(b.rank());
    let one = Dim::Fixed(1);
    let dim = |t: &TensorType, i: usize| (i + t.rank()).checked_sub(n).map_or(one.clone(), |k| t.dims[k].clone());
    let join = |i| match (dim(a, i), dim(b, i)) {
        (x, y) if x == y || y == one => Ok(x),
        (x, y) if x == one => Ok(y),
        _ => Err(OpError::operand("b", format!("of a shape that broadcasts against {a}"), b)),
    };
    (0..n).map(join).collect()
}

/// Fails unless `lo` and `hi` are 8-bit values and `lo <= hi`.
pub(super) fn clamp_i8(lo: i32, hi: i32) -> Result<(), OpError> {
    if -128 <= lo && lo <= hi && hi <= 127 {
        return Ok(());
    }
    Err(OpError::attribute("lo", format!("and `hi` must be 8-bit values in order, found {lo} and {hi}")))
}

/// Fails if a constant of the element type `dtype` would not have the value of an attribute.
pub(super) fn constant(name: &'static str, value: f32, dtype: DType) -> Result<(), OpError> {
    let value = f64::from(value);
    let fits = dtype.is_float() || with_element!(dtype, T => T::of_double(value).double() == value);
    if fits {
        return Ok(());
    }
    Err(OpError::attribute(name, format!("must be a value of type {dtype}, like the data, found {value}")))
}

/// Fails if a zero point is not an 8-bit value.
pub(super) fn zero_point_i8(name: &'static str, zero_point: i32) -> Result<(), OpError> {
    if (-128..=127).contains(&zero_point) {
        return Ok(());
    }
    Err(OpError::attribute(name, format!("must be in -128..=127, found {zero_point}")))
}

/// Fails if the weights do not have the data's type. With i8 data they can also be i32, if their zero point is 0.
pub(super) fn weight(data: &TensorType, weight: &TensorType, zero_point: i32) -> Result<(), OpError> {
    let wide = data.dtype == DType::I8 && weight.dtype == DType::I32;
    if wide && zero_point != 0 {
        return Err(OpError::attribute("weight_zero_point", "must be 0 with i32 weights"));
    }
    if wide { Ok(()) } else { dtype("weight", weight, &[data.dtype]) }
}

/// Adds the product of a byte less its zero point and a weight to a sum; it wraps.
pub(super) fn mac(sum: i32, x: i8, zero_point: i32, w: i32) -> i32 {
    sum.wrapping_add((i32::from(x) - zero_point).wrapping_mul(w))
}

/// Fails if a product of floats has zero points.
pub(super) fn no_zero_points(data: i32, weight: i32) -> Result<(), OpError> {
    for (name, z) in [("data_zero_point", data), ("weight_zero_point", weight)] {
        if z != 0 {
            return Err(OpError::attribute(name, "must be 0 with floats"));
        }
    }
    Ok(())
}

/// Checks the parameters of a quantization: one, or one per index of the axis; scales positive and finite.
pub(super) fn quantization(
    scale: &[f32],
    zero_point: &[i32],
    at: usize,
    ty: &TensorType,
    values: std::ops::RangeInclusive<i32>,
) -> Result<(), OpError> {
    if scale.len() != zero_point.len() || scale.is_empty() {
        let (s, z) = (scale.len(), zero_point.len());
        return Err(OpError::attribute("scale", format!("must be as long as `zero_point`, found {s} and {z}")));
    }
    if scale.len() > 1 {
        axis(at, ty)?;
        if ty.dims[at] != Dim::Fixed(scale.len()) {
            let (n, d) = (scale.len(), &ty.dims[at]);
            return Err(OpError::attribute("scale", format!("has {n} values for an axis of {d}")));
        }
    }
    if let Some(s) = scale.iter().find(|s| !(s.is_finite() && **s > 0.0)) {
        return Err(OpError::attribute("scale", format!("must be positive and finite, found {s}")));
    }
    if let Some(z) = zero_point.iter().find(|z| !values.contains(z)) {
        let (lo, hi) = (values.start(), values.end());
        return Err(OpError::attribute("zero_point", format!("must be in {lo}..={hi}, found {z}")));
    }
    Ok(())
}

/// Checks and returns the sizes of a convolution's `weight [O, KH, KW, I/groups]`; `axis` is the data's channel axis.
pub(super) fn kernel(
    data: &TensorType,
    weight: &TensorType,
    axis: usize,
    groups: usize,
) -> Result<Vec<usize>, OpError> {
    rank("data", data, 4)?;
    rank("weight", weight, 4)?;
    let w = known("weight", weight)?;
    let c = known_dim("data", data, axis)?;
    if groups == 0 || w[0] % groups != 0 {
        let reason = format!("must divide the {} output channels, found {groups}", w[0]);
        return Err(OpError::attribute("groups", reason));
    }
    if w[3].checked_mul(groups) != Some(c) {
        let expected = format!("of {c} input channels over {groups} groups");
        return Err(OpError::operand("weight", expected, weight));
    }
    Ok(w)
}

/// The i8 type of a result of two i8 operands whose shapes broadcast.
pub(super) fn int8_pair(inputs: &[&TensorType]) -> Result<TensorType, OpError> {
    arity(inputs, 2, 2)?;
    dtype("a", inputs[0], &[DType::I8])?;
    dtype("b", inputs[1], &[DType::I8])?;
    Ok(TensorType { dtype: DType::I8, dims: broadcast(inputs[0], inputs[1])? })
}
