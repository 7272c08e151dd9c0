//! Inner loops of matrix products, selected once by what the machine supports.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;

#[cfg(target_arch = "x86_64")]
pub(super) use avx512::quads_of_16;

use super::copies::Copies;
use super::loops::{Affine, Loops};
use tilewright_hw::config::HwConfig;

/// A way to compute matrix products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// Plain Rust.
    Portable,
    /// 256-bit multiply-add of 16-bit pairs (x86-64).
    Avx2,
    /// 512-bit dot products of bytes, and vector operations on sixteen elements at once (x86-64).
    Avx512,
}

/// Products and their loops; indices in the order acc, inp, wgt.
pub(super) struct GemmLoops<'a> {
    pub(super) loops: Loops<'a>,
    pub(super) accumulate: bool,
    /// Subtracted from every weight.
    pub(super) wgt_zp: i8,
}

/// The memories that a walk uses.
pub(super) struct Operands<'a> {
    pub(super) acc: &'a mut [i32],
    pub(super) inp: &'a [u8],
    /// Tiles as `[block_out][block_in]`.
    pub(super) wgt: &'a [u8],
    /// What the kernel reads instead of inp and wgt.
    pub(super) copies: &'a Copies,
    pub(super) batch: usize,
    pub(super) block_in: usize,
    pub(super) block_out: usize,
}

impl Kernel {
    /// Returns the fastest kernel for this configuration on this machine.
    pub(super) fn best(config: &HwConfig) -> Kernel {
        [Kernel::Avx512, Kernel::Avx2].into_iter().find(|k| k.is_usable(config)).unwrap_or(Kernel::Portable)
    }

    /// Returns whether the machine and the configuration's geometry allow this kernel.
    pub fn is_usable(self, config: &HwConfig) -> bool {
        match self {
            Kernel::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => config.block_out.is_multiple_of(8) && std::is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => {
                config.block_out.is_multiple_of(16)
                    && config.block_in.is_multiple_of(4)
                    && std::is_x86_feature_detected!("avx512f")
                    && std::is_x86_feature_detected!("avx512bw")
                    && std::is_x86_feature_detected!("avx512vl")
                    && std::is_x86_feature_detected!("avx512vnni")
                    && std::is_x86_feature_detected!("avx512vbmi")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Kernel::Avx2 | Kernel::Avx512 => {
                let _ = config;
                false
            }
        }
    }

    /// Runs a walk whose indices are all in bounds.
    pub(super) fn run(self, walk: &GemmLoops, operands: &mut Operands) {
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
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => {
                // SAFETY: `is_usable` found the instructions, block_out a multiple of 16 and block_in of 4; the caller
                // checked every index.
                unsafe {
                    match (operands.block_in, operands.block_out) {
                        (16, 16) => avx512::walk::<0, 16>(walk, operands),
                        (32, 32) => avx512::walk::<32, 32>(walk, operands),
                        (8, 16) => avx512::walk::<8, 16>(walk, operands),
                        _ => avx512::walk::<0, 0>(walk, operands),
                    }
                }
            }
            Kernel::Portable if walk.wgt_zp == 0 => walk.loops.for_each(|index| operands.tile_of_pairs(index, walk)),
            _ => walk.loops.for_each(|index| operands.tile(index, walk)),
        }
    }
}

impl GemmLoops<'_> {
    /// Returns whether the largest indices are within memories of these depths.
    pub(super) fn last_indices_fit(&self, depths: [u32; 3]) -> bool {
        (0..3).all(|i| *self.loops.span(i).end() < u64::from(depths[i]))
    }

    /// Runs until an index leaves its memory (one must) or `most` micro-ops ran. Returns how many ran.
    pub(super) fn run_checked(
        &self,
        affine: &Affine,
        uops: &[[u32; 3]],
        depths: [u32; 3],
        most: u64,
        operands: &mut Operands,
    ) -> u64 {
        let mut done = 0;
        let _ = affine.for_each(uops, |_, index| {
            let inside = index.filter(|index| (0..3).all(|i| index[i] < u64::from(depths[i])));
            let Some(index) = inside.filter(|_| done < most) else { return Err(()) };
            operands.tile(index.map(|i| i as usize), self);
            done += 1;
            Ok(())
        });
        done
    }
}

impl Operands<'_> {
    /// Runs one micro-op on widened copies of weights without a zero point.
    fn tile_of_pairs(&mut self, [acc, inp, wgt]: [usize; 3], walk: &GemmLoops) {
        let Copies::Pairs { inp: inps, wgt: wgts } = self.copies else { return };
        let (inputs, outputs) = (self.block_in, self.block_out);
        let wgt = &wgts[wgt * inputs * outputs..][..inputs * outputs];
        let rows = self.acc[acc * self.batch * outputs..].chunks_exact_mut(outputs);
        let inps = inps[inp * self.batch * inputs..].chunks_exact(inputs);
        for (acc, inp) in rows.zip(inps).take(self.batch) {
            if !walk.accumulate {
                acc.fill(0);
            }
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            if outputs.is_multiple_of(4) {
                simd128::row(acc, inp, wgt);
                continue;
            }
            for (x, w) in inp.chunks_exact(2).zip(wgt.chunks_exact(2 * outputs)) {
                for (sum, w) in acc.iter_mut().zip(w.chunks_exact(2)) {
                    let product = i32::from(x[0]) * i32::from(w[0]) + i32::from(x[1]) * i32::from(w[1]);
                    *sum = sum.wrapping_add(product);
                }
            }
        }
    }

    /// Runs one micro-op.
    fn tile(&mut self, [acc, inp, wgt]: [usize; 3], walk: &GemmLoops) {
        let (inputs, outputs) = (self.block_in, self.block_out);
        let wgt = &self.wgt[wgt * inputs * outputs..][..inputs * outputs];
        let rows = self.acc[acc * self.batch * outputs..].chunks_exact_mut(outputs);
        let inps = self.inp[inp * self.batch * inputs..].chunks_exact(inputs);
        for (acc, inp) in rows.zip(inps).take(self.batch) {
            if !walk.accumulate {
                acc.fill(0);
            }
            for (sum, wgt) in acc.iter_mut().zip(wgt.chunks_exact(inputs)) {
                let products = inp.iter().zip(wgt).map(|(x, w)| i32::from(*x as i8) * i32::from(*w as i8));
                *sum = sum.wrapping_add(products.sum::<i32>());
            }
            if walk.wgt_zp != 0 {
                // All products of a row share the zero point, so subtract it once, times the sum of the inputs.
                let inputs: i32 = inp.iter().map(|x| i32::from(*x as i8)).sum();
                let correction = inputs * i32::from(walk.wgt_zp);
                acc.iter_mut().for_each(|sum| *sum = sum.wrapping_sub(correction));
            }
        }
    }
}
