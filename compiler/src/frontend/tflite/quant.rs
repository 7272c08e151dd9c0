//! Quantization parameters as TFLite's preparation of a node derives them (`kernel_util.cc`).

use super::schema::{TensorInfo, Type};
use crate::frontend::reason::Reason;
use crate::graph::Tensor;

/// One scale and zero point; the zero point as int8.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PerTensor {
    pub scale: f32,
    pub zero_point: i32,
}

/// The amount to subtract from a zero point of the file to convert it to int8.
fn offset(info: &TensorInfo) -> i64 {
    if info.ty == Type::U8 { 128 } else { 0 }
}

/// Parameters of a tensor with one scale, which can be 0, and zero point.
pub(super) fn per_tensor(info: &TensorInfo) -> Result<PerTensor, Reason> {
    let name = &info.name;
    let q = info.quantization.as_ref().ok_or_else(|| format!("tensor `{name}` has no quantization parameters"))?;
    let (&[scale], &[zero_point]) = (q.scale.as_slice(), q.zero_point.as_slice()) else {
        return Err(format!("tensor `{name}` is quantized per channel, but one scale is expected").into());
    };
    // TensorFlow writes the scale 0 for tensors whose elements are all 0, such as the first state of a recurrence.
    if scale != 0.0 {
        check_scale(name, scale)?;
    }
    let zero_point = zero_point.saturating_sub(offset(info));
    let zero_point = i32::try_from(zero_point).ok().filter(|z| (-128..=127).contains(z));
    let zero_point = zero_point.ok_or_else(|| format!("tensor `{name}` has a zero point out of range for its type"))?;
    if info.ty == Type::I16 && zero_point != 0 {
        return Err(format!("tensor `{name}` is of 16 bits, so its zero point must be 0, not {zero_point}").into());
    }
    Ok(PerTensor { scale, zero_point })
}

/// Parameters of a tensor by whose scale sums are divided.
pub(super) fn divisor(info: &TensorInfo) -> Result<PerTensor, Reason> {
    let found = per_tensor(info)?;
    check_scale(&info.name, found.scale)?;
    Ok(found)
}

/// Twice the greater scale of two operands, to which both are brought; not 0, even if both scales are.
pub(super) fn common_scale(scales: [f32; 2]) -> f64 {
    2.0 * f64::from(scales[0].max(scales[1]).max(f32::MIN_POSITIVE))
}

fn check_scale(name: &str, scale: f32) -> Result<(), Reason> {
    if scale.is_finite() && scale > 0.0 {
        return Ok(());
    }
    Err(format!("tensor `{name}` has scale {scale}, which must be positive and finite").into())
}

/// One scale, or one for each of `channels` along `axis`, of weights whose zero points as int8 must be 0.
pub(super) fn symmetric_weights(info: &TensorInfo, axis: usize, channels: usize) -> Result<Vec<f32>, Reason> {
    let (scales, zero_point) = weights(info, axis, channels)?;
    if zero_point != 0 {
        let (name, advice) = (&info.name, "convert the network with symmetric weights");
        return Err(format!("tensor `{name}` has weights with a zero point, but its data are float; {advice}").into());
    }
    Ok(scales)
}

/// A scale for each of `channels` along `axis` of 8-bit weights, and their common zero point as int8.
pub(super) fn weights(info: &TensorInfo, axis: usize, channels: usize) -> Result<(Vec<f32>, i32), Reason> {
    let name = &info.name;
    if !matches!(info.ty, Type::I8 | Type::U8) {
        let found = super::dtype(info)?.name();
        return Err(format!("tensor `{name}` has weights of type {found}; with 8-bit data they must be i8").into());
    }
    let q = info.quantization.as_ref().ok_or_else(|| format!("tensor `{name}` has no quantization parameters"))?;
    let zero_point = q.zero_point.first().map_or(0, |z| z.saturating_sub(offset(info)));
    let zero_point = i32::try_from(zero_point).ok().filter(|z| (-128..=127).contains(z));
    let zero_point = zero_point.ok_or_else(|| format!("tensor `{name}` has a zero point out of range for its type"))?;
    if q.zero_point.iter().any(|z| *z != q.zero_point[0]) {
        return Err(format!("tensor `{name}` has weights whose channels have different zero points").into());
    }
    for &s in &q.scale {
        check_scale(name, s)?;
    }
    match q.scale.len() {
        1 => Ok((vec![q.scale[0]; channels], zero_point)),
        n if n == channels && q.axis == axis => Ok((q.scale.clone(), zero_point)),
        n => {
            Err(format!("tensor `{name}` has {n} scales along dimension {}, expected {channels} along {axis}", q.axis)
                .into())
        }
    }
}

/// The value of a constant tensor as floats, whatever its type.
pub(super) fn dequantized(info: &TensorInfo, t: Tensor) -> Result<Tensor, Reason> {
    use crate::graph::op::{Dequantize, Op};
    if t.dtype() == crate::graph::DType::F32 {
        return Ok(t);
    }
    let name = &info.name;
    let q = info.quantization.as_ref().ok_or_else(|| format!("tensor `{name}` has no quantization parameters"))?;
    let zero_point = q.zero_point.iter().map(|&z| i32::try_from(z.saturating_sub(offset(info))));
    let zero_point =
        zero_point.collect::<Result<_, _>>().map_err(|_| format!("tensor `{name}` has a zero point out of range"))?;
    let op = Dequantize { scale: q.scale.clone(), zero_point, axis: q.axis };
    let mut out = Op::from(op).eval(&[&t]).map_err(|e| format!("tensor `{name}`: {e}"))?;
    out.pop().ok_or_else(|| Reason(format!("tensor `{name}` is empty")))
}

/// The activation fused into a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activation {
    None,
    Relu,
    ReluN1To1,
    Relu6,
    /// An operator of its own, never fused.
    Relu0To1,
}

impl Activation {
    pub fn from_code(code: i8) -> Result<Activation, Reason> {
        match code {
            0 => Ok(Activation::None),
            1 => Ok(Activation::Relu),
            2 => Ok(Activation::ReluN1To1),
            3 => Ok(Activation::Relu6),
            n => {
                let names = [(4, "TANH"), (5, "SIGN_BIT")];
                let name = names.iter().find(|(c, _)| *c == n).map_or_else(|| format!("number {n}"), |n| n.1.into());
                let supported = "NONE, RELU, RELU_N1_TO_1, RELU6";
                Err(format!("attribute fused_activation_function is {name}; supported are {supported}").into())
            }
        }
    }

    /// Bounds of the real values.
    pub fn bounds(self) -> (f32, f32) {
        match self {
            Activation::None => (f32::NEG_INFINITY, f32::INFINITY),
            Activation::Relu => (0.0, f32::INFINITY),
            Activation::ReluN1To1 => (-1.0, 1.0),
            Activation::Relu6 => (0.0, 6.0),
            Activation::Relu0To1 => (0.0, 1.0),
        }
    }

    /// Bounds of the int8 values (`CalculateActivationRangeQuantized`).
    pub fn range(self, q: PerTensor) -> (i32, i32) {
        self.range_in(q, (-128, 127))
    }

    /// Bounds of values in a range.
    pub fn range_in(self, q: PerTensor, (least, most): (i32, i32)) -> (i32, i32) {
        let quantize = |x: f32| {
            if x.is_infinite() { None } else { Some(q.zero_point.saturating_add((x / q.scale).round() as i32)) }
        };
        let (lo, hi) = self.bounds();
        let lo = quantize(lo).map_or(least, |v| v.clamp(least, most));
        (lo, quantize(hi).map_or(most, |v| v.clamp(lo, most)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_the_smallest_scales_end_where_bytes_do() {
        let range = |scale, zero_point| Activation::Relu6.range(PerTensor { scale, zero_point });
        assert_eq!(range(0.05, -128), (-128, -8));
        assert_eq!(range(1e-30, 127), (127, 127));
        assert_eq!(range(1e-30, -128), (-128, 127));
        assert_eq!(Activation::ReluN1To1.range(PerTensor { scale: 1e-30, zero_point: -128 }), (-128, 127));
    }
}
