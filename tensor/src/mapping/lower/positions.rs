//! Where elements are: indices, entries and slots, given the iterations that are running.

use std::rc::Rc;

use super::{LoopSum, Lower, NO_LOOP};
use crate::mapping::error::LowerError;
use crate::mapping::memory::Place;
use crate::te::{Expr, Name};
use crate::tir::{Affine, Block, View, simplify};

impl<'l> Lower<'l> {
    /// Returns the value of a loop that runs one iteration after the other.
    pub fn value(&self, loop_: &Name) -> Option<i64> {
        self.values.get(*self.numbers.get(loop_)?).copied().flatten()
    }

    /// Returns an index as an affine function of the loops that are not running yet; `None` if it is not affine.
    pub fn affine(&self, e: &'l Expr) -> Option<Affine> {
        self.put_in((e, 0), || Affine::of(e)).or_else(|| {
            // With the values of the loops, it can become affine.
            let known = e.substitute(&|v| self.value(v).map(Expr::int));
            Affine::of(&simplify(&known, &self.bounds))
        })
    }

    /// Returns the position of an element in its memory from the buffer's first element on; `None` if an index is not
    /// affine.
    pub fn position(&self, buffer: &Name, indices: &'l [Expr]) -> Option<Affine> {
        let shape = &self.f.buffer(buffer)?.shape;
        let strides = self.places.get(buffer).and_then(|place| place.strides.as_ref());
        let row_by_row = |index: &dyn Fn(&'l Expr) -> Option<Affine>| {
            let mut at = Affine::default();
            if let Some(strides) = strides {
                for (e, &step) in indices.iter().zip(strides) {
                    at = at.plus(&index(e)?, step);
                }
                return Some(at);
            }
            for (e, &n) in indices.iter().zip(shape) {
                at = at.times(n).plus(&index(e)?, 1);
            }
            Some(at)
        };
        // The elements of a list of indices belong to one buffer.
        self.put_in((indices.as_ptr(), indices.len()), || row_by_row(&|e| Affine::of(e)))
            .or_else(|| row_by_row(&|e| self.affine(e)))
    }

    /// Returns a sum over all loops with the values of those that are running. `make` returns the sum when it is needed
    /// for the first time.
    fn put_in(&self, key: (*const Expr, usize), make: impl FnOnce() -> Option<Affine>) -> Option<Affine> {
        let number = |v: &Name| self.numbers.get(v).copied().unwrap_or(NO_LOOP);
        let over_loops = |sum: Affine| {
            let terms = sum.terms.into_iter().map(|(v, c)| (number(&v), v, c)).collect();
            Rc::new(LoopSum { constant: sum.constant, terms })
        };
        let sum = self.sums.borrow_mut().entry(key).or_insert_with(|| make().map(over_loops)).clone()?;
        let mut now = Affine { constant: sum.constant, ..Affine::default() };
        for (number, v, c) in &sum.terms {
            match self.values.get(*number).copied().flatten() {
                Some(value) => now.constant = now.constant.wrapping_add(c.wrapping_mul(value)),
                None => now.terms.insert(v.clone(), *c),
            }
        }
        Some(now)
    }

    /// Returns the first entry of a buffer, in the slot of the running iteration.
    pub fn slot(&self, place: &Place) -> u32 {
        let begun = place.pipeline.as_ref().and_then(|l| self.begun.get(l)).copied().unwrap_or(0);
        place.slot(begun.saturating_sub(1))
    }

    /// Returns the entry at which an argument of an instruction begins, over the loops that are not running yet.
    ///
    /// # Errors
    /// The argument is not one entry.
    pub fn entry(&self, block: &Block, view: &'l View, shape: &[i64]) -> Result<Option<Affine>, LowerError> {
        let Some(at) = self.position(&view.buffer, &view.indices) else { return Ok(None) };
        self.entry_at(block, view, shape, at).map(Some)
    }

    /// Returns the entry at a position of an argument's buffer.
    ///
    /// # Errors
    /// The argument is not one entry.
    pub fn entry_at(&self, block: &Block, view: &View, shape: &[i64], at: Affine) -> Result<Affine, LowerError> {
        let Some(place) = self.places.get(&view.buffer) else {
            return Err(self.refuse(block, format!("its operand {} is not in a scratchpad", view.buffer)));
        };
        let (within, mut start) = at.partition(|v| view.dims.contains(v));
        let mut stride = 1;
        for (dim, &n) in view.dims.iter().zip(shape).rev() {
            if n > 1 && within.coefficient(dim) != stride {
                let reason = format!(
                    "an entry of {} is not stored as one: its elements are {} apart instead of {stride}; make the \
                     last dimensions of the tensor those of an entry, {shape:?}",
                    view.buffer,
                    within.coefficient(dim)
                );
                return Err(self.refuse(block, reason));
            }
            stride *= n;
        }
        let whole = |v: i64| v % place.elements == 0;
        if !whole(start.constant) || !start.terms.values().all(whole) {
            let reason = format!(
                "an entry of {} begins at element {}; entries have {} elements",
                view.buffer,
                start.to_expr(),
                place.elements
            );
            return Err(self.refuse(block, reason));
        }
        start.constant /= place.elements;
        start.terms.values_mut().for_each(|c| *c /= place.elements);
        start.constant += i64::from(self.slot(place));
        Ok(start)
    }
}
