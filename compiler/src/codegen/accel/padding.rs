//! Loads with padding for configurations whose loads cannot pad: data and padding become separate loads, and the
//! padding comes from constants.
//!
//! The part of an entry after the last byte of a row is never multiplied with a weight, so it can have any value.

use super::emit::Emit;
use super::limits::ROW_BYTES;
use std::ops::Range;
use tilewright_driver::{DriverError, Role};
use tilewright_hw::isa::Load;

/// Returns the load without its padding.
fn unpadded(load: Load) -> Load {
    let load = Load { pad_value: 0, x_before: 0, x_after: 0, y_before: 0, ..load };
    Load { y_after: 0, z_before: 0, z_after: 0, ..load }
}

impl Emit<'_> {
    /// Adds a load. It can have padding even if the configuration's loads cannot pad.
    pub fn load(&mut self, load: Load) -> Result<(), DriverError> {
        let data = unpadded(load);
        if self.config.dma_pad {
            self.b.load(load)
        } else if data == (Load { pad_value: 0, ..load }) {
            self.b.load(data)
        } else if load.pack {
            self.load_box(load, data)
        } else {
            self.load_rows(load, data)
        }
    }

    /// Adds a load whose rows fill consecutive entries: loads rows and the padding between them in the order of
    /// entries.
    fn load_rows(&mut self, load: Load, data: Load) -> Result<(), DriverError> {
        let across = load.row_bytes.div_ceil(self.config.entry_bytes(load.mem));
        let padded = load.x_before + across + load.x_after;
        let plane = (load.y_before + load.rows + load.y_after) * padded;
        // Rows without padding between them need only one load.
        let at_once = if padded == across { load.rows } else { 1 };
        let (mut at, mut pads) = (load.entry, load.z_before * plane);
        for z in 0..load.planes {
            pads += load.y_before * padded;
            for y in (0..load.rows).step_by(at_once as usize) {
                pads += load.x_before;
                at = self.load_pads(load, at, pads)?;
                let offset = load.offset + u64::from(z) * load.plane_stride + u64::from(y) * load.row_stride;
                let row_stride = if at_once == 1 { 0 } else { load.row_stride };
                let part = Load { offset, entry: at, rows: at_once, row_stride, planes: 1, plane_stride: 0, ..data };
                self.b.load(part)?;
                (at, pads) = (at + at_once * across, load.x_after);
            }
            pads += load.y_after * padded;
        }
        self.load_pads(load, at, pads + load.z_after * plane).map(|_| ())
    }

    /// Loads `entries` entries of padding from entry `at` on, and returns the entry after them.
    fn load_pads(&mut self, load: Load, at: u32, entries: u32) -> Result<u32, DriverError> {
        let entry_bytes = self.config.entry_bytes(load.mem);
        let most = ROW_BYTES as u32 / entry_bytes;
        for first in (0..entries).step_by(most as usize) {
            let bytes = (entries - first).min(most) * entry_bytes;
            let offset = self.padding(load.pad_value, bytes);
            self.b.load_linear(load.mem, self.b.constants(), offset, at + first, bytes.into())?;
        }
        Ok(at + entries)
    }

    /// Adds a packed load: the data, and the padding on each side of them.
    fn load_box(&mut self, load: Load, data: Load) -> Result<(), DriverError> {
        let [x, y, z] = [
            [load.x_before, load.row_bytes, load.x_after],
            [load.y_before, load.rows, load.y_after],
            [load.z_before, load.planes, load.z_after],
        ];
        let all = |[before, inside, after]: [u32; 3]| 0..before + inside + after;
        let inside = |[before, inside, _]: [u32; 3]| before..before + inside;
        let sides = |[before, inside, after]: [u32; 3]| [0..before, before + inside..before + inside + after];
        self.b.load(self.part(data, load, [inside(x), inside(y), inside(z)]))?;
        let boxes = sides(z).map(|z| [all(x), all(y), z]).into_iter();
        let boxes = boxes.chain(sides(y).map(|y| [all(x), y, inside(z)]));
        let boxes = boxes.chain(sides(x).map(|x| [x, inside(y), inside(z)]));
        for part in boxes.filter(|part| part.iter().all(|side| !side.is_empty())) {
            let offset = self.padding(load.pad_value, part[0].len() as u32);
            let pads = Load { base: self.b.constants().0, offset, row_stride: 0, plane_stride: 0, ..data };
            self.b.load(self.part(pads, load, part))?;
        }
        Ok(())
    }

    /// Returns `from` with the destination of a part of the packed load `load`: a range of bytes, rows and planes.
    fn part(&self, from: Load, load: Load, [x, y, z]: [Range<u32>; 3]) -> Load {
        let entry_bytes = self.config.entry_bytes(load.mem);
        let byte = load.pack_byte + x.start + y.start * load.pack_row_stride + z.start * load.pack_plane_stride;
        Load {
            entry: load.entry + byte / entry_bytes,
            pack_byte: byte % entry_bytes,
            row_bytes: x.len() as u32,
            rows: y.len() as u32,
            planes: z.len() as u32,
            pack_row_stride: if y.len() == 1 { 0 } else { load.pack_row_stride },
            pack_plane_stride: if z.len() == 1 { 0 } else { load.pack_plane_stride },
            ..from
        }
    }

    /// Returns the offset of at least `bytes` constant bytes of this value, and adds them if necessary.
    fn padding(&mut self, value: i8, bytes: u32) -> u64 {
        match self.pads.get(&value) {
            Some(&(offset, there)) if there >= bytes => offset,
            _ => {
                let offset =
                    self.b.constant(&format!("padding of {value}"), Role::Params, &vec![value as u8; bytes as usize]);
                self.pads.insert(value, (offset, bytes));
                offset
            }
        }
    }
}
