//! Emits reorders: each piece is loaded to out and stored from there.

use super::op::Reorder;
use crate::codegen::accel::emit::Emit;
use crate::codegen::accel::layer::Layer;
use tilewright_driver::DriverError;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{Load, Store};

/// Returns the maximum number of blocks of a piece.
///
/// # Errors
/// The reason why the configuration cannot do the reorder.
pub fn blocks(reorder: &Reorder, config: &HwConfig) -> Result<usize, String> {
    if config.batch > 1 {
        return Err("a configuration with several batch rows cannot move single blocks".into());
    }
    let block = config.block() as usize;
    let ratio = block / config.block_out as usize;
    let room = (config.entries(Mem::Out) as usize / 4 / ratio).max(1);
    check(reorder, room, config)?;
    Ok(room)
}

/// Checks the loads of pieces of at most `room` blocks.
///
/// # Errors
/// A stride does not fit its field.
pub fn check(reorder: &Reorder, room: usize, config: &HwConfig) -> Result<(), String> {
    let block = config.block() as usize;
    for piece in reorder.pieces(room, block) {
        let load = piece.load(block);
        if load.row_stride.max(load.plane_stride) >= 1 << config.stride_bits {
            let stride = load.row_stride.max(load.plane_stride);
            return Err(format!("a stride of {stride} bytes does not fit stride_bits = {}", config.stride_bits));
        }
    }
    Ok(())
}

/// Emits a reorder with pieces of at most `room` blocks.
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
