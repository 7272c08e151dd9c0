//! Loads and stores: rows between device memory and scratchpads.

use super::{Fsim, Stop};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::{Base, RunReport};
use tilewright_hw::isa::{Load, Store};
use tilewright_hw::regs::TrapCause;

/// The DRAM side of a load or store.
struct Rows {
    base: Base,
    offset: u64,
    row_stride: u64,
    plane_stride: u64,
    row_bytes: u64,
    mask: u64,
}

impl Rows {
    fn new(config: &HwConfig, bases: &[Base], base: u32, at: [u64; 3], row_bytes: u32) -> Rows {
        Rows {
            base: bases.get(base as usize).copied().unwrap_or_default(),
            offset: at[0],
            row_stride: at[1],
            plane_stride: at[2],
            row_bytes: row_bytes.into(),
            mask: (1u64 << config.offset_bits) - 1,
        }
    }

    /// The DRAM address of a row within its base's limit.
    fn address(&self, plane: u32, row: u32) -> Result<u64, Stop> {
        let steps = u64::from(row) * self.row_stride + u64::from(plane) * self.plane_stride;
        let first = self.offset.wrapping_add(steps) & self.mask;
        let last = (first + self.row_bytes - 1) & self.mask;
        if first < self.base.limit && last >= first && last < self.base.limit {
            Ok(self.base.addr.wrapping_add(first) & self.mask)
        } else {
            Err(Stop::Trap(TrapCause::Limit))
        }
    }
}

/// Where a row lies in a scratchpad: its first byte and its bytes.
fn scratchpad_row(size: u64, first: u64, len: u64) -> Result<std::ops::Range<usize>, Stop> {
    if first + len > size {
        return Err(Stop::Trap(TrapCause::Scratchpad));
    }
    Ok(first as usize..(first + len) as usize)
}

/// The bytes of padding: the value sign-extended to an element of the memory.
fn pad_pattern(mem: Mem, value: i8) -> [u8; 4] {
    if mem == Mem::Acc { i32::from(value).to_le_bytes() } else { [value as u8; 4] }
}

impl Fsim {
    pub(super) fn load(&mut self, x: &Load, bases: &[Base], report: &mut RunReport) -> Result<(), Stop> {
        let entry_bytes = u64::from(self.config.entry_bytes(x.mem));
        let size = u64::from(self.config.entries(x.mem)) * entry_bytes;
        let dram_rows = Rows::new(&self.config, bases, x.base, [x.offset, x.row_stride, x.plane_stride], x.row_bytes);
        let pattern = pad_pattern(x.mem, x.pad_value);
        let row_bytes = x.row_bytes as usize;
        // Pads of the inner dimension are bytes with pack, entries without.
        let unit = if x.pack { 1 } else { entry_bytes };
        let before = u64::from(x.x_before) * unit;
        let after = u64::from(x.x_after) * unit;
        let len = before + u64::from(x.row_bytes).next_multiple_of(unit) + after;
        let mut next = u64::from(x.entry) * entry_bytes;
        let mut row = Vec::new();
        for z in 0..x.z_before + x.planes + x.z_after {
            for y in 0..x.y_before + x.rows + x.y_after {
                let plane = z.checked_sub(x.z_before).filter(|p| *p < x.planes);
                let dram_row = y.checked_sub(x.y_before).filter(|r| *r < x.rows);
                let source = match (plane, dram_row) {
                    (Some(plane), Some(dram_row)) => Some(dram_rows.address(plane, dram_row)?),
                    _ => None,
                };
                let first = if x.pack {
                    u64::from(x.entry) * entry_bytes
                        + u64::from(x.pack_byte)
                        + u64::from(y) * u64::from(x.pack_row_stride)
                        + u64::from(z) * u64::from(x.pack_plane_stride)
                } else {
                    next
                };
                let target = scratchpad_row(size, first, len)?;
                next += len;
                let filled = if x.fill { target.end.next_multiple_of(entry_bytes as usize) } else { target.end };
                row.clear();
                row.extend(pattern.iter().cycle().take(filled - target.start));
                if let Some(addr) = source {
                    let range = self.dram_range(addr, x.row_bytes.into())?;
                    let at = before as usize;
                    row[at..at + row_bytes].copy_from_slice(&self.dram[range]);
                    count(report, x.row_bytes.into(), 0);
                }
                self.state.write(x.mem, target.start, &row);
            }
        }
        Ok(())
    }

    pub(super) fn store(&mut self, x: &Store, bases: &[Base], report: &mut RunReport) -> Result<(), Stop> {
        let entry_bytes = u64::from(self.config.entry_bytes(x.mem));
        let size = u64::from(self.config.entries(x.mem)) * entry_bytes;
        let dram_rows = Rows::new(&self.config, bases, x.base, [x.offset, x.row_stride, x.plane_stride], x.row_bytes);
        let mut next = u64::from(x.entry) * entry_bytes;
        for z in 0..x.planes {
            for y in 0..x.rows {
                let addr = dram_rows.address(z, y)?;
                let first = if x.pack {
                    u64::from(x.entry) * entry_bytes
                        + u64::from(x.pack_byte)
                        + u64::from(y) * u64::from(x.pack_row_stride)
                        + u64::from(z) * u64::from(x.pack_plane_stride)
                } else {
                    next
                };
                let source = scratchpad_row(size, first, x.row_bytes.into())?;
                next += u64::from(x.row_bytes).next_multiple_of(entry_bytes);
                let range = self.dram_range(addr, x.row_bytes.into())?;
                self.dram[range].copy_from_slice(&self.state.int8(x.mem)[source]);
                count(report, 0, x.row_bytes.into());
            }
        }
        Ok(())
    }
}

fn count(report: &mut RunReport, read: u64, written: u64) {
    let (r, w) = report.bytes.unwrap_or_default();
    report.bytes = Some((r + read, w + written));
}
