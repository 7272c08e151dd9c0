//! The instructions of a configuration as tensor intrinsics, for `tensorize`.
//!
//! Each intrinsic computes what one micro-op does. A schedule names an instruction; which intrinsic that is depends on
//! the block: on the scratchpads of its operands, their types, and its constants. So an instruction has candidates for
//! a block, and `tensorize` takes the first that matches.
//!
//! | file | what it has |
//! |---|---|
//! | `gemm` | products of gemm |
//! | `simple` | operations of the vector lanes, and lookups |
//! | `mac` | products of the vector unit |
//! | `deep` | operations of the requantize lanes |
//! | `stored`, `entry`, `instruction`, `text` | what they share |

mod deep;
mod entry;
mod gemm;
mod instruction;
mod mac;
mod simple;
mod stored;
mod text;

use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::VecOp;

use crate::te::{DType, Expr, Name};
use crate::tir::{Action, Block, Function};
use entry::layouts;
use simple::SIMPLE;
use stored::StoredValue;

pub use deep::requant_intrinsic;
pub use entry::Entry;
pub use gemm::gemm_intrinsic;
pub use instruction::{Candidate, Instruction, VectorCall, called};
pub use mac::mac_intrinsic;

/// Names of the instructions that [`candidates`] knows.
pub fn names(config: &HwConfig) -> Vec<&'static str> {
    let built = VecOp::ALL.iter().filter(|op| is_known(**op) && op.is_built(config));
    std::iter::once("gemm").chain(built.map(|op| op.name())).collect()
}

/// Returns whether an operation has a form for schedules.
fn is_known(op: VecOp) -> bool {
    SIMPLE.iter().any(|s| s.op == op)
        || matches!(op, VecOp::Requant | VecOp::Mul | VecOp::Qadd | VecOp::Lut | VecOp::Mac)
}

/// Checks that a block reads and writes elements that instructions can have.
///
/// # Errors
/// The buffer with others.
fn check_types(f: &Function, block: &Block, name: &str) -> Result<(), String> {
    let mut wrong = None;
    let mut check = |buffer: &Name| {
        let found = f.buffer(buffer).filter(|b| !matches!(b.dtype, DType::I8 | DType::Bool | DType::I32));
        wrong = wrong.take().or(found.map(|b| format!("{buffer} holds {}", b.dtype)));
    };
    if let Action::Store { buffer, .. } = &block.action {
        check(buffer);
    }
    block.each_expr(&mut |e| {
        e.visit(&mut |e| {
            if let Expr::Load { buffer, .. } = e {
                check(buffer);
            }
        });
    });
    wrong.map_or(Ok(()), |wrong| Err(format!("{name} computes with elements of i8, bool and i32, but {wrong}")))
}

/// Returns the intrinsics that the instruction `name` could be for a block.
///
/// # Errors
/// Why no intrinsic of that name can compute the block.
pub fn candidates(config: &HwConfig, f: &Function, block: &Block, name: &str) -> Result<Vec<Candidate>, String> {
    if name == "gemm" {
        check_types(f, block, name)?;
        return layouts(config).map(|entry| gemm::gemm(config, entry, f, block)).collect();
    }
    let Action::Store { buffer, indices, value } = &block.action else {
        return Err(format!("block {} already calls an intrinsic", block.name));
    };
    let Some(dst) = f.buffer(buffer) else { return Err(format!("there is no buffer {buffer}")) };
    let stored = StoredValue { config, f, dst, indices, value };
    let Some(op) = VecOp::ALL.iter().copied().find(|op| op.name() == name && is_known(*op)) else {
        return Err(format!("there is no instruction {name}; there are {}", names(config).join(", ")));
    };
    if !op.is_built(config) {
        let there = names(config).join(", ");
        return Err(format!("the configuration is built without the operation {name}; it has {there}"));
    }
    check_types(f, block, name)?;
    match SIMPLE.iter().find(|s| s.op == op) {
        Some(simple) => stored.simple(simple),
        None => match op {
            VecOp::Requant => stored.requant(),
            VecOp::Mul => stored.mul(),
            VecOp::Lut => stored.lut(),
            VecOp::Mac => stored.mac(),
            _ => stored.qadd(),
        },
    }
}
