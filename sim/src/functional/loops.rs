//! Micro-ops under their affine loops, in fewer steps than one by one where every index is known to lie in its memory.

use std::ops::RangeInclusive;

/// Micro-ops and the loops around them; three indices each.
pub(super) struct Loops<'a> {
    pub(super) uops: &'a [[u32; 3]],
    pub(super) counts: [u32; 3],
    /// Added to every index.
    pub(super) base: [u32; 3],
    /// `[loop][index]`.
    pub(super) steps: [[u32; 3]; 3],
}

impl<'a> Loops<'a> {
    /// Loops of one pass go outside, so that the inner ones are long.
    pub(super) fn new(uops: &'a [[u32; 3]], counts: [u32; 3], base: [u32; 3], steps: [[u32; 3]; 3]) -> Loops<'a> {
        let mut order = [0, 1, 2];
        order.sort_by_key(|l| counts[*l] > 1);
        Loops { uops, counts: order.map(|l| counts[l]), base, steps: order.map(|l| steps[l]) }
    }

    /// The least and the greatest of index `i` over all passes; there is a micro-op.
    pub(super) fn span(&self, i: usize) -> RangeInclusive<u64> {
        let of_uops = self.uops.iter().map(|u| u64::from(u[i]));
        let (least, greatest) = of_uops.fold((u64::MAX, 0), |(least, greatest), u| (least.min(u), greatest.max(u)));
        let loops: u64 = (0..3).map(|l| u64::from(self.counts[l] - 1) * u64::from(self.steps[l][i])).sum();
        let base = u64::from(self.base[i]);
        least.saturating_add(base)..=greatest + base + loops
    }

    /// Whether no two passes of a single micro-op have the same index `i`.
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

    /// Visits the indices of every micro-op in order; none of them passes 32 bits.
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
