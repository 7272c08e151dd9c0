//! Matrix products in WebAssembly, by 128-bit multiply-add of 16-bit pairs.

use std::arch::wasm32::*;

/// Adds the products of one row of inputs with a tile of weights, `[inputs / 2][outputs][2]`, to a row of outputs, whose
/// number is a multiple of 4.
pub(super) fn row(acc: &mut [i32], inp: &[i16], wgt: &[i16]) {
    let outputs = acc.len();
    let mut o = 0;
    while o + 16 <= outputs {
        columns::<4>(&mut acc[o..o + 16], inp, &wgt[2 * o..], outputs);
        o += 16;
    }
    while o + 4 <= outputs {
        columns::<1>(&mut acc[o..o + 4], inp, &wgt[2 * o..], outputs);
        o += 4;
    }
}

/// Computes 4 x `N` outputs. Their weights for one pair of inputs are next to each other, and those for the next pair
/// follow after 2 x `outputs` weights.
#[inline]
fn columns<const N: usize>(acc: &mut [i32], inp: &[i16], wgt: &[i16], outputs: usize) {
    assert!(acc.len() == 4 * N && wgt.len() >= inp.len().saturating_sub(2) * outputs + 8 * N);
    let (acc, wgt) = (acc.as_mut_ptr().cast::<v128>(), wgt.as_ptr());
    // SAFETY: `acc` has `N` vectors.
    let mut sums: [v128; N] = std::array::from_fn(|k| unsafe { v128_load(acc.add(k)) });
    for (pair, x) in inp.as_chunks::<2>().0.iter().enumerate() {
        let x = i32x4_splat(i32::from(x[0] as u16) | i32::from(x[1]) << 16);
        for (k, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the pair is below half of `inp.len()`, so the length that is checked above covers it.
            let weights = unsafe { v128_load(wgt.add(2 * pair * outputs + 8 * k).cast()) };
            *sum = i32x4_add(*sum, i32x4_dot_i16x8(weights, x));
        }
    }
    for (k, sum) in sums.into_iter().enumerate() {
        // SAFETY: as above.
        unsafe { v128_store(acc.add(k), sum) };
    }
}
