//! Copies between device memory and scratchpads, as loads and stores.

use tilewright_hw::config::Mem;
use tilewright_hw::isa::{Insn, Load, Op, PARAM_ROWS, Store, unfit_reasons};

use super::error::LowerError;
use super::lower::Lower;
use super::windows::{Axis, Copied, PART, window};
use crate::te::{BinOp, DType, Expr, Name};
use crate::tir::{Affine, Block, For};

/// Iterations of a loop, from the first to the one after the last.
type Range = (i64, i64);

impl Lower<'_> {
    /// Adds the load or store of a nest that copies. Returns `false` if it is no single load or store.
    pub fn copy(
        &mut self,
        loops: &[&For],
        block: &Block,
        (to, indices): (&Name, &[Expr]),
        value: &Expr,
    ) -> Result<bool, LowerError> {
        let (source, inside, pad) = match value {
            Expr::Load { .. } => (value, None, 0),
            Expr::Select(inside, source, other) => match (source.as_ref(), other.as_ref()) {
                (Expr::Load { .. }, Expr::Int(pad, _)) => (source.as_ref(), Some(inside.as_ref()), *pad),
                _ => return Err(self.refuse(block, self.no_copy(value))),
            },
            _ => return Err(self.refuse(block, self.no_copy(value))),
        };
        let Expr::Load { buffer: from, indices: read, dtype } = source else { return Ok(false) };
        if self.shares.contains_key(to) {
            // The load of the biases brings multipliers and shifts too.
            return Ok(true);
        }
        let (Some(to_at), Some(from_at)) = (self.position(to, indices), self.position(from, read)) else {
            return Ok(false);
        };
        let Some(running) = self.ranges(loops, &block.guards) else { return Ok(false) };
        let conditions: Vec<Expr> = inside.into_iter().cloned().collect();
        let Some(data) = self.ranges(loops, &conditions) else { return Ok(false) };
        if running.iter().any(|r| r.1 <= r.0) {
            return Ok(true);
        }
        let size = dtype.size_bytes() as i64;
        let on_chip = |name: &Name| self.places.contains_key(name);
        match (on_chip(from), on_chip(to)) {
            (false, true) => {
                let Ok(pad) = i8::try_from(pad) else {
                    return Err(self.refuse(block, format!("padding of {pad} does not fit 8 bits")));
                };
                let parts = (loops, running.as_slice(), data.as_slice());
                self.load(block, parts, (to, &to_at), (from, &from_at), (size, pad))
            }
            (true, false) if inside.is_none() => {
                self.store(block, (loops, &running), (to, &to_at), (from, &from_at), size)
            }
            (true, true) => Err(self.refuse(
                block,
                format!("it copies {from} to {to}, and both are in scratchpads; tensorize it with move"),
            )),
            _ => Err(self
                .refuse(block, format!("it copies {from} to {to} in device memory; read {from} through a scratchpad"))),
        }
    }

    fn no_copy(&self, value: &Expr) -> String {
        format!("it computes {value}, which is neither a copy nor an instruction; tensorize one of its loops")
    }

    /// Returns the iterations of each loop for which all conditions hold; `None` if they depend on several loops at
    /// once.
    pub fn ranges(&self, loops: &[&For], conditions: &[Expr]) -> Option<Vec<Range>> {
        let mut ranges: Vec<Range> = loops.iter().map(|l| (0, l.extent)).collect();
        conditions.iter().try_for_each(|c| self.narrow(loops, c, &mut ranges))?;
        Some(ranges)
    }

    fn narrow(&self, loops: &[&For], condition: &Expr, ranges: &mut [Range]) -> Option<()> {
        // Each condition as `at least 0`.
        let least = |a: &Expr, b: &Expr, slack: i64| -> Option<Affine> {
            let mut difference = self.affine(b)?.plus(&self.affine(a)?, -1);
            difference.constant -= slack;
            Some(difference)
        };
        let positive = match condition {
            Expr::Binary(BinOp::And, a, b) => {
                self.narrow(loops, a, ranges)?;
                return self.narrow(loops, b, ranges);
            }
            Expr::Int(v, DType::Bool) => Affine { constant: if *v == 0 { -1 } else { 0 }, ..Affine::default() },
            Expr::Binary(BinOp::Lt, a, b) => least(a, b, 1)?,
            Expr::Binary(BinOp::Le, a, b) => least(a, b, 0)?,
            _ => return None,
        };
        let Some((var, &c)) = positive.terms.iter().next() else {
            if positive.constant < 0 {
                // It never holds. With no loop, the caller has run all of them and sees an empty range.
                match ranges.first_mut() {
                    Some(range) => *range = (0, 0),
                    None => return None,
                }
            }
            return Some(());
        };
        if positive.terms.len() > 1 {
            return None;
        }
        let i = loops.iter().position(|l| l.var == *var)?;
        let range = &mut ranges[i];
        if c > 0 {
            // constant + c * x >= 0
            range.0 =
                range.0.max((-positive.constant).div_euclid(c) + i64::from((-positive.constant).rem_euclid(c) > 0));
        } else {
            range.1 = range.1.min(positive.constant.div_euclid(-c) + 1);
        }
        range.0 = range.0.min(range.1.max(0));
        Some(())
    }

    fn load(
        &mut self,
        block: &Block,
        (loops, running, data): (&[&For], &[Range], &[Range]),
        (to, to_at): (&Name, &Affine),
        (from, from_at): (&Name, &Affine),
        (size, pad): (i64, i8),
    ) -> Result<bool, LowerError> {
        let Some(place) = self.places.get(to).cloned() else { return Ok(false) };
        let slot = i64::from(self.slot(&place));
        let axes = |unit: i64| -> Vec<Axis> {
            let axis = |(l, (running, data)): (&&For, (&Range, &Range))| Axis {
                count: running.1 - running.0,
                memory: from_at.coefficient(&l.var) * unit,
                scratchpad: to_at.coefficient(&l.var) * unit,
                data: (
                    (data.0 - running.0).clamp(0, running.1 - running.0),
                    (data.1 - running.0).clamp(0, running.1 - running.0),
                ),
            };
            loops.iter().zip(running.iter().zip(data)).map(axis).collect()
        };
        let (first, source) = (begin(to_at, loops, running), begin(from_at, loops, running));
        if place.mem == Mem::Param {
            return self.load_params(block, &axes(1), (slot, first), (to, source), place.elements);
        }
        let entry = i64::from(self.config.entry_bytes(place.mem));
        let can_pad = self.config.dma_pad;
        let w = match window(&axes(size), size, entry, can_pad) {
            Copied::Window(w) => w,
            Copied::Padding(entries) => {
                if first * size % entry != 0 {
                    return Err(self.refuse(block, PART));
                }
                let bytes = u64::from(entries) * entry.unsigned_abs();
                // In acc a byte of padding is an element of 32 bits; constants hold bytes.
                if size > 1 && pad != 0 && pad != -1 {
                    return Ok(false);
                }
                let offset = self.pad(pad, bytes);
                let constants = self.b.constants();
                self.b.load_linear(place.mem, constants, offset, (slot + first * size / entry) as u32, bytes)?;
                return Ok(true);
            }
            Copied::Several => return Ok(false),
            Copied::Never(reason) => return Err(self.refuse(block, reason)),
        };
        let buffer_bytes = self.f.buffer(to).map_or(0, |b| b.size_bytes() as i64);
        let partial = i64::from(w.row_bytes) % entry != 0;
        let end = first * size + i64::from(w.entries) * entry;
        let last = w.rows == 1 && w.planes == 1 && end >= buffer_bytes;
        if first * size % entry != 0 || (partial && !last) {
            return Err(self.refuse(block, PART));
        }
        let Some(&base) = self.tensors.get(from) else { return Ok(false) };
        let offset = u64::try_from(base as i64 + source * size + w.skip);
        let (Ok(offset), Ok(row_stride), Ok(plane_stride)) =
            (offset, u64::try_from(w.row_stride), u64::try_from(w.plane_stride))
        else {
            return Ok(false);
        };
        let pads = [w.x, w.y, w.z];
        // Without the parameter `dma_pad` there is no field for the value.
        let pad = if pads == [[0; 2]; 3] { 0 } else { pad };
        let [[x_before, x_after], [y_before, y_after], [z_before, z_after]] = pads;
        let load = Load {
            mem: place.mem,
            base: self.region.0,
            offset,
            entry: (slot + first * size / entry) as u32,
            row_bytes: w.row_bytes,
            rows: w.rows,
            planes: w.planes,
            row_stride,
            plane_stride,
            pad_value: pad,
            x_before,
            x_after,
            y_before,
            y_after,
            z_before,
            z_after,
            ..Load::default()
        };
        if !self.fits(load.into()) {
            return Ok(false);
        }
        self.b.load(load)?;
        Ok(true)
    }

    /// Returns whether an instruction's fields can hold its values.
    fn fits(&self, op: Op) -> bool {
        unfit_reasons(&Insn::new(op), self.config).is_empty()
    }

    /// Loads entries of biases, multipliers and shifts, which the host has packed.
    fn load_params(
        &mut self,
        block: &Block,
        axes: &[Axis],
        (slot, first): (i64, i64),
        (to, source): (&Name, i64),
        elements: i64,
    ) -> Result<bool, LowerError> {
        let w = match window(axes, 1, elements, false) {
            Copied::Window(w) if w.rows == 1 && w.planes == 1 => w,
            Copied::Never(reason) => return Err(self.refuse(block, reason)),
            _ => return Ok(false),
        };
        if first % elements != 0 || source % elements != 0 {
            return Err(self.refuse(block, PART));
        }
        let Some(&base) = self.tensors.get(to) else {
            let reason = "no requantization uses this copy in param".to_string();
            return Err(self.refuse(block, reason));
        };
        let (entries, bytes) = (i64::from(w.entries), i64::from(self.config.param_entry_bytes()));
        let offset = base as i64 + source / elements * bytes;
        let row = (slot + first / elements) as u32 * PARAM_ROWS;
        let (region, length) = (self.region, (entries * bytes) as u64);
        self.b.load_linear(Mem::Param, region, offset as u64, row, length)?;
        Ok(true)
    }

    fn store(
        &mut self,
        block: &Block,
        (loops, running): (&[&For], &[Range]),
        (to, to_at): (&Name, &Affine),
        (from, from_at): (&Name, &Affine),
        size: i64,
    ) -> Result<bool, LowerError> {
        let Some(place) = self.places.get(from).cloned() else { return Ok(false) };
        if !matches!(place.mem, Mem::Out | Mem::Inp) {
            let reason = format!("{from} is in {}; stores read out or inp only", place.mem.name());
            return Err(self.refuse(block, reason));
        }
        let entry = i64::from(self.config.entry_bytes(place.mem));
        let slot = i64::from(self.slot(&place));
        let axes: Vec<Axis> = loops
            .iter()
            .zip(running)
            .map(|(l, r)| Axis {
                count: r.1 - r.0,
                memory: to_at.coefficient(&l.var) * size,
                scratchpad: from_at.coefficient(&l.var) * size,
                data: (0, r.1 - r.0),
            })
            .collect();
        let (first, target) = (begin(from_at, loops, running), begin(to_at, loops, running));
        let w = match window(&axes, size, entry, false) {
            Copied::Window(w) => w,
            Copied::Never(reason) => return Err(self.refuse(block, reason)),
            _ => return Ok(false),
        };
        if first * size % entry != 0 {
            return Err(self.refuse(block, PART));
        }
        let Some(&base) = self.tensors.get(to) else { return Ok(false) };
        let (Ok(row_stride), Ok(plane_stride)) = (u64::try_from(w.row_stride), u64::try_from(w.plane_stride)) else {
            return Ok(false);
        };
        let store = Store {
            mem: place.mem,
            base: self.region.0,
            offset: base + (target * size).unsigned_abs(),
            entry: (slot + first * size / entry) as u32,
            row_bytes: w.row_bytes,
            rows: w.rows,
            planes: w.planes,
            row_stride,
            plane_stride,
            ..Store::default()
        };
        if !self.fits(store.into()) {
            return Ok(false);
        }
        self.b.store(store)?;
        Ok(true)
    }
}

/// Returns a position in the first iterations that run.
fn begin(at: &Affine, loops: &[&For], running: &[Range]) -> i64 {
    at.constant + loops.iter().zip(running).map(|(l, r)| at.coefficient(&l.var) * r.0).sum::<i64>()
}
