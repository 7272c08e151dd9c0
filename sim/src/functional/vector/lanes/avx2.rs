//! Eight elements in 256 bits.

use super::Lanes;
use std::arch::x86_64::*;

/// Needs AVX2.
#[derive(Clone, Copy)]
pub(super) struct Avx2;

/// Returns the 64-bit products of the even and of the odd elements.
#[inline(always)]
unsafe fn products(a: __m256i, b: __m256i) -> [__m256i; 2] {
    // SAFETY: the caller has the instructions.
    unsafe {
        let odd = |v| _mm256_srli_epi64::<32>(v);
        [_mm256_mul_epi32(a, b), _mm256_mul_epi32(odd(a), odd(b))]
    }
}

// Callers enable the instructions and pass valid pointers.
#[expect(clippy::undocumented_unsafe_blocks, reason = "the trait's conditions are those of each block")]
impl Lanes for Avx2 {
    type V = __m256i;
    const N: usize = 8;

    #[inline(always)]
    unsafe fn splat(x: i32) -> __m256i {
        unsafe { _mm256_set1_epi32(x) }
    }

    #[inline(always)]
    unsafe fn words(at: *const i32) -> __m256i {
        unsafe { _mm256_loadu_si256(at.cast()) }
    }

    #[inline(always)]
    unsafe fn bytes(at: *const u8) -> __m256i {
        unsafe { _mm256_cvtepi8_epi32(_mm_loadl_epi64(at.cast())) }
    }

    #[inline(always)]
    unsafe fn put_words(at: *mut i32, x: __m256i) {
        unsafe { _mm256_storeu_si256(at.cast(), x) }
    }

    #[inline(always)]
    unsafe fn put_bytes(at: *mut u8, x: __m256i) {
        unsafe {
            let halves = _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
            _mm_storel_epi64(at.cast(), _mm_packs_epi16(halves, halves));
        }
    }

    #[inline(always)]
    unsafe fn add(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_add_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_sub_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_mullo_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn min(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_min_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn max(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_max_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn and(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_and_si256(a, b) }
    }

    #[inline(always)]
    unsafe fn shl(x: __m256i, by: __m256i) -> __m256i {
        unsafe { _mm256_sllv_epi32(x, by) }
    }

    #[inline(always)]
    unsafe fn sar(x: __m256i, by: __m256i) -> __m256i {
        unsafe { _mm256_srav_epi32(x, by) }
    }

    #[inline(always)]
    unsafe fn if_greater(a: __m256i, b: __m256i, yes: __m256i, no: __m256i) -> __m256i {
        unsafe { _mm256_blendv_epi8(no, yes, _mm256_cmpgt_epi32(a, b)) }
    }

    #[inline(always)]
    unsafe fn if_least(a: __m256i, b: __m256i, yes: __m256i, no: __m256i) -> __m256i {
        unsafe {
            let least = _mm256_set1_epi32(i32::MIN);
            let both = _mm256_and_si256(_mm256_cmpeq_epi32(a, least), _mm256_cmpeq_epi32(b, least));
            _mm256_blendv_epi8(no, yes, both)
        }
    }

    #[inline(always)]
    unsafe fn product_high(x: __m256i, m: __m256i) -> __m256i {
        unsafe {
            let half = _mm256_set1_epi64x(1 << 30);
            let [even, odd] = products(x, m);
            let (even, odd) = (_mm256_add_epi64(even, half), _mm256_add_epi64(odd, half));
            _mm256_blend_epi32::<0xaa>(_mm256_srli_epi64::<31>(even), _mm256_slli_epi64::<1>(odd))
        }
    }

    #[inline(always)]
    unsafe fn product_shifted(x: __m256i, m: __m256i, right: __m256i) -> __m256i {
        unsafe {
            let [even, odd] = products(x, m);
            let rounded = |product: __m256i, right: __m256i| {
                let half = _mm256_sllv_epi64(_mm256_set1_epi64x(1 << 30), right);
                let shift = _mm256_add_epi64(right, _mm256_set1_epi64x(31));
                // AVX2 has no arithmetic 64-bit right shift, so restore the sign.
                let sign = _mm256_srlv_epi64(_mm256_set1_epi64x(i64::MIN), shift);
                let shifted = _mm256_srlv_epi64(_mm256_add_epi64(product, half), shift);
                _mm256_sub_epi64(_mm256_xor_si256(shifted, sign), sign)
            };
            let even = rounded(even, _mm256_and_si256(right, _mm256_set1_epi64x(0xffff_ffff)));
            let odd = _mm256_slli_epi64::<32>(rounded(odd, _mm256_srli_epi64::<32>(right)));
            _mm256_blend_epi32::<0xaa>(even, odd)
        }
    }

    #[inline(always)]
    unsafe fn lookup(table: &[i8; 256], x: __m256i) -> __m256i {
        let mut words = [0; 8];
        unsafe { Avx2::put_words(words.as_mut_ptr(), x) };
        let found = words.map(|word| i32::from(table[usize::from(word as u8)]));
        unsafe { Avx2::words(found.as_ptr()) }
    }
}
