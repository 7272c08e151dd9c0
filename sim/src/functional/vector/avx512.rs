//! Rows of sixteen elements at once. The arithmetic is that of `tilewright_hw::num`, against which the tests hold it.

use super::super::state::State;
use super::Constants;
use super::plan::Plan;
use std::arch::x86_64::*;
use tilewright_hw::isa::{PARAM_ROWS, VecDst, VecOp, VecSrc, Vector};
use tilewright_hw::num::Rounding;

/// The memories behind the operands.
#[derive(Clone, Copy)]
struct Memories {
    acc: *mut i32,
    out: *mut u8,
    inp: *mut u8,
    param: *const u8,
    words: *const i32,
}

/// Bounds before the zero point is added.
struct Bounds {
    lo: __m512i,
    hi: __m512i,
    zero_point: __m512i,
}

/// A scale in *double* mode: shifts left before the product and right after it.
struct Double {
    left: __m512i,
    multiplier: __m512i,
    right: __m512i,
}

/// Runs an instruction; `false` where its constants need the general way, and nothing was done.
///
/// # Safety
/// The machine has the instructions, block_out, the second of `sizes`, is a multiple of 16, the first is a row's elements,
/// the plan's indices lie in their memories, and the words of param entries that it reads are up to date.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) unsafe fn run(
    x: &Vector,
    plan: &Plan,
    Constants { descriptor: d, table }: &Constants,
    state: &mut State,
    sizes: [u32; 2],
) -> bool {
    let memories = Memories {
        acc: state.acc.as_mut_ptr(),
        out: state.out.as_mut_ptr(),
        inp: state.inp.as_mut_ptr(),
        param: state.param.as_ptr(),
        words: state.words().as_ptr(),
    };
    let [n, outputs] = sizes.map(|s| s as usize);
    let zero = _mm512_setzero_si512();
    let deep = matches!(x.op, VecOp::Requant | VecOp::Mul | VecOp::Qadd);
    let bounds = match Bounds::new(d.zero_point, d.lo, d.hi) {
        Some(bounds) => bounds,
        None if deep => return false,
        // Other operations do not look at them.
        None => Bounds { lo: zero, hi: zero, zero_point: zero },
    };
    let scalar = _mm512_set1_epi32(d.scalar);
    let (zero_a, zero_b) = (_mm512_set1_epi32(d.zero_a.into()), _mm512_set1_epi32(d.zero_b.into()));
    // SAFETY: the caller checked the indices, and offsets stay inside a row.
    unsafe {
        let m = memories;
        let a = |at: usize, e: usize| load(m, x.a, at, e, [n, outputs], scalar);
        let b = |at: usize, e: usize| load(m, x.b, at, e, [n, outputs], scalar);
        let store = |at: usize, e: usize, y| store(m, x.dst, at * n + e, y);
        macro_rules! rows {
            (|$index:ident, $e:ident| $y:expr) => {
                plan.loops.for_each(|$index| {
                    for $e in (0..n).step_by(16) {
                        store($index[0], $e, $y);
                    }
                })
            };
        }
        match x.op {
            VecOp::Move => rows!(|i, e| a(i[1], e)),
            VecOp::Min => rows!(|i, e| _mm512_min_epi32(a(i[1], e), b(i[2], e))),
            VecOp::Max => rows!(|i, e| _mm512_max_epi32(a(i[1], e), b(i[2], e))),
            VecOp::Add => rows!(|i, e| _mm512_add_epi32(a(i[1], e), b(i[2], e))),
            VecOp::Sub => rows!(|i, e| _mm512_sub_epi32(a(i[1], e), b(i[2], e))),
            VecOp::Shr => {
                let low = _mm512_set1_epi32(31);
                rows!(|i, e| _mm512_srav_epi32(a(i[1], e), _mm512_and_si512(b(i[2], e), low)));
            }
            VecOp::Clip => {
                let (lo, hi) = (_mm512_set1_epi32(d.lo), _mm512_set1_epi32(d.hi));
                rows!(|i, e| _mm512_max_epi32(lo, _mm512_min_epi32(hi, a(i[1], e))));
            }
            VecOp::Requant => {
                let words = |at: usize, k: usize, e: usize| {
                    _mm512_loadu_si512(m.words.add((at * 3 + k) * outputs + e % outputs).cast())
                };
                match x.mode {
                    Rounding::Double => rows!(|i, e| {
                        let biased = _mm512_add_epi32(a(i[1], e), words(i[2], 0, e));
                        let scale = Double::new(words(i[2], 1, e), words(i[2], 2, e));
                        bounds.apply(scale.apply(biased))
                    }),
                    Rounding::Single => rows!(|i, e| {
                        let biased = _mm512_add_epi32(a(i[1], e), words(i[2], 0, e));
                        bounds.apply(single(biased, words(i[2], 1, e), words(i[2], 2, e)))
                    }),
                }
            }
            VecOp::Mul => {
                let multiplier = _mm512_set1_epi32(d.multiplier);
                let shift = _mm512_set1_epi32(d.shift.into());
                let product = |i: [usize; 3], e: usize| {
                    _mm512_mullo_epi32(_mm512_sub_epi32(a(i[1], e), zero_a), _mm512_sub_epi32(b(i[2], e), zero_b))
                };
                match x.mode {
                    Rounding::Double => {
                        let scale = Double::new(multiplier, shift);
                        rows!(|i, e| bounds.apply(scale.apply(product(i, e))));
                    }
                    Rounding::Single => rows!(|i, e| bounds.apply(single(product(i, e), multiplier, shift))),
                }
            }
            VecOp::Qadd => {
                let left = _mm512_set1_epi32((d.left_shift & 31).into());
                let scale = |m: i32, s: i8| Double::new(_mm512_set1_epi32(m), _mm512_set1_epi32(s.into()));
                let scale_a = scale(d.multiplier_a, d.shift_a);
                let scale_b = scale(d.multiplier_b, d.shift_b);
                let scale_sum = scale(d.multiplier, d.shift);
                rows!(|i, e| {
                    let a = scale_a.apply(_mm512_sllv_epi32(_mm512_sub_epi32(a(i[1], e), zero_a), left));
                    let b = scale_b.apply(_mm512_sllv_epi32(_mm512_sub_epi32(b(i[2], e), zero_b), left));
                    bounds.apply(scale_sum.apply(_mm512_add_epi32(a, b)))
                });
            }
            VecOp::Mac => rows!(|i, e| {
                let (entry, tap) = VecOp::Mac.param_entry(i[2] as u32);
                let at = (entry * PARAM_ROWS + tap) as usize * outputs + e % outputs;
                let taps = _mm512_cvtepi8_epi32(_mm_loadu_si128(m.param.add(at).cast()));
                let product = _mm512_mullo_epi32(_mm512_sub_epi32(a(i[1], e), zero_a), _mm512_sub_epi32(taps, zero_b));
                _mm512_add_epi32(_mm512_loadu_si512(m.acc.add(i[0] * n + e).cast()), product)
            }),
            VecOp::Lut => {
                let part = |k: usize| _mm512_loadu_si512(table.as_ptr().add(64 * k).cast());
                let parts = [part(0), part(1), part(2), part(3)];
                rows!(|i, e| {
                    // Bit 7 of an index chooses between the halves, which bits 0 to 6 look up.
                    let index = _mm512_castsi128_si512(_mm512_cvtepi32_epi8(a(i[1], e)));
                    let low = _mm512_permutex2var_epi8(parts[0], index, parts[1]);
                    let high = _mm512_permutex2var_epi8(parts[2], index, parts[3]);
                    let found = _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
                    _mm512_cvtepi8_epi32(_mm512_castsi512_si128(found))
                });
            }
            // Simple operations without instructions of their own.
            op => {
                if let Some(simple) = op.simple() {
                    let lanes = |v| std::mem::transmute::<__m512i, [i32; 16]>(v);
                    rows!(|i, e| {
                        let (p, q) = (lanes(a(i[1], e)), lanes(b(i[2], e)));
                        let y: [i32; 16] = std::array::from_fn(|k| simple(p[k], q[k]));
                        _mm512_loadu_si512(y.as_ptr().cast())
                    });
                }
            }
        }
    }
    true
}

/// Sixteen elements from element `e` of a row.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn load(m: Memories, from: VecSrc, at: usize, e: usize, [n, outputs]: [usize; 2], scalar: __m512i) -> __m512i {
    // SAFETY: the caller names elements inside the memory.
    unsafe {
        match from {
            VecSrc::Acc => _mm512_loadu_si512(m.acc.add(at * n + e).cast()),
            VecSrc::Out => _mm512_cvtepi8_epi32(_mm_loadu_si128(m.out.add(at * n + e).cast())),
            VecSrc::Inp => _mm512_cvtepi8_epi32(_mm_loadu_si128(m.inp.add(at * n + e).cast())),
            VecSrc::Param => _mm512_loadu_si512(m.words.add(at * 3 * outputs + e % outputs).cast()),
            VecSrc::Scalar => scalar,
            VecSrc::None => _mm512_setzero_si512(),
        }
    }
}

/// Sixteen results from element `at` of a memory on, saturated where it holds bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn store(m: Memories, to: VecDst, at: usize, y: __m512i) {
    // SAFETY: the caller names elements inside the memory.
    unsafe {
        match to {
            VecDst::Acc => _mm512_storeu_si512(m.acc.add(at).cast(), y),
            VecDst::Out => _mm_storeu_si128(m.out.add(at).cast(), _mm512_cvtsepi32_epi8(y)),
            VecDst::Inp => _mm_storeu_si128(m.inp.add(at).cast(), _mm512_cvtsepi32_epi8(y)),
        }
    }
}

impl Bounds {
    /// `None` where a bound less the zero point passes 32 bits on the side where every value would pass it.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(zero_point: i32, lo: i32, hi: i32) -> Option<Bounds> {
        let [least, most] = [lo, hi].map(|bound| i64::from(bound) - i64::from(zero_point));
        // A bound that no value reaches may be cut to 32 bits.
        (least <= i64::from(i32::MAX) && most >= i64::from(i32::MIN)).then(|| Bounds {
            lo: _mm512_set1_epi32(least.max(i32::MIN.into()) as i32),
            hi: _mm512_set1_epi32(most.min(i32::MAX.into()) as i32),
            zero_point: _mm512_set1_epi32(zero_point),
        })
    }

    /// `num::offset_clamp`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn apply(&self, y: __m512i) -> __m512i {
        _mm512_add_epi32(_mm512_max_epi32(_mm512_min_epi32(y, self.hi), self.lo), self.zero_point)
    }
}

impl Double {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(multiplier: __m512i, shift: __m512i) -> Double {
        let (zero, most) = (_mm512_setzero_si512(), _mm512_set1_epi32(31));
        let left = _mm512_min_epi32(_mm512_max_epi32(shift, zero), most);
        let right = _mm512_min_epi32(_mm512_max_epi32(_mm512_sub_epi32(zero, shift), zero), most);
        Double { left, multiplier, right }
    }

    /// `num::scale_double`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn apply(&self, x: __m512i) -> __m512i {
        let x = _mm512_sllv_epi32(x, self.left);
        let half = _mm512_set1_epi64(1 << 30);
        let (even, odd) = products(x, self.multiplier);
        let even = _mm512_srli_epi64::<31>(_mm512_add_epi64(even, half));
        let odd = _mm512_slli_epi64::<1>(_mm512_add_epi64(odd, half));
        let high = saturate(x, self.multiplier, _mm512_mask_blend_epi32(0xaaaa, even, odd));
        // Ties go away from zero: more than half of the divisor, less one where it is negative, rounds up.
        let one = _mm512_set1_epi32(1);
        let mask = _mm512_sub_epi32(_mm512_sllv_epi32(one, self.right), one);
        let rest = _mm512_and_si512(high, mask);
        let threshold = _mm512_sub_epi32(_mm512_srli_epi32::<1>(mask), _mm512_srai_epi32::<31>(high));
        let up = _mm512_cmpgt_epi32_mask(rest, threshold);
        let divided = _mm512_srav_epi32(high, self.right);
        _mm512_mask_add_epi32(divided, up, divided, one)
    }
}

/// `num::scale_single`.
#[inline]
#[target_feature(enable = "avx512f")]
fn single(x: __m512i, multiplier: __m512i, shift: __m512i) -> __m512i {
    let right = _mm512_min_epi32(_mm512_max_epi32(shift, _mm512_setzero_si512()), _mm512_set1_epi32(31));
    let (even, odd) = products(x, multiplier);
    let rounded = |product: __m512i, right: __m512i| {
        let half = _mm512_sllv_epi64(_mm512_set1_epi64(1 << 30), right);
        let shift = _mm512_add_epi64(right, _mm512_set1_epi64(31));
        _mm512_srav_epi64(_mm512_add_epi64(product, half), shift)
    };
    let even = rounded(even, _mm512_and_si512(right, _mm512_set1_epi64(0xffff_ffff)));
    let odd = _mm512_slli_epi64::<32>(rounded(odd, _mm512_srli_epi64::<32>(right)));
    let scaled = _mm512_mask_blend_epi32(0xaaaa, even, odd);
    // Only the square of the least number passes 32 bits, and only where nothing is shifted.
    let saturated = saturate(x, multiplier, scaled);
    _mm512_mask_blend_epi32(_mm512_test_epi32_mask(right, right), saturated, scaled)
}

/// The 64-bit products of the even and of the odd elements.
#[inline]
#[target_feature(enable = "avx512f")]
fn products(a: __m512i, b: __m512i) -> (__m512i, __m512i) {
    let odd = |v| _mm512_srli_epi64::<32>(v);
    (_mm512_mul_epi32(a, b), _mm512_mul_epi32(odd(a), odd(b)))
}

/// `y`, but the greatest number where both factors are the least.
#[inline]
#[target_feature(enable = "avx512f")]
fn saturate(a: __m512i, b: __m512i, y: __m512i) -> __m512i {
    let least = _mm512_set1_epi32(i32::MIN);
    let both = _mm512_mask_cmpeq_epi32_mask(_mm512_cmpeq_epi32_mask(a, least), b, least);
    _mm512_mask_mov_epi32(y, both, _mm512_set1_epi32(i32::MAX))
}

#[cfg(test)]
mod tests;
