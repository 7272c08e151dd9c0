//! Kept tensors: they stay in scratchpad inp between layers, so that they are neither stored nor loaded.
//!
//! A kept tensor is complete: inp holds all its blocks, each surrounded by the padding that its readers' windows need.
//! Each tile of a reader finds its window there, so writer and readers can have different tiles.

use tilewright_hw::config::{HwConfig, Mem};

/// A kept tensor in inp. It has one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Its first entry.
    pub entry: u32,
    /// Blocks of channels.
    pub blocks: u32,
    /// Rows and columns of the image.
    pub image: [u32; 2],
    /// Padding above, to the left, below and to the right of the image, in rows and columns.
    pub border: [u32; 4],
    /// Value of padding.
    pub pad_value: i8,
}

/// Which tensors of a layer are kept in inp, and which part of inp the layer can use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OnChip {
    /// The layer's first input, if it is read from inp.
    pub input: Option<Kept>,
    /// The layer's output, if it is written to inp.
    pub output: Option<Kept>,
    /// Whether an output in inp is also stored to device memory.
    pub stored: bool,
    /// First entry and number of entries of the part of inp that the layer's loads can use; `None` for all of inp.
    pub room: Option<(u32, u32)>,
}

impl OnChip {
    /// Whether loads and results are written to the same bank of inp, so that they wait for each other.
    pub fn crowds(&self, config: &HwConfig) -> bool {
        let (Some(kept), None, Some((first, entries))) = (self.output, self.input, self.room) else { return false };
        let banks = |first: u32, entries: u32| {
            config.bank_of(Mem::Inp, first)..=config.bank_of(Mem::Inp, first + entries.saturating_sub(1))
        };
        let (loads, results) = (banks(first, entries), banks(kept.entry, kept.entries()));
        loads.start() <= results.end() && results.start() <= loads.end()
    }

    /// Whether the output is in inp only, so that it is not stored.
    pub fn hides_output(&self) -> bool {
        self.output.is_some() && !self.stored
    }
}

impl Kept {
    /// Rows and columns with the border.
    pub fn size(&self) -> [u32; 2] {
        let [top, left, bottom, right] = self.border;
        [top + self.image[0] + bottom, left + self.image[1] + right]
    }

    /// Entries of a block.
    pub fn plane(&self) -> u32 {
        let [rows, columns] = self.size();
        rows * columns
    }

    /// Entries of the whole tensor.
    pub fn entries(&self) -> u32 {
        self.blocks * self.plane()
    }

    /// The entry of a pixel. Rows and columns count from the first of the image; negative ones are in the border.
    pub fn at(&self, block: usize, row: i64, column: i64) -> u32 {
        let (row, column) = (row + i64::from(self.border[0]), column + i64::from(self.border[1]));
        self.entry + block as u32 * self.plane() + row as u32 * self.size()[1] + column as u32
    }
}
