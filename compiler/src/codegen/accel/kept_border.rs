//! The border around a kept tensor in inp, which the vector unit writes.

use super::emit::Emit;
use super::kept::Kept;
use super::layer::Layer;
use tilewright_driver::{Builder, Dim, DriverError, Nest, Role};
use tilewright_hw::config::Mem;
use tilewright_hw::isa::{Descriptor, PARAM_ROWS, VecDst, VecOp, VecSrc, Vector};
use tilewright_hw::layout::pack_descriptor;

/// The clip that writes the border of a kept tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BorderClip {
    kept: Kept,
    /// The entry of param with its bounds.
    descriptor: u32,
}

impl BorderClip {
    /// Returns the clip for a layer's kept output after loading its bounds: both are the padding value. `None` if no
    /// output is kept, or if it has no border.
    ///
    /// # Errors
    /// The driver refuses the load.
    pub fn of(e: &mut Emit, layer: &Layer) -> Result<Option<BorderClip>, DriverError> {
        let Some(kept) = layer.on_chip.output.filter(|kept| kept.border != [0; 4]) else { return Ok(None) };
        let value = i32::from(kept.pad_value);
        let bytes = pack_descriptor(e.config, &Descriptor { lo: value, hi: value, ..Descriptor::default() });
        let offset = e.b.constant(&format!("{} padding", layer.name), Role::Params, &bytes);
        let row = e.param.take(PARAM_ROWS * e.config.descriptor_entries());
        e.b.load_linear(Mem::Param, e.b.constants(), offset, row, bytes.len() as u64)?;
        Ok(Some(BorderClip { kept, descriptor: row / PARAM_ROWS }))
    }

    /// Writes the border. The clip reads `acc`, an entry of acc with sums, for each entry of the border.
    ///
    /// # Errors
    /// The driver refuses an instruction.
    pub fn write(&self, b: &mut Builder, acc: u32) -> Result<(), DriverError> {
        let Kept { entry, blocks, image, border, .. } = self.kept;
        let [top, left, bottom, right] = border;
        let [rows, columns] = [top + image[0] + bottom, left + image[1] + right];
        let clip = Vector {
            op: VecOp::Clip,
            dst: VecDst::Inp,
            a: VecSrc::Acc,
            descriptor: self.descriptor,
            ..Vector::default()
        };
        let block = Dim::new(blocks, [rows * columns, 0, 0]);
        // Three runs: above, with the left side of the first row; between rows; below, with the right side of the last
        // row.
        let run = |count| Dim::new(count, [1, 0, 0]);
        let runs = [
            (0, vec![run(top * columns + left)]),
            ((top + 1) * columns - right, vec![Dim::new(image[0] - 1, [columns, 0, 0]), run(right + left)]),
            ((rows - bottom) * columns - right, vec![run(right + bottom * columns)]),
        ];
        for (first, dims) in runs {
            let dims = std::iter::once(block).chain(dims).collect();
            b.vector_nest(clip, &Nest { at: [entry + first, acc, 0], body: vec![[0; 3]], dims })?;
        }
        Ok(())
    }
}
