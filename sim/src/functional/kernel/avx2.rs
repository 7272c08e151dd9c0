//! Matrix products by 256-bit multiply-add of 16-bit pairs.

use super::{Copies, GemmLoops, Operands};
use std::arch::x86_64::*;

/// Runs all micro-ops of a walk. `IN`, `OUT` and `BATCH` are the geometry, or all 0 to read it from `x`.
///
/// # Safety
/// The machine must have AVX2, block_out must be a multiple of 8, and every index of the walk must be in bounds.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn walk<const IN: usize, const OUT: usize, const BATCH: usize>(walk: &GemmLoops, x: &mut Operands) {
    let inputs = if IN > 0 { IN } else { x.block_in };
    let outputs = if OUT > 0 { OUT } else { x.block_out };
    let batch = if BATCH > 0 { BATCH } else { x.batch };
    let Copies::Pairs { inp, wgt } = x.copies else { return };
    let (acc, inp, wgt) = (x.acc.as_mut_ptr(), inp.as_ptr(), wgt.as_ptr());
    let accumulate = walk.accumulate;
    walk.loops.for_each(|[a, i, w]| {
        // SAFETY: the caller checked the indices, and the memories hold whole entries.
        unsafe {
            let wgt = wgt.add(w * inputs * outputs);
            for row in 0..batch {
                let acc = acc.add((a * batch + row) * outputs);
                let inp = inp.add((i * batch + row) * inputs).cast::<i32>();
                let mut o = 0;
                while o + 16 <= outputs {
                    columns::<2>(acc.add(o), inp, wgt.add(o * 2), [inputs, outputs], accumulate);
                    o += 16;
                }
                if o < outputs {
                    columns::<1>(acc.add(o), inp, wgt.add(o * 2), [inputs, outputs], accumulate);
                }
            }
        }
    });
}

/// Computes 8 x `N` outputs of one row. Each pair of inputs is broadcast once for all of them; even and odd pairs have
/// their own sums.
///
/// # Safety
/// The machine must have AVX2. The pointers must be those of the first output, of the row's input pairs, and of the
/// outputs' first weights.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn columns<const N: usize>(
    acc: *mut i32,
    inp: *const i32,
    wgt: *const i16,
    [inputs, outputs]: [usize; 2],
    accumulate: bool,
) {
    // SAFETY: the caller guarantees the conditions above.
    unsafe {
        let zero = _mm256_setzero_si256();
        let (mut even, mut odd) = ([zero; N], [zero; N]);
        let weights = |pair: usize, k: usize| _mm256_loadu_si256(wgt.add(pair * outputs * 2 + k * 16).cast());
        let mut pair = 0;
        while pair + 1 < inputs / 2 {
            let x0 = _mm256_set1_epi32(inp.add(pair).read_unaligned());
            let x1 = _mm256_set1_epi32(inp.add(pair + 1).read_unaligned());
            for k in 0..N {
                even[k] = _mm256_add_epi32(even[k], _mm256_madd_epi16(weights(pair, k), x0));
                odd[k] = _mm256_add_epi32(odd[k], _mm256_madd_epi16(weights(pair + 1, k), x1));
            }
            pair += 2;
        }
        if pair < inputs / 2 {
            let x0 = _mm256_set1_epi32(inp.add(pair).read_unaligned());
            for (k, even) in even.iter_mut().enumerate() {
                *even = _mm256_add_epi32(*even, _mm256_madd_epi16(weights(pair, k), x0));
            }
        }
        for (k, (even, odd)) in even.into_iter().zip(odd).enumerate() {
            let mut sum = _mm256_add_epi32(even, odd);
            let acc = acc.add(8 * k).cast::<__m256i>();
            if accumulate {
                sum = _mm256_add_epi32(sum, _mm256_loadu_si256(acc));
            }
            _mm256_storeu_si256(acc, sum);
        }
    }
}
