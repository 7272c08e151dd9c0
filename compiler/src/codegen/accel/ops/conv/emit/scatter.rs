//! Stores results that are not neighbors in the output, such as those of the phases of a transposed convolution.

use super::{ConvEmission, ConvStep, Scatter};
use crate::codegen::accel::batch::stride;
use crate::codegen::accel::emit::{DeviceTensor, Emit};
use tilewright_driver::DriverError;
use tilewright_hw::config::Mem;
use tilewright_hw::isa::Store;

impl ConvEmission<'_> {
    /// Stores a step's results, one block and pixel at a time.
    pub(super) fn store_apart(
        &self,
        e: &mut Emit,
        s: &ConvStep,
        place: DeviceTensor,
        scatter: Scatter,
        out: u32,
    ) -> Result<(), DriverError> {
        let ratio = self.sizes.out_ratio;
        let (layout, Scatter { first, step }) = (place.layout, scatter);
        let at = |i: usize, place: usize| first[i] + place * step[i];
        let [height, width] = s.pixels.size;
        let entry_bytes = e.config.entry_bytes(Mem::Out) as usize;
        let batch = e.config.batch as usize;
        // With several batch rows, each part of a pixel that an entry holds needs its own store.
        let parts = if batch == 1 { 1 } else { ratio };
        let bytes = layout.block / parts;
        for (lane, t) in s.pixels.tiles.iter().enumerate() {
            for (i, block) in s.blocks.clone().enumerate() {
                for part in 0..parts {
                    let channel = block * layout.block + part * bytes;
                    let offset = layout.offset(t.image, channel, at(0, t.rows.start), at(1, t.columns.start));
                    let (rows, planes) = (t.columns.len(), t.rows.len());
                    let store = Store {
                        mem: Mem::Out,
                        base: place.region.0,
                        offset: place.offset + offset as u64,
                        entry: out + (i * height * width * ratio + part) as u32,
                        row_bytes: bytes as u32,
                        rows: rows as u32,
                        planes: planes as u32,
                        row_stride: stride(rows, step[1] * layout.block),
                        plane_stride: stride(planes, step[0] * layout.row_stride()),
                        ..Store::default()
                    };
                    e.b.store(if batch == 1 {
                        store
                    } else {
                        Store {
                            pack: true,
                            pack_byte: (lane * bytes) as u32,
                            pack_row_stride: (ratio * entry_bytes) as u32,
                            pack_plane_stride: (width * ratio * entry_bytes) as u32,
                            ..store
                        }
                    })?;
                }
            }
        }
        Ok(())
    }
}
