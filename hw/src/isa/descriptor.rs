//! The scalars of vector instructions.

use super::DESCRIPTOR_BYTES;
use crate::num::{Qadd, QaddOperand, Requant, Rounding};

macro_rules! descriptor {
    ($($at:literal $field:ident: $ty:ty, $doc:literal;)*) => {
        /// The scalars of a vector instruction, consecutive little-endian bytes from the start of a param entry.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct Descriptor { $(#[doc = $doc] pub $field: $ty,)* }

        /// Name, first byte, bits and description of a descriptor's fields.
        pub const DESCRIPTOR_FIELDS: &[(&str, usize, u32, &str)] =
            &[$((stringify!($field), $at, <$ty>::BITS, $doc)),*];

        impl Descriptor {
            /// The descriptor's bytes in memory.
            pub fn to_bytes(&self) -> [u8; DESCRIPTOR_BYTES] {
                let mut bytes = [0; DESCRIPTOR_BYTES];
                $(bytes[$at..$at + size_of::<$ty>()].copy_from_slice(&self.$field.to_le_bytes());)*
                bytes
            }

            /// Reads a descriptor from its bytes in memory.
            pub fn from_bytes(bytes: &[u8; DESCRIPTOR_BYTES]) -> Descriptor {
                let mut d = Descriptor::default();
                $({
                    let mut raw = [0; size_of::<$ty>()];
                    raw.copy_from_slice(&bytes[$at..$at + size_of::<$ty>()]);
                    d.$field = <$ty>::from_le_bytes(raw);
                })*
                d
            }
        }
    };
}

descriptor! {
    0 scalar: i32, "second operand of a simple operation with b = scalar";
    4 lo: i32, "lower bound of the result; clip, requant, mul, qadd";
    8 hi: i32, "upper bound of the result; clip, requant, mul, qadd";
    12 zero_point: i32, "added to the result of a deep operation before the clamp";
    16 multiplier_a: i32, "qadd: scale of the first operand";
    20 multiplier_b: i32, "qadd: scale of the second operand";
    24 multiplier: i32, "qadd: scale of the sum; mul: scale of the product";
    28 shift_a: i8, "qadd: shift of the first operand";
    29 shift_b: i8, "qadd: shift of the second operand";
    30 shift: i8, "qadd: shift of the sum; mul: shift of the product";
    31 left_shift: u8, "qadd: initial left shift of both operands, low five bits";
    32 zero_a: i8, "qadd, mul, mac: zero point of the first operand";
    33 zero_b: i8, "qadd, mul, mac: zero point of the second operand";
    34 reserved: u16, "zero";
}

impl Descriptor {
    /// The quantized addition that the descriptor describes.
    pub fn qadd(&self) -> Qadd {
        Qadd {
            a: QaddOperand { zero_point: self.zero_a.into(), multiplier: self.multiplier_a, shift: self.shift_a },
            b: QaddOperand { zero_point: self.zero_b.into(), multiplier: self.multiplier_b, shift: self.shift_b },
            out: QaddOperand { zero_point: self.zero_point, multiplier: self.multiplier, shift: self.shift },
            left_shift: self.left_shift,
            lo: self.lo,
            hi: self.hi,
        }
    }

    /// The requantization of a product of two operands.
    pub fn product(&self, mode: Rounding) -> Requant {
        Requant {
            bias: 0,
            multiplier: self.multiplier,
            shift: self.shift,
            zero_point: self.zero_point,
            lo: self.lo,
            hi: self.hi,
            mode,
        }
    }
}
