//! Copies between device memory and scratchpads, as loads and stores.

use tilewright_hw::config::Mem;
use tilewright_hw::isa::{Insn, Load, Op, PARAM_ROWS, Store, TABLE_BYTES, unfit_reasons};

use super::choices::nested_padding;
use super::conditions::{NestLoop, Ranges, join, ranges};
use super::error::LowerError;
use super::lower::{Address, Lower, ParamLoad};
use super::memory::Place;
use super::params::Taps;
use super::windows::{Abilities, Copied, CopyAxis, CopyWindow, PART, packed_padding, padding, window};
use crate::te::{DType, Expr, Name};
use crate::tir::{Affine, Block, For};

/// A copy of elements between device memory and a scratchpad.
struct Copy<'c> {
    block: &'c Block,
    loops: Vec<NestLoop>,
    /// Loops of the nest before any were joined.
    nest: usize,
    /// Iterations of each loop that run, from the first to the one after the last.
    running: Vec<(i64, i64)>,
    /// Iterations of each loop that copy data; in the others the scratchpad gets padding.
    data: Vec<(i64, i64)>,
    /// The buffer in the scratchpad, and the position of the element in it.
    scratchpad: (&'c Name, Affine),
    /// The tensor in device memory, and the position of the element in it.
    memory: (&'c Name, Affine),
    /// Bytes of an element.
    size: i64,
    /// The value of padding.
    pad: i8,
    /// Whether no iteration copies data.
    is_padding: bool,
}

/// Rows and planes, with the places of the first row.
struct PlacedWindow {
    window: CopyWindow,
    /// Entry of the scratchpad.
    entry: u32,
    /// Byte of the entry, if rows are packed.
    byte: u32,
    /// Where the first row begins in device memory.
    base: Address,
    row_stride: u64,
    plane_stride: u64,
}

impl Copy<'_> {
    /// Returns the loops in units of `unit` bytes per element.
    fn axes(&self, unit: i64) -> Vec<CopyAxis> {
        let axis = |i: usize| {
            let (var, running, data) = (&self.loops[i].var, self.running[i], self.data[i]);
            let count = running.1 - running.0;
            let inside = |at: i64| (at - running.0).clamp(0, count);
            CopyAxis {
                count,
                memory: self.memory.1.coefficient(var) * unit,
                scratchpad: self.scratchpad.1.coefficient(var) * unit,
                data: (inside(data.0), inside(data.1)),
            }
        };
        (0..self.loops.len()).map(axis).collect()
    }

    /// Returns a position at the first iteration of each loop that runs.
    fn first(&self, at: &Affine) -> i64 {
        let terms = self.loops.iter().zip(&self.running).map(|(l, r)| at.coefficient(&l.var) * r.0);
        at.constant + terms.sum::<i64>()
    }
}

impl<'l> Lower<'l> {
    /// Adds the load or store of a nest that copies. Returns `false` if it is no single load or store.
    ///
    /// # Errors
    /// The block is no copy, or its rows are none that a load or store can move.
    pub fn copy(
        &mut self,
        loops: &[&'l For],
        block: &'l Block,
        (to, indices): (&'l Name, &'l [Expr]),
        value: &'l Expr,
    ) -> Result<bool, LowerError> {
        let Some(value) = self.chosen(value) else { return Ok(false) };
        if let Some((condition, inner, pad)) = nested_padding(value) {
            return match self.holds(condition) {
                Some(true) => self.copy(loops, block, (to, indices), inner),
                Some(false) => self.fill(loops, block, (to, indices), pad),
                None => Ok(false),
            };
        }
        let (source, inside, pad) = match value {
            Expr::Load { .. } => (value, None, 0),
            Expr::Select(inside, source, other) => match (self.chosen(source), other.as_ref()) {
                (Some(source), Expr::Int(pad, _)) if matches!(source, Expr::Load { .. }) => {
                    (source, Some(inside.as_ref()), *pad)
                }
                (None, _) => return Ok(false),
                _ => return Err(self.no_copy(block, value)),
            },
            _ => return Err(self.no_copy(block, value)),
        };
        let Expr::Load { buffer: from, indices: read, dtype } = source else {
            return Err(self.no_copy(block, value));
        };
        if self.shares.contains_key(to) {
            // The load of the biases brings multipliers and shifts too.
            return Ok(true);
        }
        if self.on_chip.contains(to) || self.on_chip.contains(from) {
            return Ok(true);
        }
        let root = |name: &Name| self.reuses.get(name).unwrap_or(name).clone();
        if root(to) == root(from) {
            // The results are written over the elements.
            return Ok(true);
        }
        let (Some(mut to_at), Some(mut from_at)) = (self.position(to, indices), self.position(from, read)) else {
            return Ok(false);
        };
        let (Some(mut guards), Some(mut inside_sums)) =
            (self.sums(&block.guards), self.sums(inside.map_or(&[], std::slice::from_ref)))
        else {
            return Ok(false);
        };
        let nest = loops.len();
        let sums = guards.iter_mut().chain(&mut inside_sums).chain([&mut to_at, &mut from_at]);
        let mut sums = sums.collect::<Vec<_>>();
        let mut loops = self.zeroed(loops, &mut sums);
        join(&mut loops, &mut sums);
        let running = match ranges(&loops, &guards) {
            Ranges::Never => return Ok(true),
            Ranges::Several => return Ok(false),
            Ranges::Of(ranges) => ranges,
        };
        let data = match ranges(&loops, &inside_sums) {
            Ranges::Never => None,
            Ranges::Several => return Ok(false),
            Ranges::Of(ranges) => Some(ranges),
        };
        let (is_padding, data) = (data.is_none(), data.unwrap_or_else(|| running.clone()));
        let size = dtype.size_bytes() as i64;
        match (self.places.get(from).cloned(), self.places.get(to).cloned()) {
            (None, Some(place)) => {
                let Ok(pad) = i8::try_from(pad) else {
                    return Err(self.refuse(block, format!("a load cannot pad with {pad}, only with -128 to 127")));
                };
                let (scratchpad, memory) = ((to, to_at), (from, from_at));
                let copy = Copy { block, loops, nest, running, data, scratchpad, memory, size, pad, is_padding };
                self.load(&copy, &place)
            }
            (Some(_), None) if inside.is_some() => {
                Err(self.refuse(block, "a store cannot pad; leave the condition out, or compute it in an instruction"))
            }
            (Some(place), None) => {
                let (scratchpad, memory) = ((from, from_at), (to, to_at));
                self.store(
                    &Copy { block, loops, nest, running, data, scratchpad, memory, size, pad: 0, is_padding: false },
                    &place,
                )
            }
            (Some(_), Some(_)) => Err(self.refuse(
                block,
                format!("it copies {from} to {to}, and both are in scratchpads; tensorize it with move"),
            )),
            (None, None) => Err(self
                .refuse(block, format!("it copies {from} to {to} in device memory; read {from} through a scratchpad"))),
        }
    }

    /// Returns the loops of the part of a nest that is being added. Their iterations, and sums over them, count from 0.
    fn zeroed(&self, loops: &[&'l For], sums: &mut [&mut Affine]) -> Vec<NestLoop> {
        let counted = |l: &&'l For| {
            let (first, last) = self.running(l);
            sums.iter_mut().for_each(|sum| sum.constant += sum.coefficient(&l.var) * first);
            NestLoop { var: l.var.clone(), extent: last + 1 - first }
        };
        loops.iter().map(counted).collect()
    }

    /// Fills a part of a scratchpad with a constant. Returns `false` if it is no single load.
    ///
    /// # Errors
    /// A load cannot write the value.
    pub fn fill(
        &mut self,
        loops: &[&'l For],
        block: &'l Block,
        (to, indices): (&'l Name, &'l [Expr]),
        value: i64,
    ) -> Result<bool, LowerError> {
        let Some(place) = self.places.get(to).cloned() else {
            return Err(
                self.refuse(block, format!("it writes {value} to {to} in device memory; write it to out first"))
            );
        };
        let Ok(pad) = i8::try_from(value) else {
            return Err(self.refuse(block, format!("a load cannot write {value}, only -128 to 127")));
        };
        let Some(mut at) = self.position(to, indices) else { return Ok(false) };
        let Some(mut guards) = self.sums(&block.guards) else { return Ok(false) };
        let loops = self.zeroed(loops, &mut guards.iter_mut().chain([&mut at]).collect::<Vec<_>>());
        let running = match ranges(&loops, &guards) {
            Ranges::Never => return Ok(true),
            Ranges::Several => return Ok(false),
            Ranges::Of(ranges) => ranges,
        };
        let size = self.f.buffer(to).map_or(1, |b| b.dtype.size_bytes() as i64);
        let (data, memory) = (running.clone(), (to, Affine::default()));
        let (scratchpad, nest) = ((to, at), loops.len());
        self.load(&Copy { block, loops, nest, running, data, scratchpad, memory, size, pad, is_padding: true }, &place)
    }

    fn no_copy(&self, block: &Block, value: &Expr) -> LowerError {
        let reason =
            format!("it computes {value}, which is neither a copy nor an instruction; tensorize one of its loops");
        self.refuse(block, reason)
    }

    /// Returns the placed rows of a copy, or why it is no single window.
    fn placed(
        &mut self,
        copy: &Copy,
        place: &Place,
        is_load: bool,
    ) -> Result<Result<PlacedWindow, Copied>, LowerError> {
        let entry = i64::from(self.config.entry_bytes(place.mem));
        let first = copy.first(&copy.scratchpad.1) * copy.size;
        let pack = self.config.dma_pack && matches!(place.mem, Mem::Inp | Mem::Out);
        let bytes = self.f.buffer(copy.scratchpad.0).map_or(0, |b| b.size_bytes() as i64);
        let can = Abilities {
            pad: is_load && self.config.dma_pad,
            pack,
            apart: place.strides.is_some() || self.in_parts,
            filled: is_load.then_some(bytes - first),
        };
        let axes = copy.axes(copy.size);
        let copied = match copy.is_padding {
            true => padding(&axes, copy.size, entry),
            false => window(&axes, copy.size, first, entry, can),
        };
        if let (true, Copied::Several | Copied::Never(PART)) = (copy.is_padding && pack && is_load, &copied)
            && let Some(window) = packed_padding(&axes, copy.size)
        {
            return Ok(Ok(self.padding_rows(window, copy.pad, place, first)));
        }
        let window = match copied {
            Copied::Window(window) => window,
            // A part of the nest may be rows of whole entries.
            Copied::Never(PART) if copy.nest > 1 => return Ok(Err(Copied::Several)),
            Copied::Never(reason) => return Err(self.refuse(copy.block, reason)),
            other => return Ok(Err(other)),
        };
        let Some(base) = self.tensors.get(copy.memory.0).copied() else {
            return Err(self.refuse(copy.block, format!("{} is not in device memory", copy.memory.0)));
        };
        let offset = base.offset as i64 + copy.first(&copy.memory.1) * copy.size + window.skip;
        let (Ok(offset), Ok(row_stride), Ok(plane_stride)) =
            (u64::try_from(offset), u64::try_from(window.row_stride), u64::try_from(window.plane_stride))
        else {
            return Ok(Err(Copied::Several));
        };
        let (entry, byte) = ((i64::from(self.slot(place)) + first / entry) as u32, (first % entry) as u32);
        let base = Address { offset, ..base };
        Ok(Ok(PlacedWindow { window, entry, byte, base, row_stride, plane_stride }))
    }

    /// Returns rows of padding that begin at any byte.
    fn padding_rows(&mut self, window: CopyWindow, pad: i8, place: &Place, first: i64) -> PlacedWindow {
        let entry = i64::from(self.config.entry_bytes(place.mem));
        let base = Address { region: self.b.constants(), offset: self.pad(pad, window.row_bytes.into()) };
        let (to, byte) = ((i64::from(self.slot(place)) + first / entry) as u32, (first % entry) as u32);
        PlacedWindow { window, entry: to, byte, base, row_stride: 0, plane_stride: 0 }
    }

    fn load(&mut self, copy: &Copy, place: &Place) -> Result<bool, LowerError> {
        if place.mem == Mem::Param {
            let is_byte = self.f.buffer(copy.scratchpad.0).is_some_and(|b| b.dtype == DType::I8);
            let taps = self.taps.iter().find(|t| t.buffer == *copy.scratchpad.0).map(Taps::entries);
            return match taps {
                None if is_byte => self.load_table(copy, place),
                each => self.load_params(copy, place, each.unwrap_or(1).unsigned_abs()),
            };
        }
        let first = copy.first(&copy.scratchpad.1) * copy.size;
        let PlacedWindow { window: w, entry: to, byte, base, row_stride, plane_stride } =
            match self.placed(copy, place, true)? {
                Ok(placed) => placed,
                Err(Copied::Padding(entries)) => return self.load_padding(copy, place, first, entries),
                Err(_) => return Ok(false),
            };
        let pads = [w.x, w.y, w.z];
        let [pack_row_stride, pack_plane_stride] = w.packed.unwrap_or_default();
        // Without the parameter `dma_pad` there is no field for the value.
        if w.is_filled && copy.pad != 0 && !self.config.dma_pad {
            return Err(
                self.refuse(copy.block, format!("it pads with {}; without dma_pad only 0 is possible", copy.pad))
            );
        }
        let pad_value = if pads == [[0; 2]; 3] && !w.is_filled { 0 } else { copy.pad };
        let [[x_before, x_after], [y_before, y_after], [z_before, z_after]] = pads;
        let load = Load {
            mem: place.mem,
            base: base.region.0,
            offset: base.offset,
            entry: to,
            row_bytes: w.row_bytes,
            rows: w.rows,
            planes: w.planes,
            row_stride,
            plane_stride,
            pad_value,
            x_before,
            x_after,
            y_before,
            y_after,
            z_before,
            z_after,
            pack: w.packed.is_some(),
            pack_byte: byte,
            pack_row_stride,
            pack_plane_stride,
            ..Load::default()
        };
        if !self.fits(load.into()) {
            return Ok(false);
        }
        if !self.is_loaded(copy.scratchpad.0, [load.entry, load.pack_byte, load.row_bytes, load.rows, load.planes]) {
            self.b.load_once(load)?;
        }
        Ok(true)
    }

    /// Loads entries of padding from constants.
    fn load_padding(&mut self, copy: &Copy, place: &Place, first: i64, entries: u32) -> Result<bool, LowerError> {
        let entry = i64::from(self.config.entry_bytes(place.mem));
        if first % entry != 0 {
            return Err(self.refuse(copy.block, PART));
        }
        // Bytes of a constant are equal, and elements of acc have four.
        if copy.size > 1 && copy.pad != 0 && copy.pad != -1 {
            return Err(self.refuse(copy.block, format!("it fills acc with {}; only 0 and -1 are possible", copy.pad)));
        }
        let bytes = u64::from(entries) * entry.unsigned_abs();
        let (offset, constants) = (self.pad(copy.pad, bytes), self.b.constants());
        let to = (i64::from(self.slot(place)) + first / entry) as u32;
        if self.is_loaded(copy.scratchpad.0, [to, 0, bytes as u32, 1, 1]) {
            return Ok(true);
        }
        self.b.load_linear(place.mem, constants, offset, to, bytes)?;
        Ok(true)
    }

    /// Returns whether an instruction's fields can hold its values.
    fn fits(&self, op: Op) -> bool {
        unfit_reasons(&Insn::new(op), self.config).is_empty()
    }

    /// Loads entries of biases, multipliers and shifts, or of taps, which the host has packed. A block of channels has
    /// `each` entries.
    fn load_params(&mut self, copy: &Copy, place: &Place, each: u64) -> Result<bool, LowerError> {
        let elements = place.elements;
        let w = match window(&copy.axes(1), 1, 0, elements, Abilities::default()) {
            Copied::Window(w) if w.rows == 1 && w.planes == 1 => w,
            Copied::Never(reason) => return Err(self.refuse(copy.block, reason)),
            _ => return Ok(false),
        };
        let (first, source) = (copy.first(&copy.scratchpad.1), copy.first(&copy.memory.1));
        if first % elements != 0 || source % elements != 0 {
            return Err(self.refuse(copy.block, PART));
        }
        let Some(&base) = self.tensors.get(copy.scratchpad.0) else {
            return Err(self.refuse(copy.block, "no instruction uses this copy in param"));
        };
        let bytes = each * u64::from(self.config.param_entry_bytes());
        let offset = base.offset + (source / elements).unsigned_abs() * bytes;
        let row = (u64::from(self.slot(place)) + (first / elements).unsigned_abs() * each) as u32 * PARAM_ROWS;
        let from = Address { region: base.region, offset };
        let bytes = u64::from(w.entries) * bytes;
        if !self.is_loaded(copy.scratchpad.0, [row, 0, bytes as u32, 1, 1]) {
            self.load_param_rows(ParamLoad { from, row, bytes })?;
        }
        Ok(true)
    }

    /// Loads the table of a lookup, which the host has packed.
    fn load_table(&mut self, copy: &Copy, place: &Place) -> Result<bool, LowerError> {
        let whole = |axes: &[CopyAxis]| axes.iter().map(|a| a.data.1 - a.data.0).product::<i64>() == TABLE_BYTES as i64;
        if !whole(&copy.axes(1)) || copy.memory.1 != copy.scratchpad.1 {
            return Err(self.refuse(copy.block, "a table is copied to param as a whole"));
        }
        let Some(&base) = self.tensors.get(copy.scratchpad.0) else {
            return Err(self.refuse(copy.block, "no lookup uses this copy in param"));
        };
        let (row, bytes) =
            (self.slot(place) * PARAM_ROWS, self.config.table_entries() * self.config.param_entry_bytes());
        self.load_param_rows(ParamLoad { from: base, row, bytes: bytes.into() })?;
        Ok(true)
    }

    fn store(&mut self, copy: &Copy, place: &Place) -> Result<bool, LowerError> {
        if !matches!(place.mem, Mem::Out | Mem::Inp) {
            let reason = format!("{} is in {}; stores read out or inp only", copy.scratchpad.0, place.mem.name());
            return Err(self.refuse(copy.block, reason));
        }
        let PlacedWindow { window: w, entry, byte, base, row_stride, plane_stride } =
            match self.placed(copy, place, false)? {
                Ok(placed) => placed,
                Err(_) => return Ok(false),
            };
        let [pack_row_stride, pack_plane_stride] = w.packed.unwrap_or_default();
        let store = Store {
            mem: place.mem,
            base: base.region.0,
            offset: base.offset,
            entry,
            row_bytes: w.row_bytes,
            rows: w.rows,
            planes: w.planes,
            row_stride,
            plane_stride,
            pack: w.packed.is_some(),
            pack_byte: byte,
            pack_row_stride,
            pack_plane_stride,
        };
        if !self.fits(store.into()) {
            return Ok(false);
        }
        self.b.store(store)?;
        Ok(true)
    }
}
