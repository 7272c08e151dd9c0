//! Affine loops over micro-ops, with a fast path for when all indices are known to be in bounds.

use std::ops::RangeInclusive;
use tilewright_hw::isa::{Gemm, Vector};

/// An instruction's micro-ops and loops, as its fields give them. Each micro-op has three indices: acc, inp and wgt, or
/// dst, a and b.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Affine {
    /// The first micro-op, and the number of micro-ops per pass.
    pub(crate) uop: u32,
    pub(crate) uops: u32,
    /// Iterations, from the outer loop to the inner one.
    pub(crate) counts: [u32; 3],
    /// Added to every index.
    pub(crate) base: [u32; 3],
    /// `[loop][index]`.
    pub(crate) steps: [[u32; 3]; 3],
}

impl From<&Gemm> for Affine {
    fn from(x: &Gemm) -> Affine {
        Affine {
            uop: x.uop,
            uops: x.uops,
            counts: [x.count0, x.count1, x.count2],
            base: [x.acc, x.inp, x.wgt],
            steps: [[x.acc0, x.inp0, x.wgt0], [x.acc1, x.inp1, x.wgt1], [x.acc2, x.inp2, x.wgt2]],
        }
    }
}

impl From<&Vector> for Affine {
    fn from(x: &Vector) -> Affine {
        Affine {
            uop: x.uop,
            uops: x.uops,
            counts: [x.count0, x.count1, x.count2],
            base: [x.dst_at, x.a_at, x.b_at],
            steps: [[x.dst0, x.a0, x.b0], [x.dst1, x.a1, x.b1], [x.dst2, x.a2, x.b2]],
        }
    }
}

impl Affine {
    /// Visits each micro-op in order with its place and its indices, until `visit` returns an error. The indices are
    /// `None` if the micro-op is outside its memory.
    pub(crate) fn for_each<E>(
        &self,
        memory: &[[u32; 3]],
        mut visit: impl FnMut(u32, Option<[u64; 3]>) -> Result<(), E>,
    ) -> Result<(), E> {
        let wide = |v: [u32; 3]| v.map(u64::from);
        let on = |at: [u64; 3], by: [u64; 3]| [at[0] + by[0], at[1] + by[1], at[2] + by[2]];
        let steps = self.steps.map(wide);
        let mut at0 = wide(self.base);
        for _ in 0..self.counts[0] {
            let mut at1 = at0;
            for _ in 0..self.counts[1] {
                let mut at2 = at1;
                for _ in 0..self.counts[2] {
                    for u in self.uop..self.uop + self.uops {
                        visit(u, memory.get(u as usize).map(|uop| on(wide(*uop), at2)))?;
                    }
                    at2 = on(at2, steps[2]);
                }
                at1 = on(at1, steps[1]);
            }
            at0 = on(at0, steps[0]);
        }
        Ok(())
    }
}

/// Micro-ops and the loops around them; three indices per micro-op.
pub(super) struct Loops<'a> {
    pub(super) uops: &'a [[u32; 3]],
    pub(super) counts: [u32; 3],
    /// Added to every index.
    pub(super) base: [u32; 3],
    /// `[loop][index]`.
    pub(super) steps: [[u32; 3]; 3],
}

impl<'a> Loops<'a> {
    /// Builds the loops of an instruction over the part of its micro-ops that is inside `memory`. Loops of one
    /// iteration move outside, so that the inner ones are long.
    pub(super) fn new(memory: &'a [[u32; 3]], x: &Affine) -> Loops<'a> {
        let (first, end) = (x.uop as usize, x.uop as usize + x.uops as usize);
        let uops = &memory[first.min(memory.len())..end.min(memory.len())];
        let mut order = [0, 1, 2];
        order.sort_by_key(|l| x.counts[*l] > 1);
        Loops { uops, counts: order.map(|l| x.counts[l]), base: x.base, steps: order.map(|l| x.steps[l]) }
    }

    /// Returns the smallest and largest value of index `i` over all passes. There must be at least one micro-op.
    pub(super) fn span(&self, i: usize) -> RangeInclusive<u64> {
        let of_uops = self.uops.iter().map(|u| u64::from(u[i]));
        let (least, greatest) = of_uops.fold((u64::MAX, 0), |(least, greatest), u| (least.min(u), greatest.max(u)));
        let loops: u64 = (0..3).map(|l| u64::from(self.counts[l] - 1) * u64::from(self.steps[l][i])).sum();
        let base = u64::from(self.base[i]);
        least.saturating_add(base)..=greatest + base + loops
    }

    /// Returns whether there is a single micro-op and no two passes have the same index `i`.
    pub(super) fn is_injective(&self, i: usize) -> bool {
        let mut loops: Vec<(u64, u64)> = (0..3)
            .filter(|l| self.counts[*l] > 1)
            .map(|l| (u64::from(self.steps[l][i]), u64::from(self.counts[l] - 1)))
            .collect();
        loops.sort_unstable();
        let mut reach = 0;
        self.uops.len() == 1
            && loops.iter().all(|(step, passes)| {
                let clear = *step > reach;
                reach += step * passes;
                clear
            })
    }

    /// Visits the indices of every micro-op in order. None may exceed 32 bits.
    #[inline(always)]
    pub(super) fn for_each(&self, mut visit: impl FnMut([usize; 3])) {
        let at = |base: [u32; 3], step: [u32; 3], n: u32| [0, 1, 2].map(|i| base[i] + step[i] * n);
        for l0 in 0..self.counts[0] {
            let base = at(self.base, self.steps[0], l0);
            for l1 in 0..self.counts[1] {
                let base = at(base, self.steps[1], l1);
                for l2 in 0..self.counts[2] {
                    let base = at(base, self.steps[2], l2);
                    for uop in self.uops {
                        visit([0, 1, 2].map(|i| (base[i] + uop[i]) as usize));
                    }
                }
            }
        }
    }
}
