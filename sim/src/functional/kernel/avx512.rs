//! Matrix products by 512-bit dot products of unsigned and signed bytes.
//!
//! A position is one pass of the loops that leave the weights unchanged, and one row of the batch. Weights are read
//! once for eight positions, whose sums stay in registers over all micro-ops of one acc entry.

use super::{Copies, GemmLoops, Operands};
use std::arch::x86_64::*;

/// Offsets of a position's operands, in elements, added to those of a micro-op.
#[derive(Clone, Copy, Default)]
struct Position {
    acc: usize,
    inp: usize,
}

/// Number of positions gathered before they are processed.
const GATHERED: usize = 64;

/// The memories, and what all positions share.
struct RawOperands<'a> {
    acc: *mut i32,
    inp: *const u8,
    wgt: *const i8,
    excess: *const i32,
    walk: &'a GemmLoops<'a>,
    inputs: usize,
    outputs: usize,
    batch: usize,
}

/// Runs all micro-ops of a walk. `IN` and `OUT` are the geometry, or both 0 to read it from `x`.
///
/// # Safety
/// The machine must have the instructions, block_out must be a multiple of 16 and block_in of 4, and every index of the
/// walk must be in bounds.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn walk<const IN: usize, const OUT: usize>(walk: &GemmLoops, x: &mut Operands) {
    let Copies::Quads { inp, wgt, excess } = x.copies else { return };
    let raw = RawOperands {
        acc: x.acc.as_mut_ptr(),
        inp: inp.as_ptr(),
        wgt: wgt.as_ptr(),
        excess: excess.as_ptr(),
        walk,
        inputs: if IN > 0 { IN } else { x.block_in },
        outputs: if OUT > 0 { OUT } else { x.block_out },
        batch: x.batch,
    };
    // Accumulation may run in any order. Overwriting results may not: there, gather only inner loops that leave the
    // weights unchanged, and only if all micro-ops write one acc entry, so that the last micro-op wins.
    let counts = walk.loops.counts.map(|n| n as usize);
    let one_entry = walk.loops.uops.iter().all(|u| u[0] == walk.loops.uops[0][0]);
    let shares = |l: usize| counts[l] == 1 || walk.loops.steps[l][2] == 0;
    let gathered: [bool; 3] = if walk.accumulate {
        [0, 1, 2].map(shares)
    } else {
        let inner = |l: usize| one_entry && (l..3).all(shares);
        [0, 1, 2].map(inner)
    };
    let uops =
        if walk.accumulate || !one_entry { walk.loops.uops } else { &walk.loops.uops[walk.loops.uops.len() - 1..] };
    let range = |l: usize, inside: bool| 0..if gathered[l] == inside { counts[l] } else { 1 };

    let mut positions = [Position::default(); GATHERED];
    for l0 in range(0, false) {
        for l1 in range(1, false) {
            for l2 in range(2, false) {
                let outer = raw.at([0; 3], [l0, l1, l2]);
                let mut n = 0;
                for l0 in range(0, true) {
                    for l1 in range(1, true) {
                        for l2 in range(2, true) {
                            let at = raw.at(outer, [l0, l1, l2]);
                            for row in 0..raw.batch {
                                positions[n] = Position {
                                    acc: (at[0] * raw.batch + row) * raw.outputs,
                                    inp: (at[1] * raw.batch + row) * raw.inputs,
                                };
                                n += 1;
                                if n == GATHERED {
                                    // SAFETY: the same conditions as this function.
                                    unsafe { raw.positions::<IN, OUT>(&positions, uops, outer[2]) };
                                    n = 0;
                                }
                            }
                        }
                    }
                }
                // SAFETY: the same conditions as this function.
                unsafe { raw.positions::<IN, OUT>(&positions[..n], uops, outer[2]) };
            }
        }
    }
}

impl RawOperands<'_> {
    /// Returns the indices at a pass of the loops.
    #[inline(always)]
    fn at(&self, from: [usize; 3], pass: [usize; 3]) -> [usize; 3] {
        let steps = &self.walk.loops.steps;
        [0, 1, 2].map(|i| from[i] + (0..3).map(|l| pass[l] * steps[l][i] as usize).sum::<usize>())
    }

    /// Runs all micro-ops at some positions. `wgt` is added to every index of wgt.
    ///
    /// # Safety
    /// The same conditions as [`walk`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn positions<const IN: usize, const OUT: usize>(
        &self,
        positions: &[Position],
        uops: &[[u32; 3]],
        wgt: usize,
    ) {
        // SAFETY: the same conditions as this function.
        unsafe {
            if self.walk.wgt_zp == 0 {
                self.in_blocks::<IN, OUT, false>(positions, uops, wgt);
            } else {
                self.in_blocks::<IN, OUT, true>(positions, uops, wgt);
            }
        }
    }

    /// Does the work of [`RawOperands::positions`] in blocks of 8, 4 and the rest. `ZP` says whether weights have a
    /// zero point.
    ///
    /// # Safety
    /// The same conditions as [`walk`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn in_blocks<const IN: usize, const OUT: usize, const ZP: bool>(
        &self,
        positions: &[Position],
        uops: &[[u32; 3]],
        wgt: usize,
    ) {
        let runs = || uops.chunk_by(|a, b| a[0] == b[0]);
        // SAFETY: the same conditions as this function.
        unsafe {
            let (eights, rest) = positions.as_chunks::<8>();
            for eight in eights {
                runs().for_each(|run| self.run::<IN, OUT, 8, ZP>(eight, run, wgt));
            }
            let (fours, rest) = rest.as_chunks::<4>();
            for four in fours {
                runs().for_each(|run| self.run::<IN, OUT, 4, ZP>(four, run, wgt));
            }
            match rest {
                [] => {}
                [a] => runs().for_each(|run| self.run::<IN, OUT, 1, ZP>(&[*a], run, wgt)),
                [a, b] => runs().for_each(|run| self.run::<IN, OUT, 2, ZP>(&[*a, *b], run, wgt)),
                [a, b, c, ..] => runs().for_each(|run| self.run::<IN, OUT, 3, ZP>(&[*a, *b, *c], run, wgt)),
            }
        }
    }

    /// Runs the micro-ops of one acc entry at `N` positions.
    ///
    /// # Safety
    /// The same conditions as [`walk`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn run<const IN: usize, const OUT: usize, const N: usize, const ZP: bool>(
        &self,
        positions: &[Position; N],
        run: &[[u32; 3]],
        wgt: usize,
    ) {
        let walk = self.walk;
        let inputs = if IN > 0 { IN } else { self.inputs };
        let outputs = if OUT > 0 { OUT } else { self.outputs };
        let run = if walk.accumulate { run } else { &run[run.len() - 1..] };
        let ones = _mm512_set1_epi8(1);
        let from_inp = walk.loops.base[1] as usize;
        let from_wgt = walk.loops.base[2] as usize + wgt;
        let from_acc = (walk.loops.base[0] as usize + run[0][0] as usize) * self.batch * outputs;
        // SAFETY: the caller checked the indices, and the memories hold whole entries.
        unsafe {
            let inp = positions.map(|p| self.inp.add(p.inp));
            for o in (0..outputs).step_by(16) {
                let mut sums = [_mm512_setzero_si512(); N];
                let mut totals = [_mm512_setzero_si512(); N];
                let mut excess = _mm512_setzero_si512();
                for uop in run {
                    let tile = from_wgt + uop[2] as usize;
                    let wgt = self.wgt.add(tile * inputs * outputs + o * 4);
                    let entry = (from_inp + uop[1] as usize) * self.batch * inputs;
                    excess = _mm512_add_epi32(excess, _mm512_loadu_si512(self.excess.add(tile * outputs + o).cast()));
                    for quad in 0..inputs / 4 {
                        let w = _mm512_loadu_si512(wgt.add(quad * outputs * 4).cast());
                        for p in 0..N {
                            let four = inp[p].add(entry + quad * 4).cast::<i32>().read_unaligned();
                            let x = _mm512_set1_epi32(four);
                            sums[p] = _mm512_dpbusd_epi32(sums[p], x, w);
                            if ZP {
                                totals[p] = _mm512_dpbusd_epi32(totals[p], x, ones);
                            }
                        }
                    }
                }
                // Subtract the weights' zero point once, times the sum of the inputs. That sum is 128 too high per
                // input.
                let zero = _mm512_set1_epi32(walk.wgt_zp.into());
                let all = _mm512_set1_epi32((128 * inputs as i32).wrapping_mul(run.len() as i32));
                for p in 0..N {
                    let mut sum = _mm512_sub_epi32(sums[p], excess);
                    if ZP {
                        let total = _mm512_sub_epi32(totals[p], all);
                        sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(total, zero));
                    }
                    let acc = self.acc.add(positions[p].acc + from_acc + o).cast::<__m512i>();
                    if walk.accumulate {
                        sum = _mm512_add_epi32(sum, _mm512_loadu_si512(acc));
                    }
                    _mm512_storeu_si512(acc, sum);
                }
            }
        }
    }
}

/// Picks quads 0 and 1 of eight rows from two registers of four rows each.
const QUADS_0_1: [i32; 16] = [0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29];
/// Picks quads 2 and 3 of eight rows from two registers of four rows each.
const QUADS_2_3: [i32; 16] = [2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31];

/// Reorders a tile of `[outputs][16]` bytes to `[4][outputs][4]`, and writes 128 times the sum of each output's bytes
/// to `excess`.
///
/// # Panics
/// If `outputs` is not a multiple of 16, or a slice is too short for it.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(in super::super) fn quads_of_16(tile: &[u8], copy: &mut [i8], excess: &mut [i32], outputs: usize) {
    assert!(outputs.is_multiple_of(16) && tile.len() >= 16 * outputs && copy.len() >= 16 * outputs);
    assert!(excess.len() >= outputs);
    // SAFETY: both arrays have sixteen words.
    let (first, second) =
        unsafe { (_mm512_loadu_si512(QUADS_0_1.as_ptr().cast()), _mm512_loadu_si512(QUADS_2_3.as_ptr().cast())) };
    for o in (0..outputs).step_by(16) {
        // SAFETY: the slices hold `outputs` rows, and `o` is at most `outputs` - 16.
        unsafe {
            let rows = tile.as_ptr().add(o * 16).cast::<__m512i>();
            let [r0, r1, r2, r3] = [
                _mm512_loadu_si512(rows),
                _mm512_loadu_si512(rows.add(1)),
                _mm512_loadu_si512(rows.add(2)),
                _mm512_loadu_si512(rows.add(3)),
            ];
            let mut sum = _mm512_setzero_si512();
            let (upper, lower) = (_mm512_permutex2var_epi32(r0, first, r1), _mm512_permutex2var_epi32(r2, first, r3));
            let (upper_2, lower_2) =
                (_mm512_permutex2var_epi32(r0, second, r1), _mm512_permutex2var_epi32(r2, second, r3));
            let quads = [
                _mm512_shuffle_i64x2::<0x44>(upper, lower),
                _mm512_shuffle_i64x2::<0xee>(upper, lower),
                _mm512_shuffle_i64x2::<0x44>(upper_2, lower_2),
                _mm512_shuffle_i64x2::<0xee>(upper_2, lower_2),
            ];
            for (k, quad) in quads.into_iter().enumerate() {
                _mm512_storeu_si512(copy.as_mut_ptr().add(k * outputs * 4 + o * 4).cast(), quad);
                // -128 is 128 as an unsigned byte.
                sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(-128), quad);
            }
            _mm512_storeu_si512(excess.as_mut_ptr().add(o).cast(), sum);
        }
    }
}
