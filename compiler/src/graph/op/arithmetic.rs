//! Arithmetic of each element type, for the evaluators.

use super::{BinaryKind, extreme};
use crate::graph::Element;

/// The functions of two numbers of a type.
pub(super) trait Arithmetic: Element {
    /// The least value; of floats, minus infinity.
    const LEAST: Self;
    /// The greatest value; of floats, infinity.
    const GREATEST: Self;

    /// The sum; integers wrap.
    fn sum(self, other: Self) -> Self;

    /// The function of the operator `binary`.
    fn binary(kind: BinaryKind, a: Self, b: Self) -> Self;
}

macro_rules! floats {
    ($($t:ty)*) => {
        $(impl Arithmetic for $t {
            const LEAST: $t = <$t>::NEG_INFINITY;
            const GREATEST: $t = <$t>::INFINITY;

            fn sum(self, other: $t) -> $t {
                self + other
            }

            fn binary(kind: BinaryKind, a: $t, b: $t) -> $t {
                match kind {
                    BinaryKind::Sub => a - b,
                    BinaryKind::Mul => a * b,
                    BinaryKind::Div => a / b,
                    BinaryKind::Min => extreme::least(a, b),
                    BinaryKind::Max => extreme::greatest(a, b),
                    BinaryKind::Pow => a.powf(b),
                    _ => a,
                }
            }
        })*
    };
}

macro_rules! integers {
    ($($t:ty)*) => {
        $(impl Arithmetic for $t {
            const LEAST: $t = <$t>::MIN;
            const GREATEST: $t = <$t>::MAX;

            fn sum(self, other: $t) -> $t {
                self.wrapping_add(other)
            }

            fn binary(kind: BinaryKind, a: $t, b: $t) -> $t {
                match kind {
                    BinaryKind::Sub => a.wrapping_sub(b),
                    BinaryKind::Mul => a.wrapping_mul(b),
                    BinaryKind::Div | BinaryKind::Mod if b == 0 => 0,
                    BinaryKind::Div => a.wrapping_div(b),
                    BinaryKind::Mod => {
                        let r = a.wrapping_rem(b);
                        #[allow(unused_comparisons, reason = "also for types without a sign")]
                        let apart = (r < 0) != (b < 0);
                        if r != 0 && apart { r.wrapping_add(b) } else { r }
                    }
                    BinaryKind::Min => a.min(b),
                    BinaryKind::Max => a.max(b),
                    BinaryKind::And => a & b,
                    BinaryKind::Or => a | b,
                    BinaryKind::Xor => a ^ b,
                    BinaryKind::ShiftLeft => a.wrapping_shl(b as u32),
                    BinaryKind::ShiftRight => a.wrapping_shr(b as u32),
                    _ => a,
                }
            }
        })*
    };
}

floats! { f32 f64 }
integers! { i8 u8 i16 u16 i32 u32 i64 u64 }

// Operators on numbers refuse booleans before they compute.
impl Arithmetic for bool {
    const LEAST: bool = false;
    const GREATEST: bool = true;

    fn sum(self, other: bool) -> bool {
        self || other
    }

    fn binary(kind: BinaryKind, a: bool, b: bool) -> bool {
        match kind {
            BinaryKind::And => a && b,
            BinaryKind::Or => a || b,
            _ => a != b,
        }
    }
}
