//! Integer products whose zero points can be computed at run time, and the quantization that computes them.
//!
//! With a `zx` that is computed at run time, `sum (x - zx) (w - zw)` is `sum x (w - zw)` minus `zx` times
//! `sum (w - zw)`, all in wrapping 32-bit arithmetic, so the products are still products of bytes. A convolution is
//! padded with `zx` itself.

use super::conv::check_kernel;
use super::{NCHW, window};
use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::conv::{as_data, as_image};
use crate::frontend::semantic::product::{as_matrices, multiplied, without};
use crate::frontend::semantic::window::Window;
use crate::graph::op::{BinaryKind, Cast, Clip, Conv2d, Dense, Pad, QMatMul, ReduceKind, Select, UnaryKind};
use crate::graph::{DType, TensorData, ValueId};

/// A zero point of bytes as they are stored: int8 if the file has uint8.
#[derive(Clone, Copy)]
enum ZeroPoint {
    /// One number.
    Known(i32),
    /// Computed at run time, or several values.
    Value(ValueId),
}

impl ZeroPoint {
    /// The value that the operator subtracts itself.
    fn known(self) -> i32 {
        match self {
            ZeroPoint::Known(z) => z,
            ZeroPoint::Value(_) => 0,
        }
    }

    fn value(self) -> Option<ValueId> {
        match self {
            ZeroPoint::Known(_) => None,
            ZeroPoint::Value(v) => Some(v),
        }
    }
}

/// The zero point of `data`, which is operand `i`.
fn zero_point(n: &mut NodeContext, i: usize, data: ValueId) -> Result<ZeroPoint, Reason> {
    if !n.has_input(i) {
        return Ok(ZeroPoint::Known(if n.unsigned(data) { -128 } else { 0 }));
    }
    let v = n.input(i)?;
    if n.ty(v).dtype != DType::I8 || n.unsigned(v) != n.unsigned(data) {
        return Err(format!("its zero point, operand {i}, must have the type of its data, i8 or u8").into());
    }
    let stored = |t: &crate::graph::Tensor| match t.data() {
        TensorData::I8(z) if !z.is_empty() && z.iter().all(|x| x == &z[0]) => Some(i32::from(z[0])),
        _ => None,
    };
    Ok(n.constant_of(v).and_then(|t| stored(t)).map_or(ZeroPoint::Value(v), ZeroPoint::Known))
}

/// A 32-bit integer as a tensor without dimensions.
fn integer(n: &mut NodeContext, suffix: &str, x: usize) -> Result<ValueId, Reason> {
    n.table(suffix, &[], |_| x as i32)
}

/// Sums of bytes along dimensions, which keep size 1.
fn sums(n: &mut NodeContext, suffix: &str, v: ValueId, axes: &[usize]) -> Result<ValueId, Reason> {
    let wide = n.cast(suffix, v, DType::I32)?;
    n.reduce(suffix, ReduceKind::Sum, axes, true, wide)
}

/// The sums of `v - zero` along dimensions that hold `count` elements.
fn sums_less(
    n: &mut NodeContext,
    suffix: &str,
    v: ValueId,
    axes: &[usize],
    zero: ValueId,
    count: usize,
) -> Result<ValueId, Reason> {
    let sum = sums(n, suffix, v, axes)?;
    let count = integer(n, suffix, count)?;
    let less = n.binary(suffix, BinaryKind::Mul, zero, count)?;
    n.binary(suffix, BinaryKind::Sub, sum, less)
}

/// A zero point as i32 with another shape, if it has one value or as many as `shape`.
fn zeros(n: &mut NodeContext, suffix: &str, z: ValueId, shape: &[usize]) -> Result<ValueId, Reason> {
    let have: usize = n.shape(z)?.iter().product();
    let wide = n.cast(suffix, z, DType::I32)?;
    if have == 1 {
        return n.reshape(suffix, wide, &[]);
    }
    if have != shape.iter().product::<usize>() {
        let found = n.ty(z).clone();
        return Err(format!(
            "its zero point must have one value or {}, found {found}",
            shape.iter().max().unwrap_or(&1)
        )
        .into());
    }
    n.reshape(suffix, wide, shape)
}

/// `v - zero * factor`.
fn less(n: &mut NodeContext, suffix: &str, v: ValueId, zero: ValueId, factor: ValueId) -> Result<ValueId, Reason> {
    let product = n.binary("product", BinaryKind::Mul, zero, factor)?;
    n.binary(suffix, BinaryKind::Sub, v, product)
}

pub(super) fn conv_integer(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, weight) = (n.input(0)?, n.input(1)?);
    let (zx, zw) = (zero_point(n, 2, data)?, zero_point(n, 3, weight)?);
    let (data, line) = as_image(n, "data", data)?;
    let (weight, _) = as_image(n, "weights", weight)?;
    let shape = n.shape(weight)?;
    check_kernel(n, weight, &shape)?;
    let w = window(n, &n.ty(data).clone(), [shape[2], shape[3]], line)?;
    let groups = usize::try_from(n.int("group").unwrap_or(1)).map_err(|_| "its group must not be negative")?;
    let weight = n.transposed("weight", weight, &[0, 2, 3, 1])?;
    let (data, pads) = match zx {
        ZeroPoint::Known(_) => (data, w.pads),
        ZeroPoint::Value(z) => (padded(n, data, w.pads, z)?, [0; 4]),
    };
    let Window { strides, dilations, .. } = w;
    let (data_zero_point, weight_zero_point) = (zx.known(), zw.known());
    let op = Conv2d { strides, pads, dilations, groups, layout: NCHW, data_zero_point, weight_zero_point };
    let shape = n.shape(weight)?;
    let (channels, taps) = (shape[0], shape[1..].iter().product());
    let plain = zx.value().is_none() && zw.value().is_none();
    let mut v = n.node(if plain { "" } else { "products" }, op.clone(), &[data, weight])?;
    let zw = match zw {
        ZeroPoint::Known(z) => n.table("weight_zero_point", &[], |_| z)?,
        ZeroPoint::Value(z) => {
            let z = zeros(n, "weight_zero_point", z, &[channels, 1, 1])?;
            let ones = n.table("ones", &shape, |_| 1i8)?;
            let windows = n.node("windows", op, &[data, ones])?;
            v = less(n, "less", v, z, windows)?;
            let shape = if n.ty(z).rank() == 0 { vec![] } else { vec![channels, 1, 1, 1] };
            n.reshape("weight_zero_point", z, &shape)?
        }
    };
    if let ZeroPoint::Value(z) = zx {
        let of_channels = sums_less(n, "weight_sums", weight, &[1, 2, 3], zw, taps)?;
        let of_channels = n.reshape("weight_sums", of_channels, &[channels, 1, 1])?;
        let z = zeros(n, "data_zero_point", z, &[])?;
        v = less(n, "", v, z, of_channels)?;
    }
    let v = as_data(n, v, line)?;
    n.output(v)
}

/// An image of bytes with a border whose value is computed at run time.
fn padded(n: &mut NodeContext, v: ValueId, pads: [usize; 4], value: ValueId) -> Result<ValueId, Reason> {
    if pads == [0; 4] {
        return Ok(v);
    }
    let [top, left, bottom, right] = pads;
    let shape = n.shape(v)?;
    let (h, w) = (shape[2], shape[3]);
    let width = w.checked_add(left).and_then(|w| w.checked_add(right)).ok_or("its pads are too large")?;
    let height = h.checked_add(top).and_then(|h| h.checked_add(bottom)).ok_or("its pads are too large")?;
    let border = Pad { before: vec![0, 0, top, left], after: vec![0, 0, bottom, right], value: 0.0 };
    let wide = n.node("padded", border, &[v])?;
    let inside = |i: usize| (top..top + h).contains(&(i / width)) && (left..left + w).contains(&(i % width));
    let image = n.table("image", &[height, width], inside)?;
    let value = n.reshape("border", value, &[])?;
    n.node("bordered", Select {}, &[image, wide, value])
}

/// The product of two matrices, or of stacks of them, each less its zero point; i32.
fn product(n: &mut NodeContext, a: ValueId, b: ValueId, za: ZeroPoint, zb: ZeroPoint) -> Result<ValueId, Reason> {
    let ([a, b], lines) = as_matrices(n, a, b)?;
    let (a_zero_point, b_zero_point) = (za.known(), zb.known());
    let dense = Dense { data_zero_point: a_zero_point, weight_zero_point: b_zero_point };
    let mut v = multiplied(n, a, b, dense, QMatMul { a_zero_point, b_zero_point })?;
    let (sa, sb) = (n.shape(a)?, n.shape(b)?);
    let (ra, rb) = (sa.len(), sb.len());
    let depth = sa[ra - 1];
    // Several zero points belong to the rows of the first operand, or to the columns of the second.
    let shaped = |n: &mut NodeContext, what: &str, z: ValueId, line: &[usize], whole: Vec<usize>| {
        let own = n.shape(z)?;
        zeros(n, what, z, if own.len() > 1 && own.len() == whole.len() { &whole } else { line })
    };
    let za = match za {
        ZeroPoint::Known(z) => Err(z),
        ZeroPoint::Value(z) => {
            let whole = [&sa[..ra - 1], &[1]].concat();
            Ok(shaped(n, "a_zero_point", z, &[sa[ra - 2], 1], whole)?)
        }
    };
    let zb = match zb {
        ZeroPoint::Known(z) => n.table("b_zero_point", &[], |_| z)?,
        ZeroPoint::Value(z) => {
            let whole = [&sb[..rb - 2], &[1, sb[rb - 1]]].concat();
            let z = shaped(n, "b_zero_point", z, &[sb[rb - 1]], whole)?;
            // The first operand less its own zero point, if that is known.
            let known = n.table("a_known", &[], |_| a_zero_point)?;
            let rows = sums_less(n, "rows", a, &[ra - 1], known, depth)?;
            v = less(n, "less_rows", v, z, rows)?;
            z
        }
    };
    if let Ok(za) = za {
        let columns = sums_less(n, "columns", b, &[rb - 2], zb, depth)?;
        v = less(n, "less_columns", v, za, columns)?;
    }
    without(n, v, lines)
}

pub(super) fn matmul_integer(n: &mut NodeContext) -> Result<(), Reason> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    let (za, zb) = (zero_point(n, 2, a)?, zero_point(n, 3, b)?);
    let v = product(n, a, b, za, zb)?;
    n.output(v)
}

/// Integers times both scales, plus a bias if there is one.
fn to_floats(n: &mut NodeContext, v: ValueId, scales: [ValueId; 2], bias: usize) -> Result<ValueId, Reason> {
    let v = n.cast("float", v, DType::F32)?;
    let scale = n.binary("scale", BinaryKind::Mul, scales[0], scales[1])?;
    let last = n.has_input(bias);
    let v = n.binary(if last { "scaled" } else { "" }, BinaryKind::Mul, v, scale)?;
    match n.optional(bias)? {
        Some(bias) => n.add("", v, bias),
        None => Ok(v),
    }
}

/// The product of operands of bytes as floats, with the operands that are their scales and zero points, and a bias.
pub(super) fn floats(
    n: &mut NodeContext,
    data: [usize; 2],
    scales: [usize; 2],
    zeros: [usize; 2],
    bias: usize,
) -> Result<ValueId, Reason> {
    let (a, b) = (n.input(data[0])?, n.input(data[1])?);
    let (za, zb) = (zero_point(n, zeros[0], a)?, zero_point(n, zeros[1], b)?);
    let v = product(n, a, b, za, zb)?;
    let scales = [n.plain(scales[0])?, n.plain(scales[1])?];
    to_floats(n, v, scales, bias)
}

/// `MatMulIntegerToFloat`: a, b, their scales, their zero points, bias.
pub(super) fn matmul_integer_to_float(n: &mut NodeContext) -> Result<(), Reason> {
    let v = floats(n, [0, 1], [2, 3], [4, 5], 6)?;
    n.output(v)
}

/// `DynamicQuantizeMatMul`: floats, then b with scale and zero point, bias.
pub(super) fn dynamic_quantize_matmul(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, b) = (n.plain(0)?, n.input(1)?);
    let zb = zero_point(n, 3, b)?;
    let [a, scale, za] = dynamically_quantized(n, data)?;
    let v = product(n, a, b, ZeroPoint::Value(za), zb)?;
    let scales = [scale, n.plain(2)?];
    let v = to_floats(n, v, scales, 4)?;
    n.output(v)
}

/// Quantizes to uint8 with scale and zero point from the range of the data, extended to 0.
pub(super) fn dynamic_quantize(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let values = dynamically_quantized(n, data)?;
    n.outputs(&values)
}

/// Bytes, scale and zero point of floats; a range of size 0 gets the scale 1.
fn dynamically_quantized(n: &mut NodeContext, data: ValueId) -> Result<[ValueId; 3], Reason> {
    let axes: Vec<usize> = (0..n.ty(data).rank()).collect();
    let zero = n.scalar("zero", 0.0);
    let most = n.reduce("max", ReduceKind::Max, &axes, false, data)?;
    let most = n.binary("max", BinaryKind::Max, most, zero)?;
    let least = n.reduce("min", ReduceKind::Min, &axes, false, data)?;
    let least = n.binary("min", BinaryKind::Min, least, zero)?;
    let range = n.binary("range", BinaryKind::Sub, most, least)?;
    let (steps, one) = (n.scalar("steps", 255.0), n.scalar("one", 1.0));
    let empty = n.binary("empty", BinaryKind::Equal, range, zero)?;
    let scale = n.binary("step", BinaryKind::Div, range, steps)?;
    let scale = n.node("scale", Select {}, &[empty, one, scale])?;
    let bound = Clip { lo: 0.0, hi: 255.0 };
    let place = n.binary("place", BinaryKind::Div, least, scale)?;
    let place = n.binary("place", BinaryKind::Sub, zero, place)?;
    let place = n.node("clip", bound.clone(), &[place])?;
    let place = n.unary("round", UnaryKind::Round, place)?;
    let v = n.binary("div", BinaryKind::Div, data, scale)?;
    let v = n.unary("round", UnaryKind::Round, v)?;
    let v = n.add("add", v, place)?;
    let v = n.node("clip", bound, &[v])?;
    Ok([stored(n, "", v)?, scale, stored(n, "zero_point", place)?])
}

/// Integers from 0 to 255 as the bytes that represent them.
fn stored(n: &mut NodeContext, suffix: &str, v: ValueId) -> Result<ValueId, Reason> {
    let half = n.scalar("half", 128.0);
    let v = n.binary(if suffix.is_empty() { "signed" } else { suffix }, BinaryKind::Sub, v, half)?;
    let v = n.node(suffix, Cast { dtype: DType::I8 }, &[v])?;
    n.cx.unsigned.insert(v);
    Ok(v)
}
