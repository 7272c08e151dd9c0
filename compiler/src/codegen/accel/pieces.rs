//! Pieces of tensors for element-wise operators: runs of entries, regardless of their position in the image.

use crate::tir::Scope;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::VecOp;

/// Returns the memories for the two operands of a vector instruction, which must not share a bank's read port, or `None`
/// if the configuration has no such pair.
fn operand_memories(config: &HwConfig) -> Option<[Mem; 2]> {
    if config.vector_reaches_inp() && config.inp_banks > 1 {
        return Some([Mem::Inp; 2]);
    }
    if config.out_banks > 1 {
        return Some([Mem::Out; 2]);
    }
    config.vector_reaches_inp().then_some([Mem::Inp, Mem::Out])
}

/// Returns the scopes for the two operands of a vector instruction, or `None` if both would share a bank.
pub fn operand_scopes(config: &HwConfig) -> Option<[Scope; 2]> {
    operand_memories(config).map(|mems| mems.map(|mem| if mem == Mem::Inp { Scope::Inp } else { Scope::Out }))
}

/// Returns the maximum number of entries of a piece for an operation.
///
/// # Errors
/// The configuration is built without the operation, or its operands would share a bank.
pub fn piece_entries(operation: VecOp, config: &HwConfig) -> Result<u32, String> {
    if !operation.is_built(config) {
        return Err(format!("the configuration is built without vector_{}", operation.name()));
    }
    let mems =
        operand_memories(config).ok_or("both operands are in one bank: out_banks is 1 and vector cannot read inp")?;
    let bank = |mem: Mem| config.entries(mem) / config.banks(mem);
    let least = mems.iter().map(|&mem| bank(mem)).min().unwrap_or(1);
    let entries = if mems.contains(&Mem::Out) {
        // A bank of out has two slots of an operand and two of results.
        (least / 4).min(bank(Mem::Out) / 4)
    } else {
        // Short pieces let the layers before and after overlap with this one.
        (least / 8).min(config.out_depth / 8)
    };
    Ok(entries.max(1))
}
