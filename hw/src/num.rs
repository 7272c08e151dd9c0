//! The integer arithmetic of a layer, bit for bit.
//!
//! Everything that computes with quantized values (evaluator, simulators, RTL, CPU and GPU code) follows this module,
//! which uses nothing else of the crate. The formulas are those of TensorFlow Lite's reference kernels (`common.h`,
//! gemmlowp's `fixedpoint.h`), written so that hardware can share one multiplier and one shifter between both modes.

/// How a 32 x 32 bit product is rounded back to 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rounding {
    /// TFLite's rounding-doubling high multiply, then a rounding shift: two roundings.
    ///
    /// A positive shift multiplies by a power of two before the product, wrapping as 32-bit arithmetic does; a negative
    /// shift divides afterwards, ties away from zero.
    Double,
    /// One rounding, half up, after the exact 64-bit product: `(a * multiplier + half) >> (31 + shift)`.
    ///
    /// The shift runs from 0 to 31 and is the right shift beyond 31 bits.
    Single,
}

/// The high 32 bits of twice the product, rounded half up; saturates if both factors are `i32::MIN`.
///
/// Equal to gemmlowp's `SaturatingRoundingDoublingHighMul` on all inputs.
pub const fn doubling_high_mul(a: i32, b: i32) -> i32 {
    if a == i32::MIN && b == i32::MIN {
        return i32::MAX;
    }
    ((a as i64 * b as i64 + (1 << 30)) >> 31) as i32
}

/// `x / 2^exponent` rounded to nearest, ties away from zero (gemmlowp's `RoundingDivideByPOT`).
///
/// `exponent` is in `0..=31`.
pub const fn rounding_divide_by_pot(x: i32, exponent: u32) -> i32 {
    if exponent == 0 {
        return x;
    }
    let half = 1i64 << (exponent - 1);
    ((x as i64 + half - (x < 0) as i64) >> exponent) as i32
}

/// `x * multiplier * 2^(shift - 31)` in *double* mode (TFLite's `MultiplyByQuantizedMultiplier`).
///
/// `shift` is clamped to `-31..=31`.
pub const fn scale_double(x: i32, multiplier: i32, shift: i8) -> i32 {
    let left = if shift > 31 {
        31
    } else if shift > 0 {
        shift as u32
    } else {
        0
    };
    let right = if shift < -31 {
        31
    } else if shift < 0 {
        -(shift as i32) as u32
    } else {
        0
    };
    rounding_divide_by_pot(doubling_high_mul(x.wrapping_shl(left), multiplier), right)
}

/// `x * multiplier / 2^(31 + shift)` in *single* mode: exact product, one rounding, half up.
///
/// `shift` is clamped to `0..=31`. Only one product has a result beyond 32 bits, `i32::MIN` squared with shift 0; it
/// saturates.
pub const fn scale_single(x: i32, multiplier: i32, shift: i8) -> i32 {
    let right = if shift > 31 {
        31
    } else if shift > 0 {
        shift as u32
    } else {
        0
    };
    let product = x as i64 * multiplier as i64;
    let rounded = (product + (1i64 << (30 + right))) >> (31 + right);
    if rounded > i32::MAX as i64 { i32::MAX } else { rounded as i32 }
}

/// Scales `x` in rounding mode `mode`.
pub const fn scale(x: i32, multiplier: i32, shift: i8, mode: Rounding) -> i32 {
    match mode {
        Rounding::Double => scale_double(x, multiplier, shift),
        Rounding::Single => scale_single(x, multiplier, shift),
    }
}

/// Adds the output's zero point without overflow and clamps.
pub const fn offset_clamp(x: i32, zero_point: i32, lo: i32, hi: i32) -> i32 {
    let v = x as i64 + zero_point as i64;
    // The lower bound is applied last, so that lo > hi still has one meaning in every implementation.
    let v = if v > hi as i64 { hi as i64 } else { v };
    if v < lo as i64 { lo } else { v as i32 }
}

/// Parameters that turn an accumulator into the next layer's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Requant {
    /// Added to the accumulator, wrapping.
    pub bias: i32,
    /// Fixed-point factor, a fraction of 2^31.
    pub multiplier: i32,
    /// Right or left shift; see [`Rounding`] for its sign.
    pub shift: i8,
    /// Added after scaling.
    pub zero_point: i32,
    /// Least result.
    pub lo: i32,
    /// Greatest result.
    pub hi: i32,
    /// Rounding mode.
    pub mode: Rounding,
}

/// Bias, scale, zero point and clamp: the one requantization that every implementation shares.
pub const fn requantize(acc: i32, r: &Requant) -> i32 {
    offset_clamp(scale(acc.wrapping_add(r.bias), r.multiplier, r.shift, r.mode), r.zero_point, r.lo, r.hi)
}

/// A value's zero point, multiplier and shift on its way into or out of a quantized addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QaddOperand {
    /// Subtracted from an input, added to the output.
    pub zero_point: i32,
    /// Fixed-point factor, a fraction of 2^31.
    pub multiplier: i32,
    /// *Double* mode's shift.
    pub shift: i8,
}

/// The three scales of a quantized addition and its clamp (TFLite's `AddElementwise`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Qadd {
    /// First operand.
    pub a: QaddOperand,
    /// Second operand.
    pub b: QaddOperand,
    /// Output.
    pub out: QaddOperand,
    /// Both inputs are multiplied by two to this power before they are scaled; TFLite uses 20 for 8 bits.
    pub left_shift: u8,
    /// Least result.
    pub lo: i32,
    /// Greatest result.
    pub hi: i32,
}

/// Quantized addition: scales both operands to a common scale, adds them, and scales the sum to the output's. *Double*
/// mode, wrapping sums.
pub const fn quantized_add(a: i32, b: i32, q: &Qadd) -> i32 {
    let left = (q.left_shift & 31) as u32;
    let sa = scale_double(a.wrapping_sub(q.a.zero_point).wrapping_shl(left), q.a.multiplier, q.a.shift);
    let sb = scale_double(b.wrapping_sub(q.b.zero_point).wrapping_shl(left), q.b.multiplier, q.b.shift);
    let sum = scale_double(sa.wrapping_add(sb), q.out.multiplier, q.out.shift);
    offset_clamp(sum, q.out.zero_point, q.lo, q.hi)
}

/// Square of the difference of two quantized values. Scales both operands to a common scale as in [`quantized_add`],
/// subtracts, squares, and scales the square to the output's scale. *Double* mode, wrapping.
pub const fn quantized_squared_difference(a: i32, b: i32, q: &Qadd) -> i32 {
    let left = (q.left_shift & 31) as u32;
    let sa = scale_double(a.wrapping_sub(q.a.zero_point).wrapping_shl(left), q.a.multiplier, q.a.shift);
    let sb = scale_double(b.wrapping_sub(q.b.zero_point).wrapping_shl(left), q.b.multiplier, q.b.shift);
    let d = sa.wrapping_sub(sb);
    offset_clamp(scale_double(d.wrapping_mul(d), q.out.multiplier, q.out.shift), q.out.zero_point, q.lo, q.hi)
}

/// Quantized multiplication: `(a - za) * (b - zb)`, wrapping, then [`requantize`]. Callers set `r.bias` to 0.
pub const fn quantized_mul(a: i32, b: i32, za: i32, zb: i32, r: &Requant) -> i32 {
    requantize(a.wrapping_sub(za).wrapping_mul(b.wrapping_sub(zb)), r)
}

/// Splits a real factor into multiplier and shift for *double* mode (TFLite's `QuantizeMultiplier`).
///
/// `real` is finite and not negative; the multiplier lies in `[2^30, 2^31)` or is 0 with shift 0.
pub fn quantize_multiplier(real: f64) -> (i32, i8) {
    if real == 0.0 {
        return (0, 0);
    }
    let (fraction, exponent) = frexp(real);
    let mut q = (fraction * (1i64 << 31) as f64).round() as i64;
    let mut shift = exponent;
    if q == 1i64 << 31 {
        q /= 2;
        shift += 1;
    }
    if shift < -31 {
        return (0, 0);
    }
    if shift > 30 {
        return (i32::MAX, 30);
    }
    (q as i32, shift as i8)
}

/// From this factor on, every integer but 0 saturates 8 bits, for any zero point.
pub const MOST_BYTE_FACTOR: f64 = 256.0;

/// [`quantize_multiplier`] of a factor whose result is held in 8 bits.
///
/// Factors above [`MOST_BYTE_FACTOR`] give the same results as [`MOST_BYTE_FACTOR`] itself. Its shift of 9 keeps
/// integers of 22 bits within 32; a larger factor's shift would not.
pub fn byte_multiplier(real: f64) -> (i32, i8) {
    quantize_multiplier(real.min(MOST_BYTE_FACTOR))
}

/// Finds a multiplier that gives `(x as f64 * real).round()`, ties away from zero, for each `x` with magnitude up to
/// `bound`, as far as 8-bit results can tell.
///
/// The multiplier is applied with one rounding: by [`scale_single`] if `shift`, which has *double* mode's sign, is 0 or
/// negative; by [`scale_double`] if it is 0 or positive and `x * 2^shift` fits 32 bits. Rounding half up differs from
/// rounding away from zero at negative ties, and a multiplier slightly above the factor makes these ties round right.
/// Returns the qualifying multiplier nearest to `real`, or `None` if no multiplier rounds all ties and all other values
/// up to `bound` right.
pub fn away_multiplier(real: f64, shift: i8, bound: i64) -> Option<i32> {
    let bits = 31 - i32::from(shift);
    let (mut least, mut most) = (0i128, i128::from(i32::MAX));
    for k in 1..=255i64 {
        // The result is `k` or more from `first` up, and `-k` or less from `-first` down.
        let first = first_rounded_to(real, k, bound);
        let half = i128::from(2 * k - 1) << (bits - 1);
        if first > 1 {
            most = most.min((half - 1) / i128::from(first - 1));
        }
        if first > bound {
            break;
        }
        least = least.max(half / i128::from(first) + 1);
    }
    let nearest = (real * (1i64 << bits) as f64).round() as i128;
    (least <= most).then(|| nearest.clamp(least, most) as i32)
}

/// The least positive integer whose product with `real` rounds, ties away from zero, to `k` or more; `bound + 1` if
/// none up to `bound` does.
pub fn first_rounded_to(real: f64, k: i64, bound: i64) -> i64 {
    let reaches = |x: i64| (x as f64 * real).round() >= k as f64;
    let mut x = (((k as f64 - 0.5) / real).ceil() as i64).clamp(1, bound.saturating_add(1));
    while x > 1 && reaches(x - 1) {
        x -= 1;
    }
    while x <= bound && !reaches(x) {
        x += 1;
    }
    x
}

/// The multiplier that, in *single* mode with shift 0, equals division by `count`, ties away from zero.
///
/// Checked for every `count` from 2 to 2,952 over all sums of that many 8-bit values; a count of 1 needs no division.
pub const fn average_multiplier(count: u32) -> i32 {
    ((1u64 << 31) / count as u64 + 1) as i32
}

/// `x = fraction * 2^exponent` with the fraction in `[0.5, 1)`; `x` is finite and not zero.
fn frexp(x: f64) -> (f64, i32) {
    let bits = x.to_bits();
    let biased = ((bits >> 52) & 0x7ff) as i32;
    if biased == 0 {
        let (f, e) = frexp(x * (1u64 << 54) as f64);
        return (f, e - 54);
    }
    (f64::from_bits((bits & !(0x7ff << 52)) | (1022 << 52)), biased - 1022)
}

#[cfg(test)]
mod tests;
