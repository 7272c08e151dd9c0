//! Arithmetic on tensors that are quantized to 16 bits, with weights of 8 bits: TFLite's "16x8".
//!
//! Their zero point is 0, and sums have 64 bits. Sums of products are computed in double precision, which holds every one
//! of them; what follows is computed in integers of 64 bits as in TFLite's reference kernels (`common.cc`).

use super::NodeContext;
use super::quant::{Activation, PerTensor, common_scale, per_tensor};
use super::scaling::fits;
use super::schema::{TensorInfo, Type};
use crate::frontend::reason::Reason;
use crate::graph::op::{BinaryKind, Gather, ReduceKind, UnaryKind};
use crate::graph::{DType, Op, Tensor, ValueId};
use tilewright_hw::num::{MOST_BYTE_FACTOR, quantize_multiplier, scale_double};

/// Numbers that an element can be.
pub(super) const RANGE: (i32, i32) = (-32768, 32767);

/// Whether a tensor is quantized to 16 bits.
pub(super) fn is_wide(info: &TensorInfo) -> bool {
    info.ty == Type::I16 && info.quantization.is_some()
}

/// The scale of a tensor that is quantized to 16 bits.
pub(super) fn scale(info: &TensorInfo) -> Result<f32, Reason> {
    Ok(per_tensor(info)?.scale)
}

/// An integer of 64 bits that all elements share.
fn whole(n: &mut NodeContext, suffix: &str, x: i64) -> ValueId {
    n.made(suffix, Tensor::scalar(x))
}

/// Factors of sums, one for each channel, which are the last dimension, or one for all.
pub(super) struct Factors(Vec<(i32, i32)>);

impl Factors {
    /// # Errors
    /// If one is not finite.
    pub fn new(factors: &[f64]) -> Result<Factors, Reason> {
        if let Some(other) = factors.iter().find(|f| !f.is_finite()) {
            return Err(format!("its scales give a factor of {other}, which must be finite").into());
        }
        let pair = |&factor: &f64| {
            let (multiplier, shift) = quantize_multiplier(factor);
            (multiplier, i32::from(shift))
        };
        Ok(Factors(factors.iter().map(pair).collect()))
    }

    /// One factor of a result of 8 bits: from some factor on, every number but 0 is at the bounds of the type.
    pub fn of_byte(factor: f64) -> Result<Factors, Reason> {
        Factors::new(&[factor.min(MOST_BYTE_FACTOR)])
    }

    pub fn of_pair(multiplier: i32, shift: i32) -> Factors {
        Factors(vec![(multiplier, shift)])
    }

    fn negative(self) -> Factors {
        Factors(self.0.into_iter().map(|(multiplier, shift)| (-multiplier, shift)).collect())
    }

    fn each(&self, n: &mut NodeContext, suffix: &str, f: impl Fn(i32, i32) -> i64) -> ValueId {
        let list: Vec<i64> = self.0.iter().map(|&(multiplier, shift)| f(multiplier, shift)).collect();
        let t = if let [one] = list[..] { Tensor::scalar(one) } else { Tensor::vector(list) };
        n.made(suffix, t)
    }

    /// Sums of 64 bits times the factors, whose multipliers have 15 bits (`MultiplyByQuantizedMultiplier` of `int64_t`).
    ///
    /// # Errors
    /// If a factor is 128 or more, which the kernels do not define.
    pub fn of_long_sums(&self, n: &mut NodeContext, sums: ValueId) -> Result<ValueId, Reason> {
        if self.0.iter().any(|&(_, shift)| shift > 7) {
            return Err("its scales are too far apart: they give a factor of 128 or more".into());
        }
        let reduced = |m: i32| if m < 0x7fff_0000 { (i64::from(m) + (1 << 15)) >> 16 } else { 0x7fff };
        let multiplier = self.each(n, "multiplier", |m, _| reduced(m));
        let half = self.each(n, "half", |_, shift| 1i64 << (14 - shift));
        let down = self.each(n, "shift", |_, shift| i64::from(15 - shift));
        let v = n.binary("product", BinaryKind::Mul, sums, multiplier)?;
        let v = n.add("rounded", v, half)?;
        n.binary("scaled", BinaryKind::ShiftRight, v, down)
    }

    /// Sums of 32 bits, up to `most`, times the factors, rounded twice (`MultiplyByQuantizedMultiplier` of `int32_t`).
    ///
    /// # Errors
    /// If a sum, shifted for a factor of 1 or more, exceeds 32 bits, which the kernels leave undefined.
    pub fn of_sums(&self, n: &mut NodeContext, sums: ValueId, most: i64) -> Result<ValueId, Reason> {
        for &(multiplier, shift) in &self.0 {
            fits(most, shift, f64::from(multiplier) / f64::from(1u32 << 31) * f64::from(shift).exp2())?;
        }
        let multiplier = self.each(n, "multiplier", |m, shift| i64::from(m) << shift.max(0));
        let (half, bits) = (whole(n, "half", 1 << 30), whole(n, "bits", 31));
        let v = n.binary("product", BinaryKind::Mul, sums, multiplier)?;
        let v = n.add("rounded", v, half)?;
        let v = n.binary("high", BinaryKind::ShiftRight, v, bits)?;
        if self.0.iter().all(|&(_, shift)| shift >= 0) {
            return Ok(v);
        }
        // Away from zero at ties: a negative number is one less before half a step is added.
        let sign = whole(n, "sign", 63);
        let less = n.binary("negative", BinaryKind::ShiftRight, v, sign)?;
        let where_shifted = self.each(n, "shifted", |_, shift| if shift < 0 { -1 } else { 0 });
        let less = n.binary("less", BinaryKind::And, less, where_shifted)?;
        let half = self.each(n, "half_step", |_, shift| if shift < 0 { 1i64 << (-shift - 1) } else { 0 });
        let down = self.each(n, "shift", |_, shift| i64::from((-shift).max(0)));
        let v = n.add("less", v, less)?;
        let v = n.add("half_step", v, half)?;
        n.binary("scaled", BinaryKind::ShiftRight, v, down)
    }
}

/// Integers of 64 bits within bounds, in 16 bits.
pub(super) fn clipped(n: &mut NodeContext, v: ValueId, bounds: (i32, i32)) -> Result<ValueId, Reason> {
    within(n, v, bounds, DType::I16)
}

/// Integers of 64 bits within bounds, in this type.
fn within(n: &mut NodeContext, v: ValueId, (lo, hi): (i32, i32), dtype: DType) -> Result<ValueId, Reason> {
    let (lo, hi) = (whole(n, "lo", lo.into()), whole(n, "hi", hi.into()));
    let v = n.binary("least", BinaryKind::Max, v, lo)?;
    let v = n.binary("most", BinaryKind::Min, v, hi)?;
    n.cast("", v, dtype)
}

/// The sums of products of a layer in double precision: of operand `i`, which became `data`, with weights of 8 bits.
pub(super) fn sums(
    n: &mut NodeContext,
    op: impl Into<Op>,
    (i, data): (usize, ValueId),
    weight: &Tensor,
    zero_point: i32,
) -> Result<ValueId, Reason> {
    let (op, data) = (op.into(), operand(n, i, data)?);
    let weight = weights(n, weight, zero_point)?;
    let name = op.name();
    n.node(name, op, &[data, weight])
}

/// Sums of products in double precision as results of a layer with channels last: with their bias, scaled, within the
/// bounds of the activation. A bias of 32 bits says that the sums have 32 bits.
pub(super) fn requantized(
    n: &mut NodeContext,
    sums: ValueId,
    bias: Option<Tensor>,
    factors: &[f64],
    act: Activation,
) -> Result<ValueId, Reason> {
    let (to, factors) = (n.result()?, Factors::new(factors)?);
    let v = n.cast("sums", sums, DType::I64)?;
    let is_short = bias.as_ref().is_some_and(|bias| bias.dtype() == DType::I32);
    let v = biased(n, v, bias)?;
    let v = if is_short { factors.of_sums(n, v, i32::MAX.into())? } else { factors.of_long_sums(n, v)? };
    clipped(n, v, act.range_in(to, RANGE))
}

/// The same for a fully connected layer, whose reference kernel multiplies each sum by its factor in double precision and
/// rounds once, ties away from zero.
pub(super) fn requantized_away(
    n: &mut NodeContext,
    sums: ValueId,
    bias: Option<Tensor>,
    factors: &[f64],
    act: Activation,
) -> Result<ValueId, Reason> {
    let to = n.result()?;
    let v = biased(n, sums, bias)?;
    let factors = n.made("factors", Tensor::vector(factors.to_vec()));
    let v = n.binary("scaled", BinaryKind::Mul, v, factors)?;
    let v = rounded_away(n, v)?;
    bounded(n, v, act, to)
}

/// Sums with the bias of each channel.
fn biased(n: &mut NodeContext, sums: ValueId, bias: Option<Tensor>) -> Result<ValueId, Reason> {
    let Some(bias) = bias else { return Ok(sums) };
    let whole: Option<Vec<i64>> = bias.ints().into_iter().map(|x| i64::try_from(x).ok()).collect();
    let channels = n.shape(sums)?.last().copied();
    let whole = whole.filter(|v| Some(v.len()) == channels);
    let whole = whole.ok_or_else(|| format!("its bias {} must be an integer for each channel", bias.ty()))?;
    let bias = n.made("bias", Tensor::vector(whole));
    let dtype = n.ty(sums).dtype;
    let bias = n.cast("bias", bias, dtype)?;
    n.add("biased", sums, bias)
}

/// A bias of 64 or 32 bits, if there is one.
pub(super) fn bias(n: &NodeContext, at: usize) -> Result<Option<Tensor>, Reason> {
    if !n.has_input(at) {
        return Ok(None);
    }
    let bias = n.constant_input(at)?;
    match bias.dtype() {
        DType::I64 | DType::I32 => Ok(Some(bias)),
        _ => Err(format!("its bias must be of type i64 or i32, found {}", bias.ty()).into()),
    }
}

/// The data of operand `i` in double precision, for sums of products.
pub(super) fn operand(n: &mut NodeContext, i: usize, data: ValueId) -> Result<ValueId, Reason> {
    scale(n.input_info(i)?)?;
    n.cast("data", data, DType::F64)
}

/// Weights of 8 bits in double precision, less their zero point, which must be 0.
fn weights(n: &mut NodeContext, weight: &Tensor, zero_point: i32) -> Result<ValueId, Reason> {
    let bytes = weight.as_slice::<i8>().map_err(|e| Reason(format!("its weights: {e}")))?;
    if zero_point != 0 {
        return Err(format!("with data of 16 bits the zero point of its weights must be 0, not {zero_point}").into());
    }
    n.table("weight", weight.shape(), |i| f64::from(bytes[i]))
}

/// A function of each element, as a table of all that it can be.
pub(super) fn table(
    n: &mut NodeContext,
    suffix: &str,
    data: ValueId,
    f: impl Fn(i32) -> i32,
) -> Result<ValueId, Reason> {
    let of = |i: usize| f(i as i32 + RANGE.0).clamp(RANGE.0, RANGE.1) as i16;
    let table = n.table("table", &[1 << 16], of)?;
    let at = n.cast("wide", data, DType::I32)?;
    let first = n.made("first", Tensor::scalar(-RANGE.0));
    let at = n.add("place", at, first)?;
    n.node(suffix, Gather { axis: 0 }, &[table, at])
}

/// The sum or difference of two operands (`AddElementwise` with a shift of 15 bits).
pub(super) fn sum(
    n: &mut NodeContext,
    both: [ValueId; 2],
    is_difference: bool,
    act: Activation,
) -> Result<ValueId, Reason> {
    const SHIFT: i64 = 15;
    let scales = [scale(n.input_info(0)?)?, scale(n.input_info(1)?)?];
    let to = n.result()?;
    let twice = common_scale(scales);
    let out = twice / (f64::from(1u32 << SHIFT) * f64::from(to.scale));
    let shift = whole(n, "left", SHIFT);
    let mut parts = [both[0]; 2];
    for (i, part) in parts.iter_mut().enumerate() {
        let factors = Factors::new(&[f64::from(scales[i]) / twice])?;
        let factors = if i == 1 && is_difference { factors.negative() } else { factors };
        let v = n.cast("wide", both[i], DType::I64)?;
        let v = n.binary("left", BinaryKind::ShiftLeft, v, shift)?;
        *part = factors.of_sums(n, v, 1 << 30)?;
    }
    let v = n.add("sum", parts[0], parts[1])?;
    let v = Factors::new(&[out])?.of_sums(n, v, i32::MAX.into())?;
    clipped(n, v, act.range_in(to, RANGE))
}

/// The product of two operands. `factor` is that of their scales and the result's.
pub(super) fn product(
    n: &mut NodeContext,
    both: [ValueId; 2],
    factor: f64,
    act: Activation,
) -> Result<ValueId, Reason> {
    let to = n.result()?;
    let (a, b) = (n.cast("a", both[0], DType::I64)?, n.cast("b", both[1], DType::I64)?);
    let v = n.binary("product", BinaryKind::Mul, a, b)?;
    let v = Factors::new(&[factor])?.of_sums(n, v, 1 << 30)?;
    clipped(n, v, act.range_in(to, RANGE))
}

/// Data at another scale, in 16 bits.
pub(super) fn rescaled(n: &mut NodeContext, data: ValueId, factor: f64, bounds: (i32, i32)) -> Result<ValueId, Reason> {
    let v = n.cast("wide", data, DType::I64)?;
    let v = Factors::new(&[factor])?.of_sums(n, v, 1 << 16)?;
    clipped(n, v, bounds)
}

/// Floats as integers of 16 bits, ties away from zero.
pub(super) fn of_floats(n: &mut NodeContext, data: ValueId) -> Result<ValueId, Reason> {
    let to = n.result()?.scale;
    let to = n.scalar("scale", to);
    let v = n.binary("div", BinaryKind::Div, data, to)?;
    rounded_away(n, v)
}

/// Floats rounded to integers of 16 bits, ties away from zero.
pub(super) fn rounded_away(n: &mut NodeContext, v: ValueId) -> Result<ValueId, Reason> {
    let (size, sign) = (n.unary("size", UnaryKind::Abs, v)?, n.unary("sign", UnaryKind::Sign, v)?);
    let down = n.unary("down", UnaryKind::Floor, size)?;
    let rest = n.binary("rest", BinaryKind::Sub, size, down)?;
    let half = n.scalar("half", 0.5);
    let up = n.binary("up", BinaryKind::LessEqual, half, rest)?;
    let dtype = n.ty(v).dtype;
    let up = n.cast("up/number", up, dtype)?;
    let size = n.add("rounded", down, up)?;
    let v = n.binary("signed", BinaryKind::Mul, size, sign)?;
    // A cast ends at the bounds of the type.
    n.cast("", v, DType::I16)
}

/// Data within the bounds of an activation.
pub(super) fn bounded(n: &mut NodeContext, v: ValueId, act: Activation, q: PerTensor) -> Result<ValueId, Reason> {
    if act == Activation::None {
        return Ok(v);
    }
    let v = n.cast("wide", v, DType::I64)?;
    clipped(n, v, act.range_in(q, RANGE))
}

/// Integers of 8 or 16 bits at another scale and zero point, one of them of 16 bits.
pub(super) fn between(n: &mut NodeContext, data: ValueId, from: PerTensor, to: PerTensor) -> Result<ValueId, Reason> {
    let v = centered(n, data, from.zero_point)?;
    let v = Factors::new(&[f64::from(from.scale) / f64::from(to.scale)])?.of_sums(n, v, 1 << 16)?;
    placed(n, v, to.zero_point)
}

/// The sum over dimensions times a factor (`QuantizedMeanOrSum`), of 8 or 16 bits. `most` is the greatest sum; for a mean,
/// the factor includes the division by the number of elements.
pub(super) fn scaled_sum(
    n: &mut NodeContext,
    data: ValueId,
    axes: &[usize],
    keep: bool,
    (factors, most): (&Factors, i64),
    zero_points: [i32; 2],
) -> Result<ValueId, Reason> {
    let v = centered(n, data, zero_points[0])?;
    let v = n.reduce("sum", ReduceKind::Sum, axes, keep, v)?;
    let v = factors.of_sums(n, v, most)?;
    placed(n, v, zero_points[1])
}

/// Data less their zero point, in 64 bits.
pub(super) fn centered(n: &mut NodeContext, data: ValueId, zero_point: i32) -> Result<ValueId, Reason> {
    let v = n.cast("wide", data, DType::I64)?;
    let zero = whole(n, "zero_point", zero_point.into());
    n.binary("less", BinaryKind::Sub, v, zero)
}

/// Integers of 64 bits at a zero point, in the result's type.
pub(super) fn placed(n: &mut NodeContext, v: ValueId, zero_point: i32) -> Result<ValueId, Reason> {
    let zero = whole(n, "result_zero_point", zero_point.into());
    let v = n.add("placed", v, zero)?;
    let wide = is_wide(n.output_info()?);
    let (bounds, dtype) = if wide { (RANGE, DType::I16) } else { ((-128, 127), DType::I8) };
    within(n, v, bounds, dtype)
}

/// A function as a table of 513 numbers of 16 bits and what lies between them (`LUTPopulateInt16`, `LUTLookup`).
struct Interpolated(Vec<i16>);

impl Interpolated {
    /// A function from a range to -1 to 1.
    fn new(least: f64, most: f64, f: impl Fn(f64) -> f64) -> Interpolated {
        const STEPS: u32 = 512;
        let step = (most - least) / f64::from(STEPS);
        let scaled = |x: f64| f(x) * 32768.0;
        let bounded = |x: f64| x.clamp(-32768.0, 32767.0) as i16;
        let entry = |i: u32| {
            let x = least + f64::from(i) * step;
            let (own, next) = (scaled(x).round(), scaled(least + f64::from(i + 1) * step));
            // Half of the interpolation's error at the midpoint is taken off.
            let over = f64::midpoint(next, own).round() - scaled(x + step / 2.0).round();
            bounded(own - (over / 2.0).round())
        };
        Interpolated((0..STEPS).map(entry).chain([bounded(scaled(most).round())]).collect())
    }

    fn at(&self, x: i32) -> i32 {
        let place = (256 + (x >> 7)) as usize;
        let (own, next) = (i32::from(self.0[place]), i32::from(self.0[place + 1]));
        own + (((next - own) * (x & 0x7f) + 64) >> 7)
    }
}

/// Softmax over the last dimension (`SoftmaxInt16`).
pub(super) fn softmax(n: &mut NodeContext, data: ValueId, beta: f32) -> Result<ValueId, Reason> {
    let axis = n.ty(data).rank().checked_sub(1).ok_or("its data must have a dimension")?;
    let (from, to) = (scale(n.input_info(0)?)?, n.result()?.scale);
    if to != 1.0 / 32768.0 {
        return Err(format!("its result must have a scale of 2^-15, not {to}").into());
    }
    let factor = f64::from(from) * f64::from(beta) / (10.0 / 65535.0);
    if !factor.is_finite() {
        return Err(format!("its scales give a factor of {factor}, which must be finite").into());
    }
    let (multiplier, shift) = quantize_multiplier(factor);
    let power = Interpolated::new(-10.0, 0.0, f64::exp);
    let powers = n.table("powers", &[1 << 16], |below| {
        let scaled = scale_double(-(below as i32), multiplier, shift);
        power.at(scaled.saturating_add(32767).clamp(RANGE.0, RANGE.1)) as i16
    })?;
    let reciprocal = Interpolated::new(0.0, 1.0, |x| 1.0 / (1.0 + x));
    let reciprocals = n.table("reciprocals", &[1 << 16], |i| reciprocal.at(i as i32 + RANGE.0) as i16)?;
    let wide = n.cast("wide", data, DType::I32)?;
    let most = n.reduce("most", ReduceKind::Max, &[axis], true, wide)?;
    let below = n.binary("below", BinaryKind::Sub, most, wide)?;
    let power = n.node("power", Gather { axis: 0 }, &[powers, below])?;
    let power = n.cast("power/wide", power, DType::I64)?;
    let sum = n.reduce("sum", ReduceKind::Sum, &[axis], true, power)?;
    // How many powers of two, from 2^1 on, the sum has reached.
    let mut column = n.shape(sum)?;
    column.push(1);
    let column = n.reshape("column", sum, &column)?;
    let steps = n.table("steps", &[30], |i| 2i64 << i)?;
    let reached = n.binary("reached", BinaryKind::LessEqual, steps, column)?;
    let reached = n.cast("reached/number", reached, DType::I64)?;
    let log = n.reduce("log", ReduceKind::Sum, &[axis + 1], false, reached)?;
    // Shifts each sum so that its highest bit is bit 16, which then goes away.
    let most_log = whole(n, "most_log", 30);
    let up = n.binary("up", BinaryKind::Sub, most_log, log)?;
    let v = n.binary("up/sum", BinaryKind::ShiftLeft, sum, up)?;
    let (half, bits) = (whole(n, "half", 1 << 13), whole(n, "bits", 14));
    let v = n.add("rounded", v, half)?;
    let v = n.binary("short", BinaryKind::ShiftRight, v, bits)?;
    let first = whole(n, "first", 1 << 16);
    let place = n.binary("place", BinaryKind::Sub, v, first)?;
    let (none, last) = (whole(n, "none", 0), whole(n, "last", 65535));
    let place = n.binary("place/least", BinaryKind::Max, place, none)?;
    let place = n.binary("place/most", BinaryKind::Min, place, last)?;
    let reciprocal = n.node("reciprocal", Gather { axis: 0 }, &[reciprocals, place])?;
    let reciprocal = n.cast("reciprocal/wide", reciprocal, DType::I64)?;
    let v = n.binary("product", BinaryKind::Mul, power, reciprocal)?;
    // Half of 2^log; the greatest element alone makes it 2^14 or more.
    let one = whole(n, "one", 1);
    let half_bits = n.binary("half_bits", BinaryKind::Sub, log, one)?;
    let half = n.binary("half_step", BinaryKind::ShiftLeft, one, half_bits)?;
    let v = n.add("half_step/sum", v, half)?;
    let v = n.binary("shifted", BinaryKind::ShiftRight, v, log)?;
    clipped(n, v, (0, RANGE.1))
}

/// Logistic function and hyperbolic tangent, by one table of the logistic function at steps of a 24th.
pub(super) struct Sigmoid {
    table: Vec<i64>,
    multiplier: i64,
    shift: u32,
}

impl Sigmoid {
    /// `shifts` are those of a scale that is a power of two for which the kernel needs no multiplier.
    ///
    /// # Errors
    /// If the result's scale is not 2^-15.
    pub fn new(from: f32, to: f32, shifts: std::ops::RangeInclusive<i32>) -> Result<Sigmoid, Reason> {
        let log_of = |scale: f32| {
            let log = f64::from(scale).log2();
            Some(log.round() as i32).filter(|rounded| (log - f64::from(*rounded)).abs() < 1e-3)
        };
        if log_of(to) != Some(-15) {
            return Err(format!("its result must have a scale of 2^-15, not {to}").into());
        }
        let at = |i: f64| 65536.0 / (1.0 + (-i / 24.0).exp());
        let entry = |i: i32| {
            let i = f64::from(i);
            // Half of the interpolation's error at the midpoint is added.
            let under = at(i + 0.5) - f64::midpoint(at(i), at(i + 1.0));
            (at(i) + under / 2.0).round().min(65535.0) as i64
        };
        let table = (0..256).map(entry).collect();
        if let Some(shift) = log_of(from).map(|log| 12 + log).filter(|shift| shifts.contains(shift)) {
            return Ok(Sigmoid { table, multiplier: 3 << shift, shift: 0 });
        }
        let (mut multiplier, mut shift) = (f64::from(from) * 4096.0 * 3.0, 0);
        while multiplier <= 32767.0 / 2.0 && shift <= 30 {
            (multiplier, shift) = (multiplier * 2.0, shift + 1);
        }
        Ok(Sigmoid { table, multiplier: multiplier as i64, shift })
    }

    /// The data in the table's steps.
    fn scaled(&self, x: i32) -> i64 {
        let half = if self.shift > 0 { 1 << (self.shift - 1) } else { 0 };
        // The kernel computes it in 32 bits.
        i64::from((i64::from(x).wrapping_mul(self.multiplier).wrapping_add(half) as i32) >> self.shift)
    }

    /// The table between two entries, with as many more bits as there are between them; without them at its end.
    fn between(&self, x: i64, bits: u32) -> Option<i64> {
        let place = usize::try_from(x >> bits).ok().filter(|place| *place < 255)?;
        Some((self.table[place] << bits) + (x & ((1 << bits) - 1)) * (self.table[place + 1] - self.table[place]))
    }

    pub fn logistic(&self, x: i32) -> i32 {
        let x = self.scaled(x);
        let v = self.between(x.abs(), 9).unwrap_or(0x7fff << 10);
        let v = if x >= 0 { v + (1 << 9) } else { (1 << 25) - v + (1 << 9) - 1 };
        (v >> 10) as i32
    }

    pub fn tanh(&self, x: i32) -> i32 {
        let x = self.scaled(x);
        let v = self.between(x.abs(), 8).unwrap_or(0xffff << 8);
        let v = if x >= 0 { v - (1 << 23) + (1 << 7) } else { -v + (1 << 23) + (1 << 7) - 1 };
        (v >> 8) as i32
    }
}
