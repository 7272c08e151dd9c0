//! Destinations of a tile's results: entries of out, or a kept tensor in inp with the border around it.

use super::emit::Emit;
use super::kept::{Kept, OnChip};
use tilewright_driver::{Builder, Dim, DriverError, Nest, Role};
use tilewright_hw::config::Mem;
use tilewright_hw::isa::{Descriptor, PARAM_ROWS, VecDst, VecOp, VecSrc, Vector};
use tilewright_hw::layout::pack_descriptor;

impl Kept {
    fn frame(&self) -> Frame {
        let Kept { entry, blocks, image, border, .. } = *self;
        Frame { dst: VecDst::Inp, entry, blocks, image, border }
    }

    /// The destination of a tile of results that begins at this block, row and column.
    pub fn target(&self, block: usize, row: usize, column: usize) -> Target {
        Target { at: self.at(block, row as i64, column as i64), ..self.frame().target() }
    }

    /// Loads the bounds of the clip that writes the border: both are the padding value.
    fn clip(&self, e: &mut Emit, name: &str) -> Result<BorderClip, DriverError> {
        let value = i32::from(self.pad_value);
        let bytes = pack_descriptor(e.config, &Descriptor { lo: value, hi: value, ..Descriptor::default() });
        let offset = e.b.constant(&format!("{name} padding"), Role::Params, &bytes);
        let row = e.param.take(PARAM_ROWS * e.config.descriptor_entries());
        e.b.load_linear(Mem::Param, e.b.constants(), offset, row, bytes.len() as u64)?;
        Ok(BorderClip { frame: self.frame(), descriptor: row / PARAM_ROWS })
    }
}

/// The clip that writes the border of a kept tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BorderClip {
    frame: Frame,
    /// The entry of param with its bounds.
    descriptor: u32,
}

impl BorderClip {
    /// Writes the border; `source` is an operand that the clip can read.
    pub fn write(&self, b: &mut Builder, source: (VecSrc, u32)) -> Result<(), DriverError> {
        self.frame.write(b, self.descriptor, source)
    }
}

/// Consecutive blocks of an image, each with a border around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The memory to write.
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
    /// The destination of the image, inside the border.
    pub fn target(&self) -> Target {
        let ([rows, columns], [top, left, ..]) = (self.size(), self.border);
        Target { dst: self.dst, at: self.entry + top * columns + left, plane: rows * columns, row: columns }
    }

    /// Rows with the border, and entries of each.
    pub fn size(&self) -> [u32; 2] {
        let [top, left, bottom, right] = self.border;
        [top + self.image[0] + bottom, left + self.image[1] + right]
    }

    /// Writes the border with a clip. Both bounds in `descriptor` are the padding value; `source` is an operand it can
    /// read.
    pub fn write(&self, b: &mut Builder, descriptor: u32, source: (VecSrc, u32)) -> Result<(), DriverError> {
        let clip = Vector { op: VecOp::Clip, dst: self.dst, a: source.0, descriptor, ..Vector::default() };
        let ([rows, columns], [top, left, bottom, right]) = (self.size(), self.border);
        let block = Dim::new(self.blocks, [rows * columns, 0, 0]);
        // Three runs: above, with the left side of the first row; between rows; below, with the right side of the last
        // row.
        let run = |count| Dim::new(count, [1, 0, 0]);
        let runs = [
            (0, vec![run(top * columns + left)]),
            ((top + 1) * columns - right, vec![Dim::new(self.image[0] - 1, [columns, 0, 0]), run(right + left)]),
            ((rows - bottom) * columns - right, vec![run(right + bottom * columns)]),
        ];
        for (first, dims) in runs {
            let dims = std::iter::once(block).chain(dims).collect();
            let nest = Nest { at: [self.entry + first, source.1, 0], body: vec![[0; 3]], dims };
            b.vector_nest(clip, &nest)?;
        }
        Ok(())
    }
}

/// The entries to which a tile's results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The memory to write.
    pub dst: VecDst,
    /// The first entry.
    pub at: u32,
    /// Entries from one block to the next.
    pub plane: u32,
    /// Entries from one row to the next.
    pub row: u32,
}

impl Target {
    /// Consecutive entries of out.
    pub fn out(at: u32, [rows, columns]: [u32; 2], ratio: u32) -> Target {
        Target { dst: VecDst::Out, at, plane: rows * columns * ratio, row: columns * ratio }
    }

    /// Redirects a nest with consecutive results to this target.
    ///
    /// The nest's first loop is over blocks (or over all entries, if it is the only one), its last over the pixels of a
    /// block.
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

    /// Moves a tile from out to this target.
    pub fn fill(&self, e: &mut Emit, out: u32, blocks: u32, size: [u32; 2]) -> Result<(), DriverError> {
        let entries = blocks * size[0] * size[1];
        let nest = Nest { at: [0, out, 0], body: vec![[0; 3]], dims: vec![Dim::new(entries, [1, 1, 0])] };
        let vector = Vector { op: VecOp::Move, dst: self.dst, a: VecSrc::Out, ..Vector::default() };
        e.b.vector_nest(vector, &self.results(nest, blocks, size))
    }
}

/// The border of a layer's output. It is written once, as soon as there is an entry that the clip can read.
#[derive(Debug, Default)]
pub struct PendingBorder(Option<Kept>);

impl PendingBorder {
    /// The border of a layer's kept output, if it has one.
    pub fn of(on_chip: &OnChip) -> PendingBorder {
        PendingBorder(on_chip.output.filter(|k| k.border != [0; 4]))
    }

    /// Writes the border if an earlier layer has requantized an entry: the vector unit is idle while the array
    /// computes.
    pub fn early(&mut self, e: &mut Emit, name: &str) -> Result<(), DriverError> {
        match e.summed {
            Some(acc) => self.late(e, name, acc),
            None => Ok(()),
        }
    }

    /// Writes the border if it is not written yet. `acc` is an entry of acc that has been requantized.
    pub fn late(&mut self, e: &mut Emit, name: &str, acc: u32) -> Result<(), DriverError> {
        e.summed = Some(acc);
        match self.clip(e, name)? {
            Some(clip) => clip.write(&mut e.b, (VecSrc::Acc, acc)),
            None => Ok(()),
        }
    }

    /// Returns the clip that writes the border if it is not written yet, for a caller who adds it.
    pub fn clip(&mut self, e: &mut Emit, name: &str) -> Result<Option<BorderClip>, DriverError> {
        self.0.take().map(|kept| kept.clip(e, name)).transpose()
    }
}
