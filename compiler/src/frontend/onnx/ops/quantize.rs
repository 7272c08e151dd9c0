//! QuantizeLinear, DequantizeLinear, and operators on integers with scales as operands, which become float operators
//! between a dequantization and a quantization.

use super::{conv, gemm, in_layout, pool};
use crate::frontend::onnx::node::NodeContext;
use crate::frontend::onnx::tensor::Element;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::movement::flattened;
use crate::frontend::semantic::product;
use crate::frontend::semantic::window::global_averages;
use crate::graph::op::{
    BinaryKind, Clip, Concat, Dequantize, Expand, QuantRounding, Quantize, ReduceKind, Select, Slice, Softmax, Unary,
    UnaryKind,
};
use crate::graph::{DType, TensorData, ValueId};
use tilewright_runtime::tensor::NarrowFloat;

/// Known scales and zero points; zero points of uint8 are converted to int8.
struct Parameters {
    scale: Vec<f32>,
    zero_point: Vec<i32>,
    /// Element type of the zero point; `None` if it is absent.
    dtype: Option<DType>,
}

/// Reads the parameters from these operands.
fn parameters(n: &NodeContext, scale: usize, zero_point: usize) -> Result<Parameters, Reason> {
    let scale = n.floats(scale)?;
    let mut p = Parameters { zero_point: vec![0; scale.len()], scale, dtype: None };
    if n.has_input(zero_point) {
        let t = n.constant_input(zero_point)?;
        p.zero_point = match t.data() {
            TensorData::I8(v) => v.iter().map(|&z| i32::from(z)).collect(),
            TensorData::U8(v) => v.iter().map(|&z| i32::from(z) - 128).collect(),
            TensorData::I32(v) => v.clone(),
            _ => return Err(format!("its zero point must be of type i8, u8 or i32, found {}", t.ty()).into()),
        };
        p.dtype = Some(t.dtype());
        if p.zero_point.len() == 1 {
            p.zero_point = vec![p.zero_point[0]; p.scale.len()];
        }
    }
    Ok(p)
}

impl Parameters {
    /// Fails unless there is one value, or one per index along an axis of the data.
    fn check(&self, n: &NodeContext, data: ValueId, axis: usize) -> Result<(), Reason> {
        let (have, zeros) = (self.scale.len(), self.zero_point.len());
        if zeros != have {
            return Err(format!("its scale has {have} values, but its zero point has {zeros}").into());
        }
        let size = n.ty(data).dims.get(axis).and_then(|d| d.known());
        match size {
            Some(size) if have > 1 && size != have => {
                Err(format!("its scale has {have} values for {size} elements along axis {axis} of its data").into())
            }
            _ => Ok(()),
        }
    }
}

/// Dequantizes an operand with its scale and zero point: one value, one per index along `axis`, or tensors that
/// broadcast to the operand.
fn real(
    n: &mut NodeContext,
    what: &str,
    data: usize,
    scale: usize,
    zero_point: usize,
    axis: usize,
) -> Result<ValueId, Reason> {
    let v = n.input(data)?;
    let given = n.input(scale)?;
    if !both_known(n, scale, zero_point) || n.shape(given)?.iter().filter(|&&size| size != 1).count() > 1 {
        return real_by_parts(n, what, [data, scale, zero_point]);
    }
    let mut p = parameters(n, scale, zero_point)?;
    p.check(n, v, axis)?;
    if p.dtype.is_none() && n.unsigned(v) {
        p.zero_point.fill(-128);
    }
    n.node(&format!("{what}/dequantize"), Dequantize { scale: p.scale, zero_point: p.zero_point, axis }, &[v])
}

/// Dequantizes an operand whose scale and zero point broadcast to it.
fn real_by_parts(n: &mut NodeContext, what: &str, [data, scale, zero_point]: [usize; 3]) -> Result<ValueId, Reason> {
    let data = n.plain(data)?;
    let shape = n.shape(data)?;
    let broadcast = |n: &mut NodeContext, name: &str, i: usize| {
        let v = n.plain(i)?;
        let have = n.shape(v)?;
        let suits = have.len() <= shape.len()
            && have.iter().rev().zip(shape.iter().rev()).all(|(have, size)| *have == 1 || have == size);
        if !suits {
            return Err(Reason(format!("the {name} {have:?} of operand `{what}` does not broadcast to {shape:?}")));
        }
        n.cast(&format!("{what}/{name}"), v, DType::F32)
    };
    let mut v = n.cast(&format!("{what}/float"), data, DType::F32)?;
    if n.has_input(zero_point) {
        let zero = broadcast(n, "zero_point", zero_point)?;
        v = n.binary(&format!("{what}/sub"), BinaryKind::Sub, v, zero)?;
    }
    let scale = broadcast(n, "scale", scale)?;
    n.binary(&format!("{what}/mul"), BinaryKind::Mul, v, scale)
}

/// Quantizes the result with the scale and zero point in these operands, and makes it the node's output.
fn finish(n: &mut NodeContext, v: ValueId, scale: usize, zero_point: usize) -> Result<(), Reason> {
    if !both_known(n, scale, zero_point) {
        return finish_by_parts(n, v, scale, zero_point);
    }
    let mut p = parameters(n, scale, zero_point)?;
    let dtype = p.dtype.unwrap_or(DType::U8);
    if p.dtype.is_none() {
        p.zero_point.fill(-128);
    }
    if !matches!(dtype, DType::I8 | DType::U8) {
        return Err(format!("its result must be of type i8 or u8, found {dtype}").into());
    }
    let op = Quantize {
        scale: p.scale,
        zero_point: p.zero_point,
        axis: 0,
        rounding: QuantRounding::HalfEven,
        dtype: DType::I8,
    };
    let v = n.node("", op, &[v])?;
    if dtype == DType::U8 {
        n.cx.unsigned.insert(v);
    }
    n.output(v)
}

/// True if scale and zero point in these operands are constants.
fn both_known(n: &NodeContext, scale: usize, zero_point: usize) -> bool {
    n.known(scale).is_some() && (!n.has_input(zero_point) || n.known(zero_point).is_some())
}

/// Like [`finish`], with one scale and one zero point that are known only when the model runs.
fn finish_by_parts(n: &mut NodeContext, v: ValueId, scale: usize, zero_point: usize) -> Result<(), Reason> {
    let to = if n.has_input(zero_point) { n.element(zero_point)?.dtype } else { DType::U8 };
    if !matches!(to, DType::I8 | DType::U8) {
        return Err(format!("its result must be of type i8 or u8, found {to}").into());
    }
    let one = |n: &mut NodeContext, name: &str, i: usize| {
        let v = n.plain(i)?;
        let v = n.cast(name, v, DType::F32)?;
        n.reshape(name, v, &[])
    };
    let scale = one(n, "scale", scale)?;
    let zero = if n.has_input(zero_point) { Some(one(n, "zero_point", zero_point)?) } else { None };
    let v = stepped(n, v, scale, zero, Element::plain(to))?;
    n.output(v)
}

/// The value divided by the scale, rounded, moved by the zero point, and saturated.
fn stepped(
    n: &mut NodeContext,
    v: ValueId,
    scale: ValueId,
    zero: Option<ValueId>,
    to: Element,
) -> Result<ValueId, Reason> {
    let mut v = n.binary("div", BinaryKind::Div, v, scale)?;
    if to.float.is_none() {
        v = n.unary("round", UnaryKind::Round, v)?;
    }
    if let Some(zero) = zero {
        v = n.add("add", v, zero)?;
    }
    if to.float.is_some() {
        let saturate = n.int("saturate").unwrap_or(1) != 0;
        return n.converted(v, to, saturate);
    }
    n.without_effect("saturate");
    let (lo, hi) = to.range();
    let v = n.node("clip", Clip { lo: lo as f32, hi: hi as f32 }, &[v])?;
    n.cast("", v, to.dtype)
}

/// True if scale and zero point are known and not blocked, and the zero point has one of these types.
fn simple(n: &NodeContext, values: &[DType]) -> bool {
    let zero_point = !n.has_input(2) || n.known(2).is_some_and(|z| values.contains(&z.dtype()));
    n.int("block_size").unwrap_or(0) == 0 && n.known(1).is_some() && zero_point
}

/// The element type that an attribute asks for; `None` if it is not set, or 0.
fn asked(n: &NodeContext, name: &str) -> Result<Option<Element>, Reason> {
    if n.int(name).unwrap_or(0) == 0 { Ok(None) } else { n.element_attribute(name) }
}

/// Whether it is a float that is computed in single precision, which has the digits of all of these.
fn is_single(element: &Element, also: &[NarrowFloat]) -> bool {
    element.dtype == DType::F32 && element.float.is_none_or(|float| also.contains(&float))
}

/// The dimension that has a scale per index; 0 if there is only one scale.
fn scale_axis(n: &NodeContext, scales: usize, rank: usize) -> Result<usize, Reason> {
    if scales > 1 {
        return n.axis_attribute(1, rank);
    }
    n.without_effect("axis");
    Ok(0)
}

pub(super) fn quantize_linear(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let rank = n.ty(data).rank();
    let wanted = asked(n, "output_dtype")?;
    let given = if n.has_input(2) { Some(n.element(2)?) } else { None };
    if let (Some(wanted), Some(given)) = (wanted, given)
        && wanted != given
    {
        return Err(format!("its output_dtype is {wanted}, but its zero point is of type {given}").into());
    }
    let to = given.or(wanted).unwrap_or(Element::plain(DType::U8));
    if let Some(other) = asked(n, "precision")?.filter(|p| !is_single(p, &[NarrowFloat::F16])) {
        return Err(format!("its precision {other} is not supported; use FLOAT").into());
    }
    if to.is_narrow() || !simple(n, &[DType::I8, DType::U8]) || !matches!(to.dtype, DType::I8 | DType::U8) {
        return quantize_by_parts(n, data, to);
    }
    n.without_effect("saturate");
    let p = parameters(n, 1, 2)?;
    let dtype = to.dtype;
    let mut zero_point = p.zero_point;
    if dtype == DType::U8 && p.dtype.is_none() {
        zero_point.fill(-128);
    }
    let axis = scale_axis(n, p.scale.len(), rank)?;
    let op = Quantize { scale: p.scale, zero_point, axis, rounding: QuantRounding::HalfEven, dtype: DType::I8 };
    let data = n.cast("float", data, DType::F32)?;
    let v = n.node("", op, &[data])?;
    if dtype == DType::U8 {
        n.cx.unsigned.insert(v);
    }
    n.output(v)
}

pub(super) fn dequantize_linear(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let rank = n.ty(data).rank();
    if let Some(other) = asked(n, "output_dtype")?.filter(|to| !is_single(to, &[NarrowFloat::F16, NarrowFloat::Bf16])) {
        return Err(format!("its output_dtype {other} is not supported; use FLOAT, FLOAT16 or BFLOAT16").into());
    }
    let types = [DType::I8, DType::U8, DType::I32];
    if !simple(n, &types) || !types.contains(&n.element(0)?.dtype) {
        return dequantize_by_parts(n);
    }
    let p = parameters(n, 1, 2)?;
    let axis = scale_axis(n, p.scale.len(), rank)?;
    p.check(n, data, axis)?;
    let mut zero_point = p.zero_point;
    let declared = if n.unsigned(data) { DType::U8 } else { n.ty(data).dtype };
    if p.dtype.is_none() && declared == DType::U8 {
        zero_point.fill(-128);
    }
    if p.dtype.is_some_and(|d| d != declared) {
        return Err("its data and its zero point must have the same type".into());
    }
    let v = n.node("", Dequantize { scale: p.scale, zero_point, axis }, &[data])?;
    n.output(v)
}

/// A scale or zero point with the data's shape, or a shape that broadcasts to it.
fn parameter(n: &mut NodeContext, suffix: &str, v: ValueId, shape: &[usize]) -> Result<ValueId, Reason> {
    let v = n.cast(suffix, v, DType::F32)?;
    let have = n.shape(v)?;
    let block = usize::try_from(n.int("block_size").unwrap_or(0)).map_err(|_| "its block_size must not be negative")?;
    if have.iter().product::<usize>() == 1 && block == 0 {
        n.without_effect("axis");
        return n.reshape(suffix, v, &[]);
    }
    let axis = n.axis_attribute(1, shape.len())?;
    if block == 0 {
        let mut to = vec![1; shape.len()];
        to[axis] = have.iter().product();
        return n.reshape(suffix, v, &to);
    }
    if have.len() != shape.len() || have[axis].checked_mul(block).is_none_or(|n| n < shape[axis]) {
        return Err(format!("its {suffix} {have:?} does not match {shape:?} in blocks of {block}").into());
    }
    let (mut apart, mut wide, mut joined) = (have.clone(), have.clone(), have);
    apart.insert(axis + 1, 1);
    wide.insert(axis + 1, block);
    joined[axis] *= block;
    let v = n.reshape(suffix, v, &apart)?;
    let v = n.node(suffix, Expand { shape: wide }, &[v])?;
    let v = n.reshape(suffix, v, &joined)?;
    let op = Slice { starts: vec![0; shape.len()], sizes: shape.to_vec(), steps: vec![1; shape.len()] };
    if joined == shape { Ok(v) } else { n.node(suffix, op, &[v]) }
}

fn dequantize_by_parts(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let shape = n.shape(data)?;
    let mut v = n.cast("float", data, DType::F32)?;
    if n.has_input(2) {
        let zero = n.plain(2)?;
        let zero = parameter(n, "zero_point", zero, &shape)?;
        v = n.binary("sub", BinaryKind::Sub, v, zero)?;
    }
    let scale = n.plain(1)?;
    let scale = parameter(n, "scale", scale, &shape)?;
    let v = n.binary("", BinaryKind::Mul, v, scale)?;
    n.output(v)
}

fn quantize_by_parts(n: &mut NodeContext, data: ValueId, to: Element) -> Result<(), Reason> {
    if to.float.is_none() && !matches!(to.dtype, DType::I8 | DType::U8 | DType::I16 | DType::U16) {
        return Err(format!("its result must be an integer of at most 16 bits, or a float of 8, found {to}").into());
    }
    let shape = n.shape(data)?;
    let data = n.cast("float", data, DType::F32)?;
    let scale = n.plain(1)?;
    let scale = parameter(n, "scale", scale, &shape)?;
    let zero = n.optional(2)?.map(|zero| parameter(n, "zero_point", zero, &shape)).transpose()?;
    let v = stepped(n, data, scale, zero, to)?;
    n.output(v)
}

pub(super) fn qlinear_conv(n: &mut NodeContext) -> Result<(), Reason> {
    let x = real(n, "data", 0, 1, 2, 0)?;
    let w = real(n, "weight", 3, 4, 5, 0)?;
    let bias = if n.has_input(8) {
        let (xs, ws) = (n.floats(1)?, n.floats(4)?);
        let b = n.input(8)?;
        let scale: Vec<f32> = ws.iter().map(|w| w * xs.first().copied().unwrap_or(1.0)).collect();
        let zero_point = vec![0; scale.len()];
        Some(n.node("bias/dequantize", Dequantize { scale, zero_point, axis: 0 }, &[b])?)
    } else {
        None
    };
    let v = in_layout(n, x, |n, x| conv::convolution(n, x, w, bias))?;
    finish(n, v, 6, 7)
}

pub(super) fn qlinear_matmul(n: &mut NodeContext) -> Result<(), Reason> {
    let last = |n: &mut NodeContext, i: usize| -> Result<usize, Reason> {
        let v = n.input(i)?;
        Ok(n.ty(v).rank().saturating_sub(1))
    };
    let rows = last(n, 0)?.saturating_sub(1);
    let columns = last(n, 3)?;
    let a = real(n, "a", 0, 1, 2, rows)?;
    let b = real(n, "b", 3, 4, 5, columns)?;
    let v = product::matrices(n, a, b)?;
    finish(n, v, 6, 7)
}

/// `QLinearAdd` and `QLinearMul`: a, scale, zero point, b, scale, zero point, scale, zero point.
fn two(
    n: &mut NodeContext,
    join: fn(&mut NodeContext, ValueId, ValueId) -> Result<ValueId, Reason>,
) -> Result<(), Reason> {
    let a = real(n, "a", 0, 1, 2, 0)?;
    let b = real(n, "b", 3, 4, 5, 0)?;
    let v = join(n, a, b)?;
    finish(n, v, 6, 7)
}

pub(super) fn qlinear_add(n: &mut NodeContext) -> Result<(), Reason> {
    two(n, |n, a, b| n.add("add", a, b))
}

pub(super) fn qlinear_mul(n: &mut NodeContext) -> Result<(), Reason> {
    two(n, |n, a, b| n.binary("mul", BinaryKind::Mul, a, b))
}

/// Operators of one operand: data, scale, zero point, scale, zero point.
fn one(n: &mut NodeContext, f: impl Fn(&mut NodeContext, ValueId) -> Result<ValueId, Reason>) -> Result<(), Reason> {
    let x = real(n, "data", 0, 1, 2, 0)?;
    let v = f(n, x)?;
    finish(n, v, 3, 4)
}

pub(super) fn qlinear_sigmoid(n: &mut NodeContext) -> Result<(), Reason> {
    one(n, |n, x| n.unary("sigmoid", UnaryKind::Sigmoid, x))
}

pub(super) fn qlinear_leaky_relu(n: &mut NodeContext) -> Result<(), Reason> {
    let alpha = n.float("alpha").unwrap_or(0.01);
    one(n, |n, x| n.node("leaky_relu", Unary { kind: UnaryKind::LeakyRelu, alpha, beta: 0.0 }, &[x]))
}

pub(super) fn qlinear_softmax(n: &mut NodeContext) -> Result<(), Reason> {
    let opset = n.int("opset").ok_or("it has no `opset`")?;
    one(n, |n, x| {
        let rank = n.ty(x).rank();
        let axis = n.axis_attribute(-1, rank)?;
        if opset >= 13 || axis + 1 == rank {
            return n.node("softmax", Softmax::float(axis, 1.0), &[x]);
        }
        // Softmax of earlier operator sets sums over all dimensions from the axis on.
        let shape = n.shape(x)?;
        let flat = flattened(n, x, axis)?;
        let v = n.node("softmax", Softmax::float(1, 1.0), &[flat])?;
        n.reshape("shape", v, &shape)
    })
}

pub(super) fn qlinear_global_average(n: &mut NodeContext) -> Result<(), Reason> {
    one(n, |n, x| in_layout(n, x, |n, x| global_averages(n, "pool", x)))
}

pub(super) fn qlinear_average(n: &mut NodeContext) -> Result<(), Reason> {
    one(n, |n, x| in_layout(n, x, |n, x| pool::averages(n, "pool", x)))
}

/// Axes are an attribute in every operator set.
pub(super) fn qlinear_reduce_mean(n: &mut NodeContext) -> Result<(), Reason> {
    one(n, |n, x| {
        let rank = n.ty(x).rank();
        let axes = match n.ints("axes") {
            Some(list) => n.axes(list, rank)?,
            None => (0..rank).collect(),
        };
        let keep = n.int("keepdims").unwrap_or(1) != 0;
        n.reduce("mean", ReduceKind::Mean, &axes, keep, x)
    })
}

/// `QLinearWhere`: condition, then a and b with scale and zero point each, then scale and zero point of the result.
pub(super) fn qlinear_where(n: &mut NodeContext) -> Result<(), Reason> {
    let condition = n.plain(0)?;
    let a = real(n, "a", 1, 2, 3, 0)?;
    let b = real(n, "b", 4, 5, 6, 0)?;
    let v = n.node("select", Select {}, &[condition, a, b])?;
    finish(n, v, 7, 8)
}

/// Scale, zero point, then data, scale and zero point of each part.
pub(super) fn qlinear_concat(n: &mut NodeContext) -> Result<(), Reason> {
    let count = n.proto.input.len().saturating_sub(2) / 3;
    let parts =
        (0..count).map(|i| real(n, "part", 2 + 3 * i, 3 + 3 * i, 4 + 3 * i, 0)).collect::<Result<Vec<_>, _>>()?;
    let first = *parts.first().ok_or("it has no operands")?;
    let axis = n.axis_attribute(1, n.ty(first).rank())?;
    let v = n.node("concat", Concat { axis }, &parts)?;
    finish(n, v, 0, 1)
}

/// `QGemm`: a, scale, zero point, b, scale, zero point, bias, then scale and zero point of the result.
pub(super) fn qgemm(n: &mut NodeContext) -> Result<(), Reason> {
    let a = real(n, "a", 0, 1, 2, 0)?;
    let channels = usize::from(n.int("transB").unwrap_or(0) == 0);
    let b = real(n, "b", 3, 4, 5, channels)?;
    let bias = if n.has_input(6) {
        let (sa, sb) = (n.floats(1)?, n.floats(4)?);
        let (c, alpha) = (n.input(6)?, n.float("alpha").unwrap_or(1.0));
        let scale: Vec<f32> = sb.iter().map(|s| alpha * s * sa.first().copied().unwrap_or(1.0)).collect();
        let (zero_point, axis) = (vec![0; scale.len()], n.ty(c).rank().saturating_sub(1));
        Some(n.node("bias/dequantize", Dequantize { scale, zero_point, axis }, &[c])?)
    } else {
        None
    };
    let v = gemm::product(n, a, b, bias)?;
    if n.has_input(7) { finish(n, v, 7, 8) } else { n.output(v) }
}
