use super::*;

/// gemmlowp's `SaturatingRoundingDoublingHighMul` as its source states it: truncating division.
fn gemmlowp_high_mul(a: i32, b: i32) -> i32 {
    if a == b && a == i32::MIN {
        return i32::MAX;
    }
    let ab = a as i64 * b as i64;
    let nudge = if ab >= 0 { 1i64 << 30 } else { 1 - (1i64 << 30) };
    ((ab + nudge) / (1i64 << 31)) as i32
}

/// gemmlowp's `RoundingDivideByPOT` as its source states it.
fn gemmlowp_divide(x: i32, exponent: u32) -> i32 {
    let mask = ((1i64 << exponent) - 1) as i32;
    let remainder = x & mask;
    let threshold = (mask >> 1) + (x < 0) as i32;
    (x >> exponent) + (remainder > threshold) as i32
}

fn interesting() -> Vec<i32> {
    let mut v = vec![0, 1, -1, 2, -2, 3, i32::MAX, i32::MIN, i32::MAX - 1, i32::MIN + 1];
    for e in 1..31 {
        for d in [-1i32, 0, 1] {
            v.push((1i32 << e) + d);
            v.push(-(1i32 << e) + d);
        }
    }
    let mut x = 0x9e37_79b9u32;
    for _ in 0..200 {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        v.push(x as i32);
    }
    v
}

#[test]
fn high_mul_is_gemmlowps() {
    let v = interesting();
    for &a in &v {
        for &b in &v {
            assert_eq!(doubling_high_mul(a, b), gemmlowp_high_mul(a, b), "{a} {b}");
        }
    }
}

#[test]
fn divide_is_gemmlowps() {
    for &x in &interesting() {
        for e in 0..=31 {
            let want = if e == 31 {
                // The mask of 31 bits is i32::MAX; the comparison above holds for it too.
                gemmlowp_divide(x, 31)
            } else {
                gemmlowp_divide(x, e)
            };
            assert_eq!(rounding_divide_by_pot(x, e), want, "{x} {e}");
        }
    }
}

#[test]
fn single_rounds_half_up_once() {
    for &x in &interesting() {
        for &m in &interesting() {
            for s in [0i8, 1, 7, 31] {
                let exact = (x as i128 * m as i128 + (1i128 << (30 + s))).div_euclid(1i128 << (31 + s));
                assert_eq!(scale_single(x, m, s), exact.min(i32::MAX as i128) as i32, "{x} {m} {s}");
            }
        }
    }
}

#[test]
fn average_equals_division_away_from_zero() {
    for count in 2u32..=2952 {
        let m = average_multiplier(count);
        // Every sum for small counts; around every quotient's boundary for large ones.
        let (lo, hi) = (-128 * count as i64, 127 * count as i64);
        let check = |sum: i64| {
            let n = count as i64;
            let want = if sum > 0 { (sum + n / 2) / n } else { (sum - n / 2) / n };
            assert_eq!(scale_single(sum as i32, m, 0) as i64, want, "{sum} / {count}");
        };
        if count <= 64 {
            (lo..=hi).for_each(check);
        } else {
            for q in -128..=127i64 {
                let boundary = q * count as i64 + count as i64 / 2;
                (boundary - 2..=boundary + 2).filter(|s| (lo..=hi).contains(s)).for_each(check);
            }
        }
    }
}

/// Reference for [`away_multiplier`], clamped to ±255, beyond which 8 bits saturate for any zero point.
fn away(x: i64, real: f64) -> i64 {
    ((x as f64 * real).round() as i64).clamp(-255, 255)
}

#[test]
fn ties_go_away_from_zero_by_the_multiplier_alone() {
    let mut random = interesting().into_iter().cycle().map(|x| f64::from(x as u32) / 2f64.powi(32));
    let mut next = move || random.next().unwrap_or_default();
    let mut found = 0;
    for i in 0..400 {
        // Powers of two and their small multiples, quotients of scales in single precision, and any factor up to 300.
        let real = match i % 4 {
            0 => 2f64.powi(-(i / 4 % 20)),
            1 => f64::from(1 + i / 4) * 2f64.powi(-(i / 4 % 11) - 2),
            2 => f64::from(next() as f32) * f64::from(next() as f32 + 0.01) / f64::from(next() as f32 + 0.01),
            _ => 300.0 * next() * next() * next(),
        };
        let bound = [300, 5_000, 100_000][i as usize % 3];
        let (_, shift) = byte_multiplier(real);
        let Some(m) = away_multiplier(real.min(MOST_BYTE_FACTOR), shift, bound) else { continue };
        found += 1;
        let scale = |x: i32| if shift > 0 { scale_double(x, m, shift) } else { scale_single(x, m, -shift) };
        // All sums near 0, and those around every boundary.
        let near = (0..=255).flat_map(|k| {
            let at = ((f64::from(k) + 0.5) / real).min(1e9) as i64;
            at - 2..=at + 2
        });
        for x in (0..600).chain(near).filter(|&x| x <= bound) {
            for x in [x, -x] {
                let scaled = i64::from(scale(x as i32)).clamp(-255, 255);
                assert_eq!(scaled, away(x, real), "{x} by {real}: {m}, {shift}");
            }
        }
    }
    assert!(found > 380, "{found} of 400");
}

#[test]
fn a_multiplier_that_rounds_right_already_stays() {
    // Half up is already right if there is no tie: 0.3 has none, and for 0.5 the sums here are too small.
    for (real, bound) in [(0.3, 100_000), (0.001_234, 1 << 20)] {
        let (m, s) = quantize_multiplier(real);
        assert_eq!(away_multiplier(real, s, bound), Some(m));
    }
    assert_eq!(away_multiplier(0.5, 0, 0), Some(1 << 30));
    assert_eq!(away_multiplier(0.5, 0, 1), Some((1 << 30) + 1));
    // Sums up to 2^30 with a tiny factor have rounding boundaries closer together than adjacent multipliers can
    // separate.
    assert_eq!(away_multiplier(1.1e-7, -23, 1 << 30), None);
}

#[test]
fn factors_past_the_range_of_bytes_saturate() {
    for real in [256.0, 255.5, 1e3, 2f64.powi(40), 1e300] {
        let (m, s) = byte_multiplier(real);
        for x in [1, 2, 255, 1 << 21, (1 << 22) - 1] {
            assert!(scale_double(x, m, s) >= 255, "{x} by {real}");
            assert!(scale_double(-x, m, s) <= -255, "{x} by {real}");
        }
        assert_eq!(scale_double(0, m, s), 0);
    }
    assert_eq!(byte_multiplier(0.25), quantize_multiplier(0.25));
}

#[test]
fn multiplier_splits_and_rejoins() {
    for real in [1.0, 0.5, 0.000_123, 0.999_999_999_9, 3.75, 1e-9] {
        let (m, s) = quantize_multiplier(real);
        let back = m as f64 * 2f64.powi(s as i32 - 31);
        assert!((back / real - 1.0).abs() < 1e-9, "{real} {m} {s}");
    }
    assert_eq!(quantize_multiplier(0.0), (0, 0));
}

#[test]
fn offset_does_not_overflow() {
    assert_eq!(offset_clamp(i32::MAX, 100, -128, 127), 127);
    assert_eq!(offset_clamp(i32::MIN, -100, -128, 127), -128);
}
