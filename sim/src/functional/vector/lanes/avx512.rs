//! Sixteen elements in 512 bits.

use super::Lanes;
use std::arch::x86_64::*;

/// Needs AVX-512 F, BW, VL and VBMI.
#[derive(Clone, Copy)]
pub(super) struct Avx512;

/// Returns the 64-bit products of the even and of the odd elements.
#[inline(always)]
unsafe fn products(a: __m512i, b: __m512i) -> [__m512i; 2] {
    // SAFETY: the caller has the instructions.
    unsafe {
        let odd = |v| _mm512_srli_epi64::<32>(v);
        [_mm512_mul_epi32(a, b), _mm512_mul_epi32(odd(a), odd(b))]
    }
}

// Callers enable the instructions and pass valid pointers.
#[expect(clippy::undocumented_unsafe_blocks, reason = "the trait's conditions are those of each block")]
impl Lanes for Avx512 {
    type V = __m512i;
    const N: usize = 16;

    #[inline(always)]
    unsafe fn splat(x: i32) -> __m512i {
        unsafe { _mm512_set1_epi32(x) }
    }

    #[inline(always)]
    unsafe fn words(at: *const i32) -> __m512i {
        unsafe { _mm512_loadu_si512(at.cast()) }
    }

    #[inline(always)]
    unsafe fn bytes(at: *const u8) -> __m512i {
        unsafe { _mm512_cvtepi8_epi32(_mm_loadu_si128(at.cast())) }
    }

    #[inline(always)]
    unsafe fn put_words(at: *mut i32, x: __m512i) {
        unsafe { _mm512_storeu_si512(at.cast(), x) }
    }

    #[inline(always)]
    unsafe fn put_bytes(at: *mut u8, x: __m512i) {
        unsafe { _mm_storeu_si128(at.cast(), _mm512_cvtsepi32_epi8(x)) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_add_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_sub_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_mullo_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn min(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_min_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn max(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_max_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn and(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_and_si512(a, b) }
    }

    #[inline(always)]
    unsafe fn shl(x: __m512i, by: __m512i) -> __m512i {
        unsafe { _mm512_sllv_epi32(x, by) }
    }

    #[inline(always)]
    unsafe fn sar(x: __m512i, by: __m512i) -> __m512i {
        unsafe { _mm512_srav_epi32(x, by) }
    }

    #[inline(always)]
    unsafe fn if_greater(a: __m512i, b: __m512i, yes: __m512i, no: __m512i) -> __m512i {
        unsafe { _mm512_mask_mov_epi32(no, _mm512_cmpgt_epi32_mask(a, b), yes) }
    }

    #[inline(always)]
    unsafe fn if_least(a: __m512i, b: __m512i, yes: __m512i, no: __m512i) -> __m512i {
        unsafe {
            let least = _mm512_set1_epi32(i32::MIN);
            let both = _mm512_mask_cmpeq_epi32_mask(_mm512_cmpeq_epi32_mask(a, least), b, least);
            _mm512_mask_mov_epi32(no, both, yes)
        }
    }

    #[inline(always)]
    unsafe fn product_high(x: __m512i, m: __m512i) -> __m512i {
        unsafe {
            let half = _mm512_set1_epi64(1 << 30);
            let [even, odd] = products(x, m);
            let (even, odd) = (_mm512_add_epi64(even, half), _mm512_add_epi64(odd, half));
            _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64::<31>(even), _mm512_slli_epi64::<1>(odd))
        }
    }

    #[inline(always)]
    unsafe fn product_shifted(x: __m512i, m: __m512i, right: __m512i) -> __m512i {
        unsafe {
            let [even, odd] = products(x, m);
            let rounded = |product: __m512i, right: __m512i| {
                let half = _mm512_sllv_epi64(_mm512_set1_epi64(1 << 30), right);
                let shift = _mm512_add_epi64(right, _mm512_set1_epi64(31));
                _mm512_srav_epi64(_mm512_add_epi64(product, half), shift)
            };
            let even = rounded(even, _mm512_and_si512(right, _mm512_set1_epi64(0xffff_ffff)));
            let odd = _mm512_slli_epi64::<32>(rounded(odd, _mm512_srli_epi64::<32>(right)));
            _mm512_mask_blend_epi32(0xaaaa, even, odd)
        }
    }

    #[inline(always)]
    unsafe fn lookup(table: &[i8; 256], x: __m512i) -> __m512i {
        unsafe {
            let part = |k: usize| _mm512_loadu_si512(table.as_ptr().add(64 * k).cast());
            // Bit 7 of an index selects the half of the table; bits 0 to 6 index into that half.
            let index = _mm512_castsi128_si512(_mm512_cvtepi32_epi8(x));
            let low = _mm512_permutex2var_epi8(part(0), index, part(1));
            let high = _mm512_permutex2var_epi8(part(2), index, part(3));
            let found = _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
            _mm512_cvtepi8_epi32(_mm512_castsi512_si128(found))
        }
    }
}
