//! Sizes of a reorder's pieces.

use super::op::Reorder;
use tilewright_hw::config::{HwConfig, Mem};

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
