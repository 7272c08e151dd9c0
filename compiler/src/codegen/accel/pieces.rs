//! Pieces of tensors for element-wise operators: runs of entries, regardless of their position in the image.

use crate::tir::Scope;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::VecOp;

/// Returns memory and bank for each of the two operands of a vector micro-op, which must not share a read port, or
/// `None` if the configuration has no such pair.
pub fn operand_banks(config: &HwConfig) -> Option<[(Mem, u32); 2]> {
    if config.vector_reaches_inp() && config.inp_banks > 1 {
        return Some([(Mem::Inp, 0), (Mem::Inp, 1)]);
    }
    if config.out_banks > 1 {
        return Some([(Mem::Out, 0), (Mem::Out, 1)]);
    }
    config.vector_reaches_inp().then_some([(Mem::Inp, 0), (Mem::Out, 0)])
}

/// Returns the scopes of the two operands of [`operand_banks`].
pub fn operand_scopes(config: &HwConfig) -> Option<[Scope; 2]> {
    let scope = |(mem, _)| if mem == Mem::Inp { Scope::Inp } else { Scope::Out };
    operand_banks(config).map(|places| places.map(scope))
}

/// Returns the maximum number of entries of a piece for an operation.
///
/// # Errors
/// The configuration is built without the operation, or its operands would share a bank.
pub fn piece_entries(operation: VecOp, config: &HwConfig) -> Result<u32, String> {
    if !operation.is_built(config) {
        return Err(format!("the configuration is built without vector_{}", operation.name()));
    }
    let places =
        operand_banks(config).ok_or("both operands are in one bank: out_banks is 1 and vector cannot read inp")?;
    let bank = |mem: Mem| config.entries(mem) / config.banks(mem);
    let least = places.iter().map(|&(mem, _)| bank(mem)).min().unwrap_or(1);
    // Operands alternate between the halves of their banks. If one is in out, the result uses the other half of that
    // bank.
    let entries = if places.iter().any(|&(mem, _)| mem == Mem::Out) {
        (least / 4).min(bank(Mem::Out) / 4)
    } else {
        // Short pieces let the layers before and after overlap with this one.
        (least / 8).min(config.out_depth / 8)
    };
    Ok(entries.max(1))
}
