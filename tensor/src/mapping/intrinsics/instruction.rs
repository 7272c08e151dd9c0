//! Instructions without their indices.

use tilewright_hw::isa::{Descriptor, VecDst, VecOp, VecSrc};
use tilewright_hw::num::Rounding;

use crate::te::NameMap;
use crate::tir::{Action, Block, Intrinsic};

/// An intrinsic, and the instruction that a call of it becomes.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The intrinsic.
    pub intrinsic: Intrinsic,
    /// The instruction.
    pub instruction: Instruction,
}

/// An instruction without its indices.
#[derive(Debug, Clone, PartialEq)]
pub enum Instruction {
    /// A product of gemm. The parameters are inp, wgt and acc.
    Gemm {
        /// What the array subtracts from every weight.
        zero_point: i8,
    },
    /// An operation of the vector unit.
    Vector(VectorCall),
}

/// An operation of the vector unit, as a call of an intrinsic.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorCall {
    /// The operation.
    pub op: VecOp,
    /// Rounding.
    pub mode: Rounding,
    /// Destination.
    pub dst: VecDst,
    /// First operand.
    pub a: VecSrc,
    /// Second operand.
    pub b: VecSrc,
    /// Its scalars, if it has any.
    pub descriptor: Option<Descriptor>,
    /// Parameters of the intrinsic that are destination, first and second operand.
    pub params: [Option<usize>; 3],
    /// The parameter of the intrinsic that is a table in param.
    pub table: Option<usize>,
    /// The operand that is not the destination, if the operation combines the destination with it.
    pub combines: Option<VecSrc>,
}

impl VectorCall {
    /// Whether it writes a constant, whatever its operand in acc is.
    pub fn is_fill(&self) -> bool {
        self.a == VecSrc::Acc && self.params[1].is_none()
    }
}

impl Instruction {
    /// Whether it writes entries of acc.
    pub fn writes_acc(&self) -> bool {
        match self {
            Instruction::Gemm { .. } => true,
            Instruction::Vector(v) => v.dst == VecDst::Acc,
        }
    }
}

/// Returns the instruction that a block calls.
pub fn called<'i>(block: &Block, instructions: &'i NameMap<Instruction>) -> Option<&'i Instruction> {
    match &block.action {
        Action::Call { intrinsic, .. } => instructions.get(intrinsic),
        Action::Store { .. } => None,
    }
}
