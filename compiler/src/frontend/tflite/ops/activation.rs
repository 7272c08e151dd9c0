//! Functions of one element: floats are computed, bytes use a table of the results of TFLite's reference kernels.

use super::{expect, fixed};
use crate::frontend::reason::Reason;
use crate::frontend::semantic::{norm, reduce};
use crate::frontend::tflite::NodeContext;
use crate::frontend::tflite::quant::{Activation, PerTensor, per_tensor};
use crate::frontend::tflite::schema::Type;
use crate::frontend::tflite::wide::{self, Factors, Sigmoid};
use crate::graph::op::{BinaryKind, Lookup, Select, Unary, UnaryKind};
use crate::graph::{DType, Tensor, ValueId};
use tilewright_hw::num::{byte_multiplier, offset_clamp, quantize_multiplier, scale_double};

pub(super) fn logistic(n: &mut NodeContext) -> Result<(), Reason> {
    if wide::is_wide(n.input_info(0)?) {
        let of = Sigmoid::new(wide::scale(n.input_info(0)?)?, n.result()?.scale, 0..=0)?;
        return by_table(n, |x| of.logistic(x));
    }
    function(n, UnaryKind::Sigmoid, 0.0, |x| 1.0 / (1.0 + (-x).exp()))
}

pub(super) fn tanh(n: &mut NodeContext) -> Result<(), Reason> {
    if wide::is_wide(n.input_info(0)?) {
        let of = Sigmoid::new(wide::scale(n.input_info(0)?)?, n.result()?.scale, 0..=1)?;
        return by_table(n, |x| of.tanh(x));
    }
    function(n, UnaryKind::Tanh, 0.0, f32::tanh)
}

pub(super) fn elu(n: &mut NodeContext) -> Result<(), Reason> {
    function(n, UnaryKind::Elu, 1.0, |x| if x < 0.0 { x.exp_m1() } else { x })
}

pub(super) fn exp(n: &mut NodeContext) -> Result<(), Reason> {
    function(n, UnaryKind::Exp, 0.0, f32::exp)
}

pub(super) fn abs(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let dtype = expect(n, data, &[DType::F32, DType::I8, DType::I16, DType::I32])?;
    if matches!(dtype, DType::F32 | DType::I32) {
        let v = n.unary("", UnaryKind::Abs, data)?;
        return n.output(v);
    }
    if n.input_info(0)?.ty == Type::U8 {
        return Err("its data must be of type i8, i16, i32 or f32, found uint8".into());
    }
    let (from, to) = (per_tensor(n.input_info(0)?)?, n.result()?);
    // The quotient in single precision; equal scales are not multiplied (`AbsPrepare`).
    let factor = fixed("scales", from.scale / to.scale)?;
    let (multiplier, shift) = byte_multiplier(f64::from(factor));
    let scaled = |x: i32| if from.scale == to.scale { x } else { scale_double(x, multiplier, shift) };
    if dtype == DType::I16 {
        return by_table(n, |x| scaled(x.abs()));
    }
    let v = lookup(n, "", data, |x| offset_clamp(scaled((x - from.zero_point).abs()), to.zero_point, -128, 127))?;
    n.output(v)
}

pub(super) fn neg(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    expect(n, data, &[DType::F32, DType::I32, DType::I64])?;
    let v = n.unary("", UnaryKind::Neg, data)?;
    n.output(v)
}

pub(super) fn sqrt(n: &mut NodeContext) -> Result<(), Reason> {
    float(n, UnaryKind::Sqrt)
}

pub(super) fn rsqrt(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    if expect(n, data, &[DType::F32, DType::I8])? == DType::I8 {
        let (from, to) = (per_tensor(n.input_info(0)?)?, n.result()?);
        // Scales are multiplied in single precision (`RsqrtPrepare`).
        let factor = fixed("scales", 1.0 / (from.scale.sqrt() * to.scale))?;
        let (multiplier, shift) = quantize_multiplier(f64::from(factor));
        let v = lookup(n, "", data, |x| match x - from.zero_point {
            // The kernel refuses numbers below 0 when it runs.
            ..=0 => 127,
            x => {
                let root = (f64::from(1 << 20) / f64::from(x).sqrt()).round() as i32;
                offset_clamp(scale_double(root, multiplier, shift.saturating_sub(20)), to.zero_point, -128, 127)
            }
        })?;
        return n.output(v);
    }
    let root = n.node("sqrt", Unary::new(UnaryKind::Sqrt), &[data])?;
    let v = n.node("", Unary::new(UnaryKind::Reciprocal), &[root])?;
    n.output(v)
}

/// Bytes below 0 have the least result, as at 0.
pub(super) fn log(n: &mut NodeContext) -> Result<(), Reason> {
    function(n, UnaryKind::Log, 0.0, |x| x.max(0.0).ln())
}

pub(super) fn floor(n: &mut NodeContext) -> Result<(), Reason> {
    float(n, UnaryKind::Floor)
}

pub(super) fn ceil(n: &mut NodeContext) -> Result<(), Reason> {
    float(n, UnaryKind::Ceil)
}

pub(super) fn round(n: &mut NodeContext) -> Result<(), Reason> {
    float(n, UnaryKind::Round)
}

pub(super) fn sin(n: &mut NodeContext) -> Result<(), Reason> {
    float(n, UnaryKind::Sin)
}

pub(super) fn cos(n: &mut NodeContext) -> Result<(), Reason> {
    float(n, UnaryKind::Cos)
}

pub(super) fn sign(n: &mut NodeContext) -> Result<(), Reason> {
    float(n, UnaryKind::Sign)
}

pub(super) fn square(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    expect(n, data, &[DType::F32])?;
    let v = n.binary("", BinaryKind::Mul, data, data)?;
    n.output(v)
}

pub(super) fn log_softmax(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    expect(n, data, &[DType::F32])?;
    let axis = n.ty(data).rank().checked_sub(1).ok_or("its data must have a dimension")?;
    let v = reduce::log_softmax(n, data, axis)?;
    n.output(v)
}

pub(super) fn l2_normalization(n: &mut NodeContext) -> Result<(), Reason> {
    let act = Activation::from_code(n.op.options.map_or(Ok(0), |o| o.i8(0))?)?;
    if act != Activation::None {
        return Err("a fused activation is not supported".into());
    }
    let data = n.input(0)?;
    expect(n, data, &[DType::F32])?;
    let axis = n.ty(data).rank().checked_sub(1).ok_or("its data must have a dimension")?;
    let v = norm::l2(n, data, &[axis], 1e-6)?;
    n.output(v)
}

/// GELU, with the `tanh` approximation if the options ask for it.
pub(super) fn gelu(n: &mut NodeContext) -> Result<(), Reason> {
    let approximate = n.op.options.map_or(Ok(0), |o| o.i8(0))? != 0;
    if approximate {
        return function(n, UnaryKind::GeluTanh, 0.0, |x| UnaryKind::GeluTanh.apply(x, 0.0, 0.0));
    }
    // With the complementary error function, like the kernel (`GeluTransform`).
    function(n, UnaryKind::Gelu, 0.0, |x| 0.5 * x * libm::erfcf(x * -std::f32::consts::FRAC_1_SQRT_2))
}

fn float(n: &mut NodeContext, kind: UnaryKind) -> Result<(), Reason> {
    let data = n.input(0)?;
    expect(n, data, &[DType::F32])?;
    let v = n.node("", Unary { kind, alpha: 0.0, beta: 0.0 }, &[data])?;
    n.output(v)
}

/// A function of floats; bytes are computed through the floats that they represent (`PopulateLookupTable`).
fn function(n: &mut NodeContext, kind: UnaryKind, alpha: f32, f: impl Fn(f32) -> f32) -> Result<(), Reason> {
    let data = n.input(0)?;
    if expect(n, data, &[DType::F32, DType::I8])? == DType::F32 {
        let v = n.node("", Unary { kind, alpha, beta: 0.0 }, &[data])?;
        return n.output(v);
    }
    let (from, to) = (per_tensor(n.input_info(0)?)?, n.result()?);
    let inverse = 1.0 / to.scale;
    let v = lookup(n, "", data, |x| {
        let real = from.scale * (x - from.zero_point) as f32;
        // The cast saturates, so nothing overflows if the function is infinite.
        offset_clamp((f(real) * inverse).round() as i32, to.zero_point, -128, 127)
    })?;
    n.output(v)
}

/// Makes a function of integers of 16 bits the output.
fn by_table(n: &mut NodeContext, f: impl Fn(i32) -> i32) -> Result<(), Reason> {
    let data = n.input(0)?;
    let v = wide::table(n, "", data, f)?;
    n.output(v)
}

/// Applies a function of bytes to `data`, as a table.
pub(super) fn lookup(
    n: &mut NodeContext,
    suffix: &str,
    data: ValueId,
    f: impl Fn(i32) -> i32,
) -> Result<ValueId, Reason> {
    let table = Tensor::from_fn(&[256], |i| f(i as i32 - 128).clamp(-128, 127) as i8);
    let table = n.made("table", table);
    n.node(suffix, Lookup {}, &[data, table])
}

pub(super) fn leaky_relu(n: &mut NodeContext) -> Result<(), Reason> {
    let alpha = n.op.options.map_or(Ok(0.0), |o| o.f32(0))?;
    let data = n.input(0)?;
    let dtype = expect(n, data, &[DType::F32, DType::I8, DType::I16])?;
    if dtype == DType::F32 {
        let v = n.node("", Unary { kind: UnaryKind::LeakyRelu, alpha, beta: 0.0 }, &[data])?;
        return n.output(v);
    }
    let (from, to) = (per_tensor(n.input_info(0)?)?, n.result()?);
    // Products and quotients in single precision (`LeakyReluPrepare`).
    let (below, above) = (fixed("alpha", from.scale * alpha / to.scale)?, fixed("scales", from.scale / to.scale)?);
    let scaled = |x: i32, (multiplier, shift), factor: f32| {
        let scaled = scale_double(x, multiplier, shift);
        // Like the kernel, changes the sign after rounding.
        if factor < 0.0 { -scaled } else { scaled }
    };
    if dtype == DType::I16 {
        let factors = [below, above].map(|factor| (quantize_multiplier(f64::from(factor.abs())), factor));
        return by_table(n, |x| {
            let (pair, factor) = factors[usize::from(x >= 0)];
            scaled(x, pair, factor)
        });
    }
    let v = lookup(n, "", data, |x| {
        let x = x - from.zero_point;
        let factor = if x >= 0 { above } else { below };
        offset_clamp(scaled(x, byte_multiplier(f64::from(factor.abs())), factor), to.zero_point, -128, 127)
    })?;
    n.output(v)
}

/// Each channel, or each element, has its own slope below 0.
pub(super) fn prelu(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, slope) = (n.input(0)?, n.input(1)?);
    if expect(n, data, &[DType::F32, DType::I8])? == DType::I8 {
        return prelu_of_bytes(n, data, slope);
    }
    // A slope that is not finite must only apply below 0.
    let zero = n.made("zero", Tensor::vector(vec![0f32]));
    let negative = n.binary("negative", BinaryKind::Less, data, zero)?;
    let below = n.binary("below", BinaryKind::Mul, data, slope)?;
    let v = n.node("", Select {}, &[negative, below, data])?;
    n.output(v)
}

fn prelu_of_bytes(n: &mut NodeContext, data: ValueId, slope: ValueId) -> Result<(), Reason> {
    let (from, by) = (per_tensor(n.input_info(0)?)?, per_tensor(n.input_info(1)?)?);
    let to = n.result()?;
    expect(n, slope, &[DType::I8])?;
    // Products and quotients in single precision (`PreluPrepare`).
    let above = Factors::of_byte(fixed("scales", from.scale / to.scale)?.into())?;
    let below = Factors::of_byte(fixed("scales", from.scale * by.scale / to.scale)?.into())?;
    let x = wide::centered(n, data, from.zero_point)?;
    let slope = wide::centered(n, slope, by.zero_point)?;
    let product = n.binary("product", BinaryKind::Mul, x, slope)?;
    let (above, below) = (above.of_sums(n, x, 255)?, below.of_sums(n, product, 255 * 255)?);
    let zero = n.made("zero", Tensor::scalar(0i64));
    let is_below = n.binary("negative", BinaryKind::Less, x, zero)?;
    let v = n.node("chosen", Select {}, &[is_below, below, above])?;
    let v = wide::placed(n, v, to.zero_point)?;
    n.output(v)
}

pub(super) fn hard_swish(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    if expect(n, data, &[DType::F32, DType::I8])? == DType::F32 {
        let v = n.node("", Unary { kind: UnaryKind::HardSwish, alpha: 0.0, beta: 0.0 }, &[data])?;
        return n.output(v);
    }
    let (from, to) = (per_tensor(n.input_info(0)?)?, n.result()?);
    let f = HardSwish::new(from, to)?;
    let v = lookup(n, "", data, |x| f.apply(x))?;
    n.output(v)
}

/// TFLite's 16-bit fixed-point hard swish.
struct HardSwish {
    from: PerTensor,
    to: PerTensor,
    /// 16-bit multiplier and exponent of the result's scale.
    output: (i32, i32),
    /// 16-bit multiplier and exponent of the scale on which 3 is 32768.
    reluish: (i32, i32),
}

impl HardSwish {
    fn new(from: PerTensor, to: PerTensor) -> Result<HardSwish, Reason> {
        let hires = (1.0 / 128.0) * from.scale;
        let short = |factor: f32| -> Result<(i32, i32), Reason> {
            let (multiplier, exponent) = quantize_multiplier(f64::from(fixed("scale", factor)?));
            let multiplier = if multiplier >= i32::MAX - (1 << 15) { 32767 } else { (multiplier + (1 << 15)) >> 16 };
            Ok((multiplier, i32::from(exponent)))
        };
        let output = short(hires / to.scale)?;
        if output.1 > 0 {
            return Err("the scale of its result is too small for that of its data".into());
        }
        Ok(HardSwish { from, to, output, reluish: short(hires / (3.0 / 32768.0))? })
    }

    fn apply(&self, x: i32) -> i32 {
        let short = |v: i64| v.clamp(-32768, 32767) as i32;
        let rounding_mul = |a: i32, b: i32| {
            let product = a * b;
            short(i64::from((product + if product >= 0 { 1 << 14 } else { 1 - (1 << 14) }) / (1 << 15)))
        };
        let hires = (x - self.from.zero_point) * 128;
        let preshift = rounding_mul(hires, self.output.0);
        let exponent = self.reluish.1;
        let mut reluish = hires;
        if exponent > 0 {
            reluish = short(i64::from(reluish) << (exponent - 1));
        }
        reluish = rounding_mul(reluish, self.reluish.0);
        if exponent > 0 {
            reluish = short(i64::from(reluish) * 2);
        }
        if exponent < 0 {
            reluish = divide(reluish, -exponent);
        }
        // From [-1, 1] to [0, 1]; this product is truncated.
        let reluish = (reluish + (1 << 15)) >> 1;
        let product = short(i64::from(reluish * preshift / (1 << 15)));
        offset_clamp(divide(product, -self.output.1), self.to.zero_point, -128, 127)
    }
}

/// gemmlowp's `RoundingDivideByPOT` in 16 bits, which also hold the mask of the discarded bits: for more than 15 bits
/// it is -1, and the result is a step too high if `x` is not negative.
fn divide(x: i32, exponent: i32) -> i32 {
    let exponent = exponent.clamp(0, 31);
    let mask = i32::from(((1i64 << exponent) - 1) as i16);
    (x >> exponent) + i32::from((x & mask) > (mask >> 1) + i32::from(x < 0))
}
