//! Loads and stores: rows between device memory and scratchpads.

use super::{Fsim, Stop};
use std::ops::Range;
use std::sync::Arc;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::Base;
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

    /// Returns the offset of a row's first byte from its base.
    fn first(&self, plane: u32, row: u32) -> u64 {
        let steps = u64::from(row) * self.row_stride + u64::from(plane) * self.plane_stride;
        self.offset.wrapping_add(steps) & self.mask
    }

    /// Returns the DRAM address of a row, or a trap if it passes its base's limit.
    #[inline]
    fn address(&self, plane: u32, row: u32) -> Result<u64, TrapCause> {
        let first = self.first(plane, row);
        let last = (first + self.row_bytes - 1) & self.mask;
        if first < self.base.limit && last >= first && last < self.base.limit {
            Ok(self.base.addr.wrapping_add(first) & self.mask)
        } else {
            Err(TrapCause::Limit)
        }
    }
}

/// One row of a load or store.
pub(crate) struct DmaRow {
    /// DRAM address; `None` for a row of padding.
    pub(crate) dram: Option<u64>,
    /// Scratchpad bytes, including those that `fill` adds.
    pub(crate) bytes: Range<usize>,
    /// Bytes of padding in front of the data.
    pub(crate) before: usize,
}

/// A row of a load: its DRAM address, `None` for a row of padding, and its first scratchpad byte.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadRow {
    pub(crate) dram: Option<u64>,
    pub(crate) first: u64,
}

/// A row of a store: its DRAM address, and its first scratchpad byte.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreRow {
    pub(crate) dram: u64,
    pub(crate) first: u64,
}

/// Returns the first byte of a row, or a trap if it passes the end of a scratchpad of `size` bytes.
#[inline]
fn scratchpad_row(size: u64, first: u64, len: u64) -> Result<u64, TrapCause> {
    if first + len > size { Err(TrapCause::Scratchpad) } else { Ok(first) }
}

/// Where a row is, whether it traps or not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowPlace {
    /// Its plane, and its row within that plane, both counting padding.
    pub(crate) plane: u32,
    pub(crate) row: u32,
    /// Offset of its first byte from its base; `None` for a row of padding.
    pub(crate) dram: Option<u64>,
    /// Its first byte in the scratchpad, and its bytes there.
    pub(crate) first: u64,
    pub(crate) len: u64,
}

/// Iterates over the rows of a load in order; the first row that traps is an error.
pub(crate) struct LoadRows {
    x: Load,
    rows: Rows,
    entry_bytes: u64,
    size: u64,
    before: u64,
    len: u64,
    next: u64,
    /// Row and plane, both counting padding.
    at: [u32; 2],
}

impl LoadRows {
    pub(crate) fn new(config: &HwConfig, x: &Load, bases: &[Base]) -> LoadRows {
        let entry_bytes = u64::from(config.entry_bytes(x.mem));
        // With pack, padding of the inner dimension is counted in bytes, otherwise in entries.
        let unit = if x.pack { 1 } else { entry_bytes };
        let before = u64::from(x.x_before) * unit;
        LoadRows {
            x: *x,
            rows: Rows::new(config, bases, x.base, [x.offset, x.row_stride, x.plane_stride], x.row_bytes),
            entry_bytes,
            size: u64::from(config.entries(x.mem)) * entry_bytes,
            before,
            len: before + u64::from(x.row_bytes).next_multiple_of(unit) + u64::from(x.x_after) * unit,
            next: u64::from(x.entry) * entry_bytes,
            at: [0, 0],
        }
    }

    /// Returns plane and row in device memory, or `None` for padding.
    fn dram(&self, y: u32, z: u32) -> Option<(u32, u32)> {
        let x = &self.x;
        let plane = z.checked_sub(x.z_before).filter(|p| *p < x.planes);
        plane.zip(y.checked_sub(x.y_before).filter(|r| *r < x.rows))
    }

    fn first(&self, y: u32, z: u32) -> u64 {
        let x = &self.x;
        let strides = [(y, x.pack_row_stride), (z, x.pack_plane_stride)];
        if x.pack { packed(x.entry, self.entry_bytes, x.pack_byte, strides) } else { self.next }
    }

    /// Returns the place of the next row.
    pub(crate) fn place(&self) -> RowPlace {
        let [row, plane] = self.at;
        let dram = self.dram(row, plane).map(|(plane, row)| self.rows.first(plane, row));
        RowPlace { plane, row, dram, first: self.first(row, plane), len: self.len }
    }

    #[inline]
    fn row(&self, y: u32, z: u32) -> Result<LoadRow, TrapCause> {
        let dram = self.dram(y, z).map(|(plane, row)| self.rows.address(plane, row)).transpose()?;
        Ok(LoadRow { dram, first: scratchpad_row(self.size, self.first(y, z), self.len)? })
    }

    /// Returns the next row or its trap, if there is another row.
    #[inline]
    pub(crate) fn next_row(&mut self) -> Option<Result<LoadRow, TrapCause>> {
        let x = &self.x;
        let [y, z] = self.at;
        if z == x.z_before + x.planes + x.z_after {
            return None;
        }
        let row = self.row(y, z);
        self.next += self.len;
        self.at = if y + 1 == x.y_before + x.rows + x.y_after { [0, z + 1] } else { [y + 1, z] };
        Some(row)
    }
}

impl Iterator for LoadRows {
    type Item = Result<DmaRow, Stop>;

    fn next(&mut self) -> Option<Result<DmaRow, Stop>> {
        let LoadRow { dram, first } = match self.next_row()? {
            Ok(row) => row,
            Err(cause) => return Some(Err(Stop::Trap(cause))),
        };
        let mut end = (first + self.len) as usize;
        if self.x.fill {
            end = end.next_multiple_of(self.entry_bytes as usize);
        }
        Some(Ok(DmaRow { dram, bytes: first as usize..end, before: self.before as usize }))
    }
}

/// Iterates over the rows of a store in order, as DRAM address and scratchpad bytes; the first row that traps is an
/// error.
pub(crate) struct StoreRows {
    x: Store,
    rows: Rows,
    entry_bytes: u64,
    size: u64,
    next: u64,
    /// Row and plane.
    at: [u32; 2],
}

impl StoreRows {
    pub(crate) fn new(config: &HwConfig, x: &Store, bases: &[Base]) -> StoreRows {
        let entry_bytes = u64::from(config.entry_bytes(x.mem));
        StoreRows {
            x: *x,
            rows: Rows::new(config, bases, x.base, [x.offset, x.row_stride, x.plane_stride], x.row_bytes),
            entry_bytes,
            size: u64::from(config.entries(x.mem)) * entry_bytes,
            next: u64::from(x.entry) * entry_bytes,
            at: [0, 0],
        }
    }

    fn first(&self, y: u32, z: u32) -> u64 {
        let x = &self.x;
        let strides = [(y, x.pack_row_stride), (z, x.pack_plane_stride)];
        if x.pack { packed(x.entry, self.entry_bytes, x.pack_byte, strides) } else { self.next }
    }

    /// Returns the place of the next row.
    pub(crate) fn place(&self) -> RowPlace {
        let [row, plane] = self.at;
        let (dram, first) = (Some(self.rows.first(plane, row)), self.first(row, plane));
        RowPlace { plane, row, dram, first, len: self.x.row_bytes.into() }
    }

    #[inline]
    fn row(&self, y: u32, z: u32) -> Result<StoreRow, TrapCause> {
        let dram = self.rows.address(z, y)?;
        Ok(StoreRow { dram, first: scratchpad_row(self.size, self.first(y, z), self.x.row_bytes.into())? })
    }

    /// Returns the next row or its trap, if there is another row.
    #[inline]
    pub(crate) fn next_row(&mut self) -> Option<Result<StoreRow, TrapCause>> {
        let [y, z] = self.at;
        if z == self.x.planes {
            return None;
        }
        let row = self.row(y, z);
        self.next += u64::from(self.x.row_bytes).next_multiple_of(self.entry_bytes);
        self.at = if y + 1 == self.x.rows { [0, z + 1] } else { [y + 1, z] };
        Some(row)
    }
}

impl Iterator for StoreRows {
    type Item = Result<(u64, Range<usize>), Stop>;

    fn next(&mut self) -> Option<Self::Item> {
        let row_bytes = self.x.row_bytes as usize;
        let row = self.next_row()?.map(|row| (row.dram, row.first as usize..row.first as usize + row_bytes));
        Some(row.map_err(Stop::Trap))
    }
}

/// Returns the first scratchpad byte of a packed row.
fn packed(entry: u32, entry_bytes: u64, byte: u32, strides: [(u32, u32); 2]) -> u64 {
    let steps = strides.iter().map(|(n, stride)| u64::from(*n) * u64::from(*stride));
    u64::from(entry) * entry_bytes + u64::from(byte) + steps.sum::<u64>()
}

impl Fsim {
    pub(super) fn load(&mut self, x: &Load, bases: &[Base], most: u64) -> Result<(), Stop> {
        let mut written = None;
        let end = self.load_rows(x, bases, most, &mut written);
        if let Some(bytes) = written {
            self.state.wrote(x.mem, bytes);
        }
        end
    }

    /// Copies a load's rows. Sets `written` to the range from the first to the last byte written.
    fn load_rows(
        &mut self,
        x: &Load,
        bases: &[Base],
        mut most: u64,
        written: &mut Option<Range<usize>>,
    ) -> Result<(), Stop> {
        let config = Arc::clone(&self.config);
        for r in LoadRows::new(&config, x, bases) {
            let r = r?;
            if r.dram.is_some() {
                most = most.checked_sub(1).ok_or(Stop::Limit)?;
            }
            let data = r.dram.map(|addr| self.dram_range(addr, x.row_bytes.into())).transpose()?;
            let data = data.map_or(&[][..], |range| &self.dram[range]);
            let before = if data.is_empty() { r.bytes.len() } else { r.before };
            let range = written.get_or_insert(r.bytes.clone());
            *range = range.start.min(r.bytes.start)..range.end.max(r.bytes.end);
            if let Some(memory) = self.state.memory_mut(x.mem) {
                let (pad, rest) = memory[r.bytes].split_at_mut(before);
                pad.fill(x.pad_value as u8);
                let (row, pad) = rest.split_at_mut(data.len());
                row.copy_from_slice(data);
                pad.fill(x.pad_value as u8);
            } else {
                // The value is sign-extended to a word.
                let pad = i32::from(x.pad_value).to_le_bytes();
                let mut row: Vec<u8> = pad.iter().copied().cycle().take(r.bytes.len()).collect();
                row[before..before + data.len()].copy_from_slice(data);
                self.state.write_acc(r.bytes.start, &row);
            }
        }
        Ok(())
    }

    pub(super) fn store(&mut self, x: &Store, bases: &[Base], mut most: u64) -> Result<(), Stop> {
        let config = Arc::clone(&self.config);
        for row in StoreRows::new(&config, x, bases) {
            let (addr, source) = row?;
            most = most.checked_sub(1).ok_or(Stop::Limit)?;
            let range = self.dram_range(addr, x.row_bytes.into())?;
            self.store_bytes(x.mem, source, range.start);
        }
        Ok(())
    }

    /// Copies scratchpad bytes to device memory. Both ranges must be in bounds.
    pub(crate) fn store_bytes(&mut self, mem: Mem, source: Range<usize>, at: usize) {
        self.dram[at..at + source.len()].copy_from_slice(&self.state.int8(mem)[source]);
    }
}
