//! The lanes' arithmetic against `tilewright_hw::num`, element by element.

use super::*;
use crate::functional::Kernel;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tilewright_hw::config::HwConfig;
use tilewright_hw::num::{offset_clamp, scale_double, scale_single};

type Sixteen = [i32; 16];

#[target_feature(enable = "avx512f")]
fn read(x: &Sixteen) -> __m512i {
    // SAFETY: sixteen words are read.
    unsafe { _mm512_loadu_si512(x.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
fn write(x: __m512i) -> Sixteen {
    let mut y = [0; 16];
    // SAFETY: sixteen words are written.
    unsafe { _mm512_storeu_si512(y.as_mut_ptr().cast(), x) };
    y
}

#[target_feature(enable = "avx512f")]
fn on_lanes(x: &Sixteen, multiplier: &Sixteen, shift: &Sixteen) -> [Sixteen; 2] {
    let (x, multiplier, shift) = (read(x), read(multiplier), read(shift));
    [write(Double::new(multiplier, shift).apply(x)), write(single(x, multiplier, shift))]
}

/// Words at the edges, words whose quotients are ties, and others.
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
    if !Kernel::Avx512.is_usable(&HwConfig::default()) {
        eprintln!("skipped: this machine has no AVX-512 with VNNI and VBMI");
        return;
    }
    let rng = &mut SmallRng::seed_from_u64(14);
    let mut ties = 0;
    for round in 0..200_000 {
        let words = [0; 2].map(|_| [0; 16].map(|_| word(rng)));
        let [x, multiplier] = words;
        // Every shift that a byte holds, a few near 0 more often.
        let shift = [0; 16].map(|_| i32::from(if round % 2 == 0 { rng.random() } else { rng.random_range(-8i8..8) }));
        // SAFETY: the machine has the instructions.
        let [double, single] = unsafe { on_lanes(&x, &multiplier, &shift) };
        for l in 0..16 {
            let (x, m, s) = (x[l], multiplier[l], shift[l] as i8);
            assert_eq!(double[l], scale_double(x, m, s), "double: {x} by {m}, shift {s}");
            assert_eq!(single[l], scale_single(x, m, s), "single: {x} by {m}, shift {s}");
            let high = scale_double(x, m, 0);
            ties += usize::from((-31..0).contains(&s) && high < 0 && high & ((1i64 << -s) - 1) as i32 == 1 << (-s - 1));
        }
        let [zero_point, lo, hi, _] = [0; 4].map(|_| word(rng));
        let Some(expected) = checked_bounds(&x, zero_point, lo, hi) else { continue };
        for l in 0..16 {
            assert_eq!(expected[l], offset_clamp(x[l], zero_point, lo, hi), "{} + {zero_point} in {lo}..={hi}", x[l]);
        }
    }
    assert!(ties > 1000, "only {ties} negative ties were tried");
}

/// The lanes' bounds; `None` where they leave them to the general way.
fn checked_bounds(x: &Sixteen, zero_point: i32, lo: i32, hi: i32) -> Option<Sixteen> {
    #[target_feature(enable = "avx512f")]
    fn apply(x: &Sixteen, zero_point: i32, lo: i32, hi: i32) -> Option<Sixteen> {
        Bounds::new(zero_point, lo, hi).map(|bounds| write(bounds.apply(read(x))))
    }
    // SAFETY: the caller found the instructions.
    unsafe { apply(x, zero_point, lo, hi) }
}
