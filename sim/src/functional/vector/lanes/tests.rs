//! Compares the lanes' arithmetic with `tilewright_hw::num`, element by element.

use super::*;
use crate::functional::Kernel;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tilewright_hw::config::HwConfig;
use tilewright_hw::num::{offset_clamp, scale_double, scale_single};

/// Elements of the widest lanes.
type Words = [i32; 16];

/// Applies the double and the single scale to the first elements.
#[inline(always)]
unsafe fn scaled<L: Lanes>(x: &Words, multiplier: &Words, shift: &Words) -> [Words; 2] {
    // SAFETY: the caller has the instructions, and the arrays are long enough.
    unsafe {
        let [x, multiplier, shift] = [x, multiplier, shift].map(|words| L::words(words.as_ptr()));
        let results = [Double::<L>::new(multiplier, shift).apply(x), single::<L>(x, multiplier, shift)];
        results.map(|result| put::<L>(result))
    }
}

/// Applies the bounds to the first elements. Returns `None` if the lanes do not support these bounds.
#[inline(always)]
unsafe fn bounded<L: Lanes>(x: &Words, [zero_point, lo, hi]: [i32; 3]) -> Option<Words> {
    // SAFETY: the caller has the instructions, and the array is long enough.
    unsafe { Bounds::<L>::new(zero_point, lo, hi).map(|bounds| put::<L>(bounds.apply(L::words(x.as_ptr())))) }
}

#[inline(always)]
unsafe fn put<L: Lanes>(x: L::V) -> Words {
    let mut words = [0; 16];
    // SAFETY: the caller has the instructions, and the array is long enough.
    unsafe { L::put_words(words.as_mut_ptr(), x) };
    words
}

/// A kernel, its lane count, and both functions above for it.
struct Tried {
    kernel: Kernel,
    elements: usize,
    scaled: unsafe fn(&Words, &Words, &Words) -> [Words; 2],
    bounded: unsafe fn(&Words, [i32; 3]) -> Option<Words>,
}

fn tried() -> [Tried; 2] {
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    fn scaled_512(x: &Words, multiplier: &Words, shift: &Words) -> [Words; 2] {
        // SAFETY: the function's features.
        unsafe { scaled::<avx512::Avx512>(x, multiplier, shift) }
    }
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    fn bounded_512(x: &Words, bounds: [i32; 3]) -> Option<Words> {
        // SAFETY: the function's features.
        unsafe { bounded::<avx512::Avx512>(x, bounds) }
    }
    #[target_feature(enable = "avx2")]
    fn scaled_256(x: &Words, multiplier: &Words, shift: &Words) -> [Words; 2] {
        // SAFETY: the function's features.
        unsafe { scaled::<avx2::Avx2>(x, multiplier, shift) }
    }
    #[target_feature(enable = "avx2")]
    fn bounded_256(x: &Words, bounds: [i32; 3]) -> Option<Words> {
        // SAFETY: the function's features.
        unsafe { bounded::<avx2::Avx2>(x, bounds) }
    }
    [
        Tried { kernel: Kernel::Avx512, elements: 16, scaled: scaled_512, bounded: bounded_512 },
        Tried { kernel: Kernel::Avx2, elements: 8, scaled: scaled_256, bounded: bounded_256 },
    ]
}

/// Returns edge cases, words whose quotients are ties, and random words.
fn word(rng: &mut SmallRng) -> i32 {
    const CORNERS: [i32; 8] = [0, 1, -1, i32::MAX, i32::MIN, i32::MIN + 1, 1 << 30, -(1 << 30)];
    match rng.random_range(0..4) {
        0 => CORNERS[rng.random_range(0..CORNERS.len())],
        1 => rng.random_range(-40..40),
        2 => rng.random_range(-3i32..3) << rng.random_range(0..31),
        _ => rng.random::<i32>() >> rng.random_range(0..31),
    }
}

#[test]
fn scales_and_bounds_are_those_of_num() {
    for Tried { kernel, elements, scaled, bounded } in tried() {
        if !kernel.is_usable(&HwConfig::default()) {
            tilewright_testing::skip(&format!("this machine lacks the instructions of {kernel:?}"));
            continue;
        }
        let rng = &mut SmallRng::seed_from_u64(14);
        let mut ties = 0;
        for round in 0..100_000 {
            let words = [0; 2].map(|_| [0; 16].map(|_| word(rng)));
            let [x, multiplier] = words;
            // All shifts that fit in a byte, and every other round only small ones.
            let shift =
                [0; 16].map(|_| i32::from(if round % 2 == 0 { rng.random() } else { rng.random_range(-8i8..8) }));
            // SAFETY: the machine has the instructions.
            let [double, single] = unsafe { scaled(&x, &multiplier, &shift) };
            for l in 0..elements {
                let (x, m, s) = (x[l], multiplier[l], shift[l] as i8);
                assert_eq!(double[l], scale_double(x, m, s), "{kernel:?}, double: {x} by {m}, shift {s}");
                assert_eq!(single[l], scale_single(x, m, s), "{kernel:?}, single: {x} by {m}, shift {s}");
                let high = scale_double(x, m, 0);
                let half = |s: i8| high & ((1i64 << -s) - 1) as i32 == 1 << (-s - 1);
                ties += usize::from((-31..0).contains(&s) && high < 0 && half(s));
            }
            let [zero_point, lo, hi] = [0; 3].map(|_| word(rng));
            // SAFETY: the machine has the instructions.
            let Some(found) = (unsafe { bounded(&x, [zero_point, lo, hi]) }) else { continue };
            for l in 0..elements {
                let expected = offset_clamp(x[l], zero_point, lo, hi);
                assert_eq!(found[l], expected, "{kernel:?}: {} + {zero_point} in {lo}..={hi}", x[l]);
            }
        }
        assert!(ties > 1000, "only {ties} negative ties were tried");
    }
}
