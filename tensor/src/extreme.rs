//! Minimum and maximum with one rule for NaN: if an operand is NaN, the result is NaN.
//!
//! The results do not depend on the order of the operands: of two zeros with different signs, the result is -0.

/// True if `b` wins as the maximum: it is greater than `a`, or only `b` is NaN.
#[inline]
pub fn above<T: PartialOrd>(a: T, b: T) -> bool {
    b > a || is_nan(&b) && !is_nan(&a)
}

/// True if `b` wins as the minimum: it is less than `a`, or only `b` is NaN.
#[inline]
pub fn below<T: PartialOrd>(a: T, b: T) -> bool {
    b < a || is_nan(&b) && !is_nan(&a)
}

/// A float type.
pub trait Float: PartialOrd + Copy {
    /// The number whose bits are those of either.
    fn either(a: Self, b: Self) -> Self;
}

impl Float for f32 {
    fn either(a: f32, b: f32) -> f32 {
        f32::from_bits(a.to_bits() | b.to_bits())
    }
}

impl Float for f64 {
    fn either(a: f64, b: f64) -> f64 {
        f64::from_bits(a.to_bits() | b.to_bits())
    }
}

/// The greater of two numbers.
#[inline]
pub fn greatest<T: Float>(a: T, b: T) -> T {
    join(a, b, above(a, b))
}

/// The lesser of two numbers.
#[inline]
pub fn least<T: Float>(a: T, b: T) -> T {
    join(a, b, below(a, b))
}

/// `b` if `second`, else `a`. Equal numbers have equal bits except for the sign of 0.
fn join<T: Float>(a: T, b: T, second: bool) -> T {
    match second {
        true => b,
        false if a == b => T::either(a, b),
        false => a,
    }
}

fn is_nan<T: PartialOrd>(x: &T) -> bool {
    x.partial_cmp(x).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_nan_nor_zeros_go_by_the_order() {
        let nan = f32::NAN;
        for (a, b) in [(nan, 1.0), (1.0, nan), (nan, f32::INFINITY), (f32::NEG_INFINITY, nan), (nan, nan)] {
            assert!(greatest(a, b).is_nan() && least(a, b).is_nan(), "{a} and {b}");
        }
        assert_eq!((greatest(1.0, 2.0), least(1.0, 2.0), greatest(3.0, -3.0), least(3.0, -3.0)), (2.0, 1.0, 3.0, -3.0));
        for (a, b) in [(0.0, -0.0), (-0.0, 0.0)] {
            assert!(greatest::<f32>(a, b).is_sign_negative() && least::<f32>(a, b).is_sign_negative());
        }
        assert!(greatest(0.0f32, 0.0).is_sign_positive() && least(0.0f32, 0.0).is_sign_positive());
        assert!(!above(nan, nan) && !below(nan, nan), "the first NaN stays");
    }
}
