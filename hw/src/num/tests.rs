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
