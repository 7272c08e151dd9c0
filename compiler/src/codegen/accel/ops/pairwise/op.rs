//! What an operator of two tensors computes.

use crate::codegen::accel::vector_op::elementwise;
use crate::graph::op::BinaryKind;
use tilewright_hw::isa::{Descriptor, VecOp};
use tilewright_hw::num::{Qadd, Requant, Rounding};

/// An operator of two tensors, element by element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairwise {
    /// What becomes of two elements.
    pub op: PairOp,
    /// The second operand.
    pub b: Other,
}

/// What becomes of two elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PairOp {
    /// Their quantized sum.
    Add(Qadd),
    /// Their quantized product.
    Mul {
        /// Zero points of both.
        zero_points: [i32; 2],
        /// What the product goes through.
        requant: Requant,
    },
    /// A function that the vector unit has as an operation; see [`elementwise`].
    Plain(BinaryKind, VecOp),
}

/// The second operand of two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Other {
    /// A tensor like the first, the layer's second input.
    Tensor,
    /// A value for each channel, the layer's second input.
    Channels,
    /// Constants like the first, in the order of its dense form.
    Constant(Vec<i8>),
    /// A constant for each channel.
    ConstantChannels(Vec<i8>),
}

impl PairOp {
    /// A function of two elements, if the vector unit has an operation for it.
    pub fn plain(kind: BinaryKind) -> Option<PairOp> {
        elementwise(kind).map(|op| PairOp::Plain(kind, op))
    }

    /// The vector unit's operation.
    pub fn operation(&self) -> VecOp {
        match self {
            PairOp::Add(_) => VecOp::Qadd,
            PairOp::Mul { .. } => VecOp::Mul,
            PairOp::Plain(_, op) => *op,
        }
    }

    /// How it rounds.
    pub fn mode(&self) -> Rounding {
        if let PairOp::Mul { requant, .. } = self { requant.mode } else { Rounding::Double }
    }

    /// The same with its operands changed with each other.
    pub fn swapped(self) -> PairOp {
        match self {
            PairOp::Add(q) => PairOp::Add(Qadd { a: q.b, b: q.a, ..q }),
            PairOp::Mul { zero_points: [a, b], requant } => PairOp::Mul { zero_points: [b, a], requant },
            other => other,
        }
    }

    /// The bounds of its results, where it has some of its own.
    pub fn bounds(&mut self) -> Option<(&mut i32, &mut i32)> {
        match self {
            PairOp::Add(q) => Some((&mut q.lo, &mut q.hi)),
            PairOp::Mul { requant, .. } => Some((&mut requant.lo, &mut requant.hi)),
            PairOp::Plain(..) => None,
        }
    }

    /// The descriptor with the operation's scalars, if it needs one.
    pub fn descriptor(&self) -> Option<Descriptor> {
        match self {
            PairOp::Add(q) => Some(Descriptor {
                scalar: 0,
                lo: q.lo,
                hi: q.hi,
                zero_point: q.out.zero_point,
                multiplier_a: q.a.multiplier,
                multiplier_b: q.b.multiplier,
                multiplier: q.out.multiplier,
                shift_a: q.a.shift,
                shift_b: q.b.shift,
                shift: q.out.shift,
                left_shift: q.left_shift,
                zero_a: q.a.zero_point as i8,
                zero_b: q.b.zero_point as i8,
                reserved: 0,
            }),
            PairOp::Mul { zero_points: [a, b], requant: r } => Some(Descriptor {
                lo: r.lo,
                hi: r.hi,
                zero_point: r.zero_point,
                multiplier: r.multiplier,
                shift: r.shift,
                zero_a: *a as i8,
                zero_b: *b as i8,
                ..Descriptor::default()
            }),
            PairOp::Plain(..) => None,
        }
    }
}
