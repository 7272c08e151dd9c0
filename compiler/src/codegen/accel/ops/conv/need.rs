//! Resources that the epilogue of a product needs in its tiles.

use super::epilogue::Epilogue;
use super::op::Conv;
use super::operands::operand_memories;
use super::windows::PooledWindows;
use crate::codegen::accel::kept::OnChip;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::work::overhead;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::VecOp;

/// Resources that the epilogue needs for a tile.
#[derive(Debug, Clone, Copy)]
pub struct Need<'a> {
    /// Number of tensors that are loaded for it.
    pub operands: usize,
    /// The memories that can hold these tensors.
    pub operand_memories: &'static [Mem],
    /// Entries of param.
    pub params: usize,
    /// Cycles of the vector unit per entry.
    pub entry_cycles: u64,
    /// Cycles of the vector unit per tile, in addition to those of its entries.
    pub tile_cycles: u64,
    /// Tensors of the layer that stay in inp.
    pub on_chip: OnChip,
    /// The pooling of the results.
    pub pooling: Option<PooledWindows<'a>>,
}

impl Default for Need<'_> {
    /// No epilogue.
    fn default() -> Self {
        Need {
            operands: 0,
            operand_memories: &[Mem::Out],
            params: 0,
            entry_cycles: 0,
            tile_cycles: 0,
            on_chip: OnChip::default(),
            pooling: None,
        }
    }
}

impl<'a> Need<'a> {
    /// Returns what a convolution's epilogue needs.
    ///
    /// # Errors
    /// The reason why the configuration cannot run the epilogue in the tiles.
    pub fn of(conv: &'a Conv, layer: &Layer, config: &HwConfig) -> Result<Need<'a>, String> {
        let operand_memories = operand_memories(conv, layer, config);
        let pooling = PooledWindows::of(conv, layer);
        let mut need = Need { operand_memories, on_chip: layer.on_chip, pooling, ..Need::default() };
        for step in &conv.epilogue {
            let Some(op) = step.operation() else { continue };
            if !op.is_built(config) {
                return Err(format!("the configuration is built without vector_{}", op.name()));
            }
            if matches!(step, Epilogue::Pair { .. }) {
                if config.out_banks < 2 {
                    return Err("both operands would be read from one bank of out".into());
                }
                need.operands += 1;
            }
            need.params += config.constant_entries(op) as usize;
            need.entry_cycles += u64::from(match op {
                VecOp::Qadd => config.deep_row_cycles(3),
                op if op.is_deep() => config.deep_row_cycles(1),
                _ => config.row_elements().div_ceil(config.vector_lanes),
            });
            need.tile_cycles += if op == VecOp::Lut { overhead::FUSED_LOOKUP } else { overhead::FUSED_PAIR };
        }
        Ok(need)
    }
}
