//! The operations of the vector unit and the sources of their operands.

use crate::config::{HwConfig, Mem};

/// Bytes of a lookup table.
pub const TABLE_BYTES: usize = 256;
/// For `mac`, index e x this + r means row r of param entry e.
pub const TAP_STRIDE: u32 = 16;

macro_rules! vector_ops {
    ($($(#[doc = $doc:literal])+
       $name:ident = $code:literal, $text:literal $(if $parameter:ident)?, $deep:literal, $simple:expr;)*) => {
        /// An operation of the vector unit.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum VecOp { $($(#[doc = $doc])+ $name = $code,)* }

        impl VecOp {
            /// All operations in code order.
            pub const ALL: &[VecOp] = &[$(VecOp::$name),*];

            /// The name in assembly text.
            pub fn name(self) -> &'static str {
                match self { $(VecOp::$name => $text,)* }
            }

            /// The operation's description for the manual.
            pub fn doc(self) -> &'static str {
                match self { $(VecOp::$name => concat!($($doc),+),)* }
            }

            /// The parameter that decides whether the operation is built, and its value; `None` if it is always built.
            pub fn parameter(self, config: &HwConfig) -> Option<(&'static str, bool)> {
                match self {
                    $(VecOp::$name => [$((stringify!($parameter), config.$parameter))?].first().copied(),)*
                }
            }

            /// Whether it runs on the requantize lanes, without forwarding.
            pub fn is_deep(self) -> bool {
                match self { $(VecOp::$name => $deep,)* }
            }

            /// The function of a simple operation, without a descriptor's clamp: two 32-bit operands to one, wrapping.
            /// [`crate::num`] defines deep operations and `clip`.
            #[inline]
            pub fn simple(self) -> Option<fn(i32, i32) -> i32> {
                match self { $(VecOp::$name => $simple,)* }
            }
        }
    };
}

// A row: code, name in text, the parameter that builds it if it is optional, whether it is deep, and its function if it
// is simple and reads no descriptor. The encoder, the text form, the RTL packages, the functional simulator, the random
// programs and the manual are derived from these rows.
vector_ops! {
    /// First operand.
    Move = 0, "move", false, Some(|a, _| a);
    /// Smaller operand.
    Min = 1, "min", false, Some(|a, b| a.min(b));
    /// Larger operand.
    Max = 2, "max", false, Some(|a, b| a.max(b));
    /// Sum, wrapping.
    Add = 3, "add", false, Some(|a, b| a.wrapping_add(b));
    /// Difference, wrapping.
    Sub = 4, "sub", false, Some(|a, b| a.wrapping_sub(b));
    /// Arithmetic shift right by the low five bits of `b`.
    Shr = 5, "shr" if vector_shift, false, Some(|a, b| a >> (b & 31));
    /// Shift left by the low five bits of `b`.
    Shl = 6, "shl" if vector_shift, false, Some(|a, b| a << (b & 31));
    /// First operand, clamped to the descriptor's bounds.
    Clip = 7, "clip", false, None;
    /// Adds the bias, multiplies, rounds, shifts, adds the zero point and clamps; `b` is param, zero point and bounds
    /// come from the descriptor.
    Requant = 8, "requant", true, None;
    /// Quantized product of two int8 rows by the descriptor's scales.
    Mul = 9, "mul" if vector_mul, true, None;
    /// Quantized sum of two int8 rows by the descriptor's scales, three passes.
    Qadd = 10, "qadd" if vector_qadd, true, None;
    /// dst plus the product of `a` and a row of param, each less its zero point; wrapping.
    Mac = 16, "mac" if vector_mac, false, None;
    /// Byte of the descriptor's table, sign-extended; the index is the low eight bits of `a`, unsigned.
    Lut = 17, "lut" if vector_lut, false, None;
}

impl VecOp {
    /// Mask of the operations for which `holds` is true; an operation's bit is its code.
    pub fn mask(holds: impl Fn(VecOp) -> bool) -> u32 {
        VecOp::ALL.iter().filter(|op| holds(**op)).map(|op| 1 << *op as u32).sum()
    }

    /// Whether the configuration builds the operation.
    pub fn is_built(self, config: &HwConfig) -> bool {
        self.parameter(config).is_none_or(|(_, built)| built)
    }

    /// Whether the operation has a second operand.
    pub fn has_b(self) -> bool {
        !matches!(self, VecOp::Move | VecOp::Clip | VecOp::Lut)
    }

    /// Whether the operation with this second operand reads the descriptor before its first micro-op.
    pub fn needs_descriptor(self, b: VecSrc) -> bool {
        self.is_deep() || matches!(self, VecOp::Clip | VecOp::Mac | VecOp::Lut) || b == VecSrc::Scalar
    }

    /// Whether the destination row is also an operand.
    pub fn reads_dst(self) -> bool {
        self == VecOp::Mac
    }

    /// The param entry that index `at` of a second operand in param refers to, and for `mac` its row, which can be past
    /// the last.
    pub fn param_entry(self, at: u32) -> (u32, u32) {
        if self == VecOp::Mac { (at / TAP_STRIDE, at % TAP_STRIDE) } else { (at, 0) }
    }

    /// Whether the instruction can choose the rounding mode.
    pub fn has_mode(self) -> bool {
        matches!(self, VecOp::Requant | VecOp::Mul)
    }

    /// Passes over the lanes for each slice of a row.
    pub fn passes(self) -> u32 {
        if self == VecOp::Qadd { 3 } else { 1 }
    }
}

/// Where results go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum VecDst {
    /// 32-bit rows of acc.
    Acc = 0,
    /// int8 rows of out, saturated.
    Out = 1,
    /// int8 rows of inp, saturated; only if block_in equals block_out.
    Inp = 2,
}

impl VecDst {
    /// All in code order.
    pub const ALL: [VecDst; 3] = [VecDst::Acc, VecDst::Out, VecDst::Inp];

    /// The memory that results go to.
    pub fn mem(self) -> Mem {
        match self {
            VecDst::Acc => Mem::Acc,
            VecDst::Out => Mem::Out,
            VecDst::Inp => Mem::Inp,
        }
    }
}

/// Where an operand comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum VecSrc {
    /// 32-bit rows of acc.
    Acc = 0,
    /// int8 rows of out.
    Out = 1,
    /// int8 rows of inp; only if block_in equals block_out.
    Inp = 2,
    /// A param entry: the 32-bit bias of each channel, or all of bias, multiplier and shift for `requant`.
    Param = 3,
    /// The descriptor's scalar.
    Scalar = 4,
    /// There is no such operand.
    None = 5,
}

impl VecSrc {
    /// All in code order.
    pub const ALL: [VecSrc; 6] = [VecSrc::Acc, VecSrc::Out, VecSrc::Inp, VecSrc::Param, VecSrc::Scalar, VecSrc::None];

    /// The operand's memory, if it has one.
    pub fn mem(self) -> Option<Mem> {
        match self {
            VecSrc::Acc => Some(Mem::Acc),
            VecSrc::Out => Some(Mem::Out),
            VecSrc::Inp => Some(Mem::Inp),
            VecSrc::Param => Some(Mem::Param),
            VecSrc::Scalar | VecSrc::None => None,
        }
    }
}
