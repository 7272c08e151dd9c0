//! Limits that instruction fields and scratchpads set to tiles.

use super::kept::OnChip;
use super::layer::Layer;
use super::padded_range::PaddedRange;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa;

/// Maximum rows of padding above or below the data of a load.
pub const PAD_ROWS: usize = isa::MOST_PAD_ROWS as usize;
/// Maximum entries of padding to the left or right of a row.
pub const PAD_ENTRIES: usize = isa::MOST_PAD_ENTRIES as usize;
/// Maximum bytes in a row of a load or a store.
pub const ROW_BYTES: usize = isa::MOST_ROW_BYTES as usize;
/// Maximum rows, and maximum planes, of a load or a store.
pub const ROWS: usize = isa::MOST_ROWS as usize;

/// Most slots of a buffer that tiles use in turn.
pub const MOST_SLOTS: usize = 8;

/// A limit that a tile exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    /// Entries of a scratchpad.
    #[error("{need} entries of {}, but only {most} are available", .mem.name())]
    Entries {
        /// The scratchpad.
        mem: Mem,
        /// What the tile needs.
        need: usize,
        /// What there is for a tile.
        most: usize,
    },
    /// An operation of the vector unit.
    #[error("the operation {0}, without which the configuration is built")]
    Operation(&'static str),
    /// Banks of acc.
    #[error("banks of their own for the sums and for the sums of each operand, but acc has only {0}")]
    Banks(u32),
    /// Fields of loads and stores.
    #[error("more rows or bytes than the fields of a load or store hold")]
    Fields,
    /// Padding.
    #[error("rows or columns that are all outside the image, or more padding than a load can have")]
    Pads,
}

/// Checks what a tile needs: scratchpads, each with the entries that are needed and those that are available.
///
/// # Errors
/// The first scratchpad with too few entries.
pub fn check_entries(needs: impl IntoIterator<Item = (Mem, usize, usize)>) -> Result<(), Limit> {
    match needs.into_iter().find(|(_, need, most)| need > most) {
        Some((mem, need, most)) => Err(Limit::Entries { mem, need, most }),
        None => Ok(()),
    }
}

/// Returns the number of slots for a buffer of some entries, in a memory with room for `room`, that tiles use in turn.
pub fn slots(room: usize, entries: usize, tiles: usize) -> usize {
    (room / entries.max(1)).min(tiles).clamp(1, MOST_SLOTS)
}

/// Checks that the strides of all tensors of a layer fit the stride fields of loads and stores.
///
/// # Errors
/// A message with the stride that is too large.
pub fn check_strides(layer: &Layer, config: &HwConfig) -> Result<(), String> {
    for view in layer.inputs.iter().map(|(_, v)| *v).chain([layer.output.1]) {
        let stride = view.layout(config).block_stride().max(view.layout(config).row_stride());
        if stride as u64 >= 1 << config.stride_bits {
            return Err(format!("a stride of {stride} bytes does not fit stride_bits = {}", config.stride_bits));
        }
    }
    Ok(())
}

/// Checks that loads can address single batch rows. This is necessary if an entry holds the same pixel of several
/// tiles.
///
/// # Errors
/// A message with the alignment that prevents it.
pub fn check_lanes(config: &HwConfig) -> Result<(), String> {
    let (lane, align) = (config.block_in.min(config.block_out), config.dma_align);
    if config.batch > 1 && lane < align {
        return Err(format!("loads must address batch rows of {lane} bytes, but dma_align is {align}"));
    }
    Ok(())
}

/// Whether every tile of a dimension can be loaded: each reads some data, and its padding fits the instruction fields.
pub fn loadable(out: usize, tile: usize, span: impl Fn(usize, usize) -> PaddedRange, most_pads: usize) -> bool {
    (0..out).step_by(tile).all(|first| {
        let s = span(first, tile.min(out - first));
        s.inside > 0 && s.inside <= ROWS && s.before.max(s.after) <= most_pads
    })
}

/// Entries of inp that the data of one tile can use. `only`: one tile covers the tensor, so no double buffering.
pub fn inp_room(on_chip: &OnChip, only: bool, config: &HwConfig) -> usize {
    match on_chip.room {
        None => config.entries(Mem::Inp) as usize / 2,
        Some((_, entries)) => entries as usize / if only { 1 } else { 2 },
    }
}
