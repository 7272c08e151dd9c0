//! Describes operators of two tensors.

use crate::codegen::accel::vector_op::elementwise;
use crate::graph::op::{self, BinaryKind, Op};
use tilewright_hw::isa::{Descriptor, VecOp};
use tilewright_hw::num::{Qadd, Requant, Rounding};

/// An element-wise operator of two tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairwise {
    /// The function of two elements.
    pub op: PairOp,
    /// The second operand.
    pub b: Other,
}

/// A function of two elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PairOp {
    /// Their quantized sum.
    Add(Qadd),
    /// Their quantized product.
    Mul {
        /// Zero points of both elements.
        zero_points: [i32; 2],
        /// Requantization of the product.
        requant: Requant,
    },
    /// A function for which there is a vector operation; see [`elementwise`].
    Plain(BinaryKind, VecOp),
}

/// The second operand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Other {
    /// The layer's second input, with the same shape as the first.
    Tensor,
    /// The layer's second input, with one value per channel.
    Channels,
    /// A constant of the first operand's shape, in dense order.
    Constant(Vec<i8>),
    /// A constant with one value per channel.
    ConstantChannels(Vec<i8>),
}

impl PairOp {
    /// Returns the function for a binary operator, if there is a vector operation for it.
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

    /// The operator of the graph that computes it.
    pub fn graph_op(&self) -> Op {
        match *self {
            PairOp::Add(params) => Op::QAdd(op::QAdd { params }),
            PairOp::Mul { zero_points: [a_zero_point, b_zero_point], requant: r } => Op::QMul(op::QMul {
                a_zero_point,
                b_zero_point,
                multiplier: r.multiplier,
                shift: r.shift,
                zero_point: r.zero_point,
                lo: r.lo,
                hi: r.hi,
                mode: r.mode,
            }),
            PairOp::Plain(kind, _) => Op::Binary(op::Binary { kind }),
        }
    }

    /// The rounding mode.
    pub fn mode(&self) -> Rounding {
        if let PairOp::Mul { requant, .. } = self { requant.mode } else { Rounding::Double }
    }

    /// Returns the same function with its operands swapped.
    pub fn swapped(self) -> PairOp {
        match self {
            PairOp::Add(q) => PairOp::Add(Qadd { a: q.b, b: q.a, ..q }),
            PairOp::Mul { zero_points: [a, b], requant } => PairOp::Mul { zero_points: [b, a], requant },
            other => other,
        }
    }

    /// The lower and upper bound of the results, if the function has bounds.
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
