//! Pieces of tensors for element-wise operators: runs of entries, regardless of their position in the image.

use super::emit::Emit;
use super::limits::ROW_BYTES;
use tilewright_driver::DriverError;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{Store, VecOp};

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

/// Returns the first entries of a piece's two operands and of its result. `turn` (0 or 1) selects the half of the
/// banks.
pub fn piece_places(config: &HwConfig, places: [(Mem, u32); 2], turn: u32, count: u32) -> [u32; 3] {
    let bank = |mem: Mem| config.entries(mem) / config.banks(mem);
    let start = |(mem, index): (Mem, u32)| index * bank(mem) + turn * count;
    // If operands are in out, the result uses the other half of the first such operand's bank.
    let beside = places.iter().find(|(mem, _)| *mem == Mem::Out);
    let result = beside.map_or(turn * count, |&(mem, index)| index * bank(mem) + (2 + turn) * count);
    [start(places[0]), start(places[1]), result]
}

/// Stores consecutive entries to consecutive bytes.
pub fn store_piece(e: &mut Emit, base: u32, offset: u64, entry: u32, bytes: u64) -> Result<(), DriverError> {
    let entry_bytes = u64::from(e.config.entry_bytes(Mem::Out));
    let step = entry_bytes.max(e.config.dma_align.into());
    let most = ROW_BYTES as u64 / step * step;
    let (mut at, mut from, mut rest) = (offset, u64::from(entry), bytes);
    while rest > 0 {
        let row = rest.min(most);
        e.b.store(Store { base, offset: at, entry: from as u32, row_bytes: row as u32, ..Store::default() })?;
        (at, from, rest) = (at + row, from + row / entry_bytes, rest - row);
    }
    Ok(())
}
