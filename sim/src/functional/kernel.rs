//! The inner loops of matrix products, chosen once by what the machine offers.

use tilewright_hw::config::HwConfig;

/// A way to compute matrix products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// Plain Rust.
    Portable,
    /// 256-bit multiply-add of 16-bit pairs (x86-64).
    Avx2,
}

/// Micro-ops under their loops; indices in the order acc, inp, wgt.
pub(super) struct Walk<'a> {
    pub(super) uops: &'a [[u32; 3]],
    pub(super) counts: [u32; 3],
    pub(super) base: [u32; 3],
    /// `[loop][index]`.
    pub(super) steps: [[u32; 3]; 3],
    pub(super) accumulate: bool,
    /// Subtracted from every weight.
    pub(super) wgt_zp: i8,
}

/// The memories that a walk touches.
pub(super) struct Operands<'a> {
    pub(super) acc: &'a mut [i32],
    pub(super) inp: &'a [i16],
    /// Tiles as `[block_in / 2][block_out][2]`.
    pub(super) wgt: &'a [i16],
    pub(super) batch: usize,
    pub(super) block_in: usize,
    pub(super) block_out: usize,
}

impl Kernel {
    /// The fastest way for this configuration on this machine.
    pub(super) fn best(config: &HwConfig) -> Kernel {
        if Kernel::Avx2.is_usable(config) { Kernel::Avx2 } else { Kernel::Portable }
    }

    /// Whether the machine and the configuration's geometry allow it.
    pub fn is_usable(self, config: &HwConfig) -> bool {
        match self {
            Kernel::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => config.block_out.is_multiple_of(8) && std::is_x86_feature_detected!("avx2"),
            #[cfg(not(target_arch = "x86_64"))]
            Kernel::Avx2 => false,
        }
    }

    /// Runs a walk whose indices all lie in their memories.
    pub(super) fn run(self, walk: &Walk, operands: &mut Operands) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 if walk.wgt_zp == 0 => {
                // SAFETY: `is_usable` found AVX2 and block_out a multiple of 8; the caller checked every index.
                unsafe {
                    match (operands.block_in, operands.block_out, operands.batch) {
                        (16, 16, 1) => avx2::walk::<16, 16, 1>(walk, operands),
                        (16, 16, 4) => avx2::walk::<16, 16, 4>(walk, operands),
                        (32, 32, 1) => avx2::walk::<32, 32, 1>(walk, operands),
                        (8, 16, 1) => avx2::walk::<8, 16, 1>(walk, operands),
                        (8, 8, 1) => avx2::walk::<8, 8, 1>(walk, operands),
                        _ => avx2::walk::<0, 0, 0>(walk, operands),
                    }
                }
            }
            _ => walk.for_each(|acc, inp, wgt| operands.tile(acc, inp, wgt, walk)),
        }
    }
}

impl Walk<'_> {
    /// Whether the greatest indices lie inside memories of these depths.
    pub(super) fn last_indices_fit(&self, depths: [u32; 3]) -> bool {
        (0..3).all(|i| {
            let uop = self.uops.iter().map(|u| u64::from(u[i])).max().unwrap_or(0);
            let loops: u64 = (0..3).map(|l| u64::from(self.counts[l] - 1) * u64::from(self.steps[l][i])).sum();
            uop + u64::from(self.base[i]) + loops < u64::from(depths[i])
        })
    }

    #[inline(always)]
    fn for_each(&self, mut tile: impl FnMut(usize, usize, usize)) {
        let at = |base: [u32; 3], step: [u32; 3], n: u32| [0, 1, 2].map(|i| base[i] + step[i] * n);
        for l0 in 0..self.counts[0] {
            let base = at(self.base, self.steps[0], l0);
            for l1 in 0..self.counts[1] {
                let base = at(base, self.steps[1], l1);
                for l2 in 0..self.counts[2] {
                    let base = at(base, self.steps[2], l2);
                    for uop in self.uops {
                        let index = [0, 1, 2].map(|i| (base[i] + uop[i]) as usize);
                        tile(index[0], index[1], index[2]);
                    }
                }
            }
        }
    }

    /// Runs until an index leaves its memory, which it does: at this micro-op, counted from 0 over all loops.
    pub(super) fn run_checked(&self, uops: usize, depths: [u32; 3], operands: &mut Operands) -> u64 {
        let counts = self.counts.map(u64::from);
        let mut done = 0;
        for l0 in 0..counts[0] {
            for l1 in 0..counts[1] {
                for l2 in 0..counts[2] {
                    for u in 0..uops {
                        let Some(uop) = self.uops.get(u) else { return done };
                        let index = [0, 1, 2].map(|i| {
                            let steps = [l0, l1, l2].into_iter().zip(&self.steps).map(|(n, s)| n * u64::from(s[i]));
                            u64::from(uop[i]) + u64::from(self.base[i]) + steps.sum::<u64>()
                        });
                        if (0..3).any(|i| index[i] >= u64::from(depths[i])) {
                            return done;
                        }
                        let [acc, inp, wgt] = index.map(|i| i as usize);
                        operands.tile(acc, inp, wgt, self);
                        done += 1;
                    }
                }
            }
        }
        done
    }
}

impl Operands<'_> {
    /// One micro-op.
    fn tile(&mut self, acc: usize, inp: usize, wgt: usize, walk: &Walk) {
        let (inputs, outputs) = (self.block_in, self.block_out);
        let wgt = &self.wgt[wgt * inputs * outputs..][..inputs * outputs];
        let rows = self.acc[acc * self.batch * outputs..].chunks_exact_mut(outputs);
        let inps = self.inp[inp * self.batch * inputs..].chunks_exact(inputs);
        for (acc, inp) in rows.zip(inps).take(self.batch) {
            if !walk.accumulate {
                acc.fill(0);
            }
            for (x, w) in inp.chunks_exact(2).zip(wgt.chunks_exact(2 * outputs)) {
                for (sum, w) in acc.iter_mut().zip(w.chunks_exact(2)) {
                    let product = i32::from(x[0]) * i32::from(w[0]) + i32::from(x[1]) * i32::from(w[1]);
                    *sum = sum.wrapping_add(product);
                }
            }
            if walk.wgt_zp != 0 {
                // The zero point is the same for all of a row's products, so it comes once, times their inputs' sum.
                let inputs: i32 = inp.iter().map(|x| i32::from(*x)).sum();
                let correction = inputs * i32::from(walk.wgt_zp);
                acc.iter_mut().for_each(|sum| *sum = sum.wrapping_sub(correction));
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Operands, Walk};
    use std::arch::x86_64::*;

    /// All micro-ops of a walk. `IN`, `OUT` and `BATCH` are the geometry, or all 0 where it is not known here.
    ///
    /// # Safety
    /// The machine has AVX2, block_out is a multiple of 8, and every index of the walk lies in its memory.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn walk<const IN: usize, const OUT: usize, const BATCH: usize>(walk: &Walk, x: &mut Operands) {
        let inputs = if IN > 0 { IN } else { x.block_in };
        let outputs = if OUT > 0 { OUT } else { x.block_out };
        let batch = if BATCH > 0 { BATCH } else { x.batch };
        let (acc, inp, wgt) = (x.acc.as_mut_ptr(), x.inp.as_ptr(), x.wgt.as_ptr());
        let accumulate = walk.accumulate;
        walk.for_each(|a, i, w| {
            // SAFETY: the caller checked the indices, and the memories hold whole entries.
            unsafe {
                let wgt = wgt.add(w * inputs * outputs);
                for row in 0..batch {
                    let acc = acc.add((a * batch + row) * outputs);
                    let inp = inp.add((i * batch + row) * inputs).cast::<i32>();
                    for o in (0..outputs).step_by(8) {
                        let wgt = wgt.add(o * 2);
                        let mut even = _mm256_setzero_si256();
                        let mut odd = _mm256_setzero_si256();
                        let mut pair = 0;
                        while pair + 1 < inputs / 2 {
                            let w0 = _mm256_loadu_si256(wgt.add(pair * outputs * 2).cast());
                            let w1 = _mm256_loadu_si256(wgt.add((pair + 1) * outputs * 2).cast());
                            let x0 = _mm256_set1_epi32(inp.add(pair).read_unaligned());
                            let x1 = _mm256_set1_epi32(inp.add(pair + 1).read_unaligned());
                            even = _mm256_add_epi32(even, _mm256_madd_epi16(w0, x0));
                            odd = _mm256_add_epi32(odd, _mm256_madd_epi16(w1, x1));
                            pair += 2;
                        }
                        if pair < inputs / 2 {
                            let w0 = _mm256_loadu_si256(wgt.add(pair * outputs * 2).cast());
                            let x0 = _mm256_set1_epi32(inp.add(pair).read_unaligned());
                            even = _mm256_add_epi32(even, _mm256_madd_epi16(w0, x0));
                        }
                        let mut sum = _mm256_add_epi32(even, odd);
                        let acc = acc.add(o).cast::<__m256i>();
                        if accumulate {
                            sum = _mm256_add_epi32(sum, _mm256_loadu_si256(acc));
                        }
                        _mm256_storeu_si256(acc, sum);
                    }
                }
            }
        });
    }
}
