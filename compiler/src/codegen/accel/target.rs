//! Where a tile's results go: entries of out, or the place of a tensor that stays in inp, with the border around it.

use super::emit::Emit;
use super::kept::{Kept, OnChip};
use tilewright_driver::{Dim, DriverError, Nest, Role};
use tilewright_hw::config::Mem;
use tilewright_hw::isa::{Descriptor, PARAM_ROWS, VecDst, VecOp, VecSrc, Vector};
use tilewright_hw::layout::pack_descriptor;

impl Kept {
    fn frame(&self) -> Frame {
        let Kept { entry, blocks, image, border, .. } = *self;
        Frame { dst: VecDst::Inp, entry, blocks, image, border }
    }

    /// Where a tile of results goes that begins at this block, row and column.
    pub fn target(&self, block: usize, row: usize, column: usize) -> Target {
        Target { at: self.at(block, row as i64, column as i64), ..self.frame().target() }
    }

    /// Writes the border, with `source` for the operand that a clip to one value has.
    fn write_border(&self, e: &mut Emit, name: &str, source: (VecSrc, u32)) -> Result<(), DriverError> {
        let value = i32::from(self.pad_value);
        let bytes = pack_descriptor(e.config, &Descriptor { lo: value, hi: value, ..Descriptor::default() });
        let offset = e.b.constant(&format!("{name} padding"), Role::Params, &bytes);
        let row = e.param.take(PARAM_ROWS * e.config.descriptor_entries());
        e.b.load_linear(Mem::Param, e.b.constants(), offset, row, bytes.len() as u64)?;
        self.frame().write(e, row / PARAM_ROWS, source)
    }
}

/// Blocks of an image with a border around each, one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The memory.
    pub dst: VecDst,
    /// The first entry.
    pub entry: u32,
    /// Blocks of channels.
    pub blocks: u32,
    /// Rows of the image, and entries of each.
    pub image: [u32; 2],
    /// Rows above the image, entries to its left, rows below, entries to its right.
    pub border: [u32; 4],
}

impl Frame {
    /// Where the image goes.
    pub fn target(&self) -> Target {
        let ([rows, columns], [top, left, ..]) = (self.size(), self.border);
        Target { dst: self.dst, at: self.entry + top * columns + left, plane: rows * columns, row: columns }
    }

    /// Rows with the border, and entries of each.
    pub fn size(&self) -> [u32; 2] {
        let [top, left, bottom, right] = self.border;
        [top + self.image[0] + bottom, left + self.image[1] + right]
    }

    /// Writes the border, with `source` for the operand of a clip to one value, which a descriptor has.
    pub fn write(&self, e: &mut Emit, descriptor: u32, source: (VecSrc, u32)) -> Result<(), DriverError> {
        let clip = Vector { op: VecOp::Clip, dst: self.dst, a: source.0, descriptor, ..Vector::default() };
        let ([rows, columns], [top, left, bottom, right]) = (self.size(), self.border);
        let block = Dim::new(self.blocks, [rows * columns, 0, 0]);
        // Above, with the left of the first row; between the rows; and below, with the right of the last.
        let run = |count| Dim::new(count, [1, 0, 0]);
        let runs = [
            (0, vec![run(top * columns + left)]),
            ((top + 1) * columns - right, vec![Dim::new(self.image[0] - 1, [columns, 0, 0]), run(right + left)]),
            ((rows - bottom) * columns - right, vec![run(right + bottom * columns)]),
        ];
        for (first, dims) in runs {
            let dims = std::iter::once(block).chain(dims).collect();
            let nest = Nest { at: [self.entry + first, source.1, 0], body: vec![[0; 3]], dims };
            e.b.vector_nest(clip, &nest)?;
        }
        Ok(())
    }
}

/// Entries that a tile's results go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The memory.
    pub dst: VecDst,
    /// The first entry.
    pub at: u32,
    /// Entries from a block to the next.
    pub plane: u32,
    /// Entries from a row to the next.
    pub row: u32,
}

impl Target {
    /// Entries of out, one behind the other.
    pub fn out(at: u32, [rows, columns]: [u32; 2], ratio: u32) -> Target {
        Target { dst: VecDst::Out, at, plane: rows * columns * ratio, row: columns * ratio }
    }

    /// The nest of results one behind the other, its first loop over blocks or over all entries and its last over the pixels
    /// of a block, with the results put here.
    pub fn results(&self, nest: Nest, blocks: u32, [rows, columns]: [u32; 2]) -> Nest {
        if self.dst == VecDst::Out {
            return Nest { at: [self.at, nest.at[1], nest.at[2]], ..nest };
        }
        let [pixel, block] = match nest.dims.as_slice() {
            [] => [[0; 3]; 2],
            [one] => [one.steps, one.steps.map(|s| s * rows * columns)],
            [first, .., last] => [last.steps, first.steps],
        };
        let dims = vec![
            Dim::new(blocks, [self.plane, block[1], block[2]]),
            Dim::new(rows, [self.row, pixel[1] * columns, pixel[2] * columns]),
            Dim::new(columns, [1, pixel[1], pixel[2]]),
        ];
        Nest { at: [self.at, nest.at[1], nest.at[2]], body: nest.body, dims }
    }

    /// Moves a tile of out here.
    pub fn fill(&self, e: &mut Emit, out: u32, blocks: u32, size: [u32; 2]) -> Result<(), DriverError> {
        let entries = blocks * size[0] * size[1];
        let nest = Nest { at: [0, out, 0], body: vec![[0; 3]], dims: vec![Dim::new(entries, [1, 1, 0])] };
        let vector = Vector { op: VecOp::Move, dst: self.dst, a: VecSrc::Out, ..Vector::default() };
        e.b.vector_nest(vector, &self.results(nest, blocks, size))
    }
}

/// The border of a layer's output, which is written once: as soon as there is an entry that a clip can read.
#[derive(Debug, Default)]
pub struct PendingBorder(Option<Kept>);

impl PendingBorder {
    /// That of a layer's output, if it has one.
    pub fn of(on_chip: &OnChip) -> PendingBorder {
        PendingBorder(on_chip.output.filter(|k| k.border != [0; 4]))
    }

    /// Writes it where something was requantized before: while the array computes, vector has time.
    pub fn early(&mut self, e: &mut Emit, name: &str) -> Result<(), DriverError> {
        match e.summed {
            Some(acc) => self.late(e, name, acc),
            None => Ok(()),
        }
    }

    /// Writes it if that is not done.
    pub fn late(&mut self, e: &mut Emit, name: &str, acc: u32) -> Result<(), DriverError> {
        e.summed = Some(acc);
        match self.0.take() {
            Some(kept) => kept.write_border(e, name, (VecSrc::Acc, acc)),
            None => Ok(()),
        }
    }
}
