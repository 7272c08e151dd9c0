//! Emits reorders: loads to out, and stores of what they bring.

use super::op::Reorder;
use crate::codegen::accel::emit::Emit;
use crate::codegen::accel::layer::Layer;
use tilewright_driver::DriverError;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{Load, Store};

/// Blocks of a piece.
///
/// # Errors
/// The reason, where the configuration cannot walk.
pub fn blocks(reorder: &Reorder, config: &HwConfig) -> Result<usize, String> {
    if config.batch > 1 {
        return Err("entries of several batch rows are not transposed block by block".into());
    }
    let block = config.block() as usize;
    let ratio = block / config.block_out as usize;
    let room = (config.entries(Mem::Out) as usize / 4 / ratio).max(1);
    for piece in reorder.pieces(room, block) {
        let load = piece.load(block);
        if load.row_stride.max(load.plane_stride) >= 1 << config.stride_bits {
            return Err("its blocks lie further apart than the configuration's stride_bits say".into());
        }
    }
    Ok(room)
}

/// Emits a walk.
///
/// # Errors
/// The driver refuses an instruction.
pub fn emit(e: &mut Emit, layer: &Layer, reorder: &Reorder, room: usize) -> Result<(), DriverError> {
    let (data, result) = (e.place(layer.inputs[0])?, e.place(layer.output)?);
    let block = e.config.block() as usize;
    let ratio = block / e.config.block_out as usize;
    for piece in reorder.pieces(room, block) {
        let entry = e.out.take((piece.blocks() * ratio) as u32);
        let offset = data.offset + (piece.from * block) as u64;
        e.b.load(Load { base: data.region.0, offset, entry, ..piece.load(block) })?;
        e.b.store(Store {
            mem: Mem::Out,
            base: result.region.0,
            offset: result.offset + (piece.to * block) as u64,
            entry,
            row_bytes: (piece.blocks() * block) as u32,
            rows: 1,
            planes: 1,
            ..Store::default()
        })?;
    }
    Ok(())
}
