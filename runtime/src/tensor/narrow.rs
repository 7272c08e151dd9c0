//! Floats of 16 bits and less, as model files store them. Compiled models compute with wider ones.

use serde::{Deserialize, Serialize};

/// A float type of at most 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NarrowFloat {
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a single-precision float.
    Bf16,
    /// OCP 8-bit float with 4 bits of exponent: no infinity, NaN is all ones.
    F8E4m3fn,
    /// 8-bit float with 4 bits of exponent and bias 8: no infinity and no -0, NaN has its bits.
    F8E4m3fnuz,
    /// OCP 8-bit float with 5 bits of exponent, like a short binary16.
    F8E5m2,
    /// 8-bit float with 5 bits of exponent and bias 16: no infinity and no -0, NaN has its bits.
    F8E5m2fnuz,
    /// OCP 8-bit scale: a power of two, or NaN.
    F8E8m0,
    /// OCP 4-bit float: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
    F4E2m1,
}

/// What the greatest exponent or -0 stand for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    /// As in IEEE 754.
    Ieee,
    /// Only all ones are NaN; there is no infinity.
    Ones,
    /// Only the bits of -0 are NaN; there is no infinity.
    NegativeZero,
    /// There is neither NaN nor infinity.
    None,
}

/// Name, bits of exponent and of fraction, bias, special values.
type Row = (&'static str, u32, u32, i32, Special);

impl NarrowFloat {
    /// Every type.
    pub const ALL: [NarrowFloat; 8] = {
        use NarrowFloat::*;
        [F16, Bf16, F8E4m3fn, F8E4m3fnuz, F8E5m2, F8E5m2fnuz, F8E8m0, F4E2m1]
    };

    fn row(self) -> Row {
        match self {
            NarrowFloat::F16 => ("f16", 5, 10, 15, Special::Ieee),
            NarrowFloat::Bf16 => ("bf16", 8, 7, 127, Special::Ieee),
            NarrowFloat::F8E4m3fn => ("f8e4m3fn", 4, 3, 7, Special::Ones),
            NarrowFloat::F8E4m3fnuz => ("f8e4m3fnuz", 4, 3, 8, Special::NegativeZero),
            NarrowFloat::F8E5m2 => ("f8e5m2", 5, 2, 15, Special::Ieee),
            NarrowFloat::F8E5m2fnuz => ("f8e5m2fnuz", 5, 2, 16, Special::NegativeZero),
            NarrowFloat::F8E8m0 => ("f8e8m0", 8, 0, 127, Special::Ones),
            NarrowFloat::F4E2m1 => ("f4e2m1", 2, 1, 1, Special::None),
        }
    }

    /// Its name in messages and files.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// The type with this name.
    pub fn from_name(name: &str) -> Option<NarrowFloat> {
        NarrowFloat::ALL.into_iter().find(|float| float.name() == name)
    }

    /// Bytes of an element in an array; 4 bits have a byte of their own.
    pub fn size(self) -> usize {
        if matches!(self, NarrowFloat::F16 | NarrowFloat::Bf16) { 2 } else { 1 }
    }

    /// Bits of the fraction.
    pub fn fraction_bits(self) -> u32 {
        self.row().2
    }

    /// The exponent of the least normal number.
    pub fn least_exponent(self) -> i32 {
        1 - self.row().3
    }

    /// Whether there is an infinity.
    pub fn has_infinity(self) -> bool {
        self.row().4 == Special::Ieee
    }

    /// Whether there is a NaN. Without one there is no infinity either.
    pub fn has_nan(self) -> bool {
        self.row().4 != Special::None
    }

    /// Whether there is a -0.
    pub fn has_negative_zero(self) -> bool {
        self.row().4 != Special::NegativeZero
    }

    /// Whether it is only the exponent of a float: all numbers are powers of two, and there is no zero.
    pub fn is_scale(self) -> bool {
        self == NarrowFloat::F8E8m0
    }

    /// The greatest number.
    pub fn greatest(self) -> f32 {
        let (_, exponent, fraction, _, special) = self.row();
        let magnitude = (1u16 << (exponent + fraction)) - 1;
        let bits = match special {
            Special::Ieee => magnitude - (1 << fraction),
            Special::Ones => magnitude - 1,
            Special::NegativeZero | Special::None => magnitude,
        };
        // A scale has no sign, so all ones of its 8 bits are NaN.
        self.widen(bits)
    }

    /// The number with these bits.
    pub fn widen(self, bits: u16) -> f32 {
        // Files can have many of these.
        match self {
            NarrowFloat::F16 => return half::f16::from_bits(bits).to_f32(),
            NarrowFloat::Bf16 => return half::bf16::from_bits(bits).to_f32(),
            _ => {}
        }
        let (_, exponent_bits, fraction_bits, bias, special) = self.row();
        let magnitude = bits & ((1 << (exponent_bits + fraction_bits)) - 1);
        let ones = (1 << (exponent_bits + fraction_bits)) - 1;
        let (exponent, fraction) = (i32::from(magnitude >> fraction_bits), magnitude & ((1 << fraction_bits) - 1));
        let negative = !self.is_scale() && bits >> (exponent_bits + fraction_bits) & 1 == 1;
        let sign = if negative { -1.0 } else { 1.0 };
        let top = exponent == (1 << exponent_bits) - 1;
        let value = match special {
            Special::Ieee if top && fraction == 0 => f64::INFINITY,
            Special::Ieee if top => f64::NAN,
            Special::Ones if magnitude == ones => f64::NAN,
            Special::NegativeZero if negative && magnitude == 0 => f64::NAN,
            _ if self.is_scale() => 2f64.powi(exponent - bias),
            _ if exponent == 0 => f64::from(fraction) * 2f64.powi(1 - bias - fraction_bits as i32),
            _ => {
                let whole = f64::from(fraction) / f64::from(1u32 << fraction_bits) + 1.0;
                whole * 2f64.powi(exponent - bias)
            }
        };
        (sign * value) as f32
    }

    /// The nearest number of the type, ties to even; a scale is the next power of two that is not less. A number beyond
    /// the greatest, such as infinity, becomes the greatest with `saturate`, and else infinity or, without one, NaN.
    /// Without a NaN, NaN becomes -0.
    pub fn round(self, x: f32, saturate: bool) -> f32 {
        if x.is_nan() {
            return if self.has_nan() { x } else { -0.0 };
        }
        let greatest = self.greatest();
        let saturate = saturate || !self.has_nan();
        let y = if self.is_scale() { next_power_of_two(x) } else { self.on_grid(x) };
        let y = match y.abs() <= greatest {
            true => y,
            false if saturate => greatest.copysign(y),
            false if self.has_infinity() => f32::INFINITY.copysign(y),
            false => f32::NAN,
        };
        if y == 0.0 && !self.has_negative_zero() { 0.0 } else { y }
    }

    /// The nearest multiple of the distance of the type's numbers around `x`.
    fn on_grid(self, x: f32) -> f32 {
        if x == 0.0 || x.is_infinite() {
            return x;
        }
        let exponent = (x.abs().to_bits() >> 23).cast_signed() - 127;
        let step = 2f64.powi(exponent.max(self.least_exponent()) - self.fraction_bits() as i32);
        ((f64::from(x) / step).round_ties_even() * step) as f32
    }

    /// The bits of the nearest number, as [`NarrowFloat::round`] finds it without saturation.
    pub fn narrow(self, x: f32) -> u16 {
        let (_, exponent_bits, fraction_bits, bias, special) = self.row();
        let (all, y) = (exponent_bits + fraction_bits, self.round(x, false));
        let sign = if self.is_scale() { 0 } else { u16::from(y.is_sign_negative()) << all };
        let top = ((1u16 << exponent_bits) - 1) << fraction_bits;
        if y.is_nan() {
            return match special {
                Special::Ieee => sign | top | (1 << (fraction_bits - 1)),
                Special::Ones => sign | ((1 << all) - 1),
                Special::NegativeZero => 1 << all,
                // Rounding leaves none.
                Special::None => sign,
            };
        }
        if y.is_infinite() {
            return sign | top;
        }
        let exponent = ((y.abs().to_bits() >> 23).cast_signed() - 127).max(self.least_exponent());
        if self.is_scale() {
            // The least scale is no normal float.
            return if y.abs() < f32::MIN_POSITIVE { 0 } else { (exponent + bias) as u16 };
        }
        let steps = (f64::from(y.abs()) / 2f64.powi(exponent - fraction_bits as i32)) as u16;
        // Numbers below the least normal one have an exponent of 0.
        sign | if steps >> fraction_bits == 0 {
            steps
        } else {
            (((exponent + bias) as u16) << fraction_bits) + (steps - (1 << fraction_bits))
        }
    }
}

/// The least power of two that is not less than `x`; the least scale for numbers up to it.
fn next_power_of_two(x: f32) -> f32 {
    const LEAST: f32 = f32::MIN_POSITIVE / 2.0;
    if x <= LEAST { LEAST } else { f32::from_bits((x.to_bits() + 0x7f_ffff) & 0x7f80_0000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_its_bits() {
        for float in NarrowFloat::ALL {
            let (_, exponent, fraction, ..) = float.row();
            let signs = if float.is_scale() { 0 } else { 1 };
            for bits in 0..1u32 << (exponent + fraction + signs) {
                let bits = bits as u16;
                let x = float.widen(bits);
                let again = float.narrow(x);
                assert!(again == bits || x.is_nan() && float.widen(again).is_nan(), "{}: {bits:#x} {x}", float.name());
            }
        }
    }

    #[test]
    fn halves_are_those_of_other_libraries() {
        let mut bits = 1u32;
        for _ in 0..100_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let x = f32::from_bits(bits);
            let [half, brain] = [half::f16::from_f32(x).to_f32(), half::bf16::from_f32(x).to_f32()];
            for (float, want) in [(NarrowFloat::F16, half), (NarrowFloat::Bf16, brain)] {
                let got = float.round(x, false);
                assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{x}: {got} {want}");
            }
        }
    }

    #[test]
    fn numbers_out_of_range_become_what_the_standards_say() {
        let greatest = NarrowFloat::ALL.map(NarrowFloat::greatest);
        assert_eq!(greatest, [65504.0, 3.389_531_4e38, 448.0, 240.0, 57344.0, 57344.0, 2f32.powi(127), 6.0]);
        let fnuz = NarrowFloat::F8E4m3fnuz;
        assert_eq!((fnuz.round(f32::INFINITY, true), fnuz.round(-0.0, true).to_bits()), (240.0, 0));
        let four = NarrowFloat::F4E2m1;
        assert_eq!((four.round(9.0, false), four.round(f32::NAN, false).to_bits()), (6.0, (-0f32).to_bits()));
        assert!(fnuz.round(f32::INFINITY, false).is_nan() && fnuz.round(300.0, false).is_nan());
        assert_eq!(NarrowFloat::F8E5m2.round(1e9, false), f32::INFINITY);
        assert_eq!(NarrowFloat::F8E4m3fn.round(464.0, false), 448.0, "ties go to even");
        assert!(NarrowFloat::F8E4m3fn.round(464.1, false).is_nan());
        assert_eq!((NarrowFloat::F8E8m0.round(3.0, true), NarrowFloat::F8E8m0.round(4.0, true)), (4.0, 4.0));
    }
}
