use super::*;

/// The distance of a result from the exact value, in units of the last place of the exact value.
fn units(found: f32, exact: f64) -> f64 {
    if found.is_nan() || exact.is_nan() {
        return if found.is_nan() && exact.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let nearest = exact as f32;
    if nearest.is_infinite() || found.is_infinite() {
        return if found == nearest { 0.0 } else { f64::INFINITY };
    }
    let binade = f32::from_bits(nearest.abs().max(f32::MIN_POSITIVE).to_bits() >> FRACTION_BITS << FRACTION_BITS);
    (f64::from(found) - exact).abs() / f64::from(binade) * f64::from(1 << FRACTION_BITS)
}

/// A function, its exact values, and the greatest distance from them.
type Case = (&'static str, fn(f32) -> f32, fn(f64) -> f64, f64);

const CASES: [Case; 3] =
    [("exp", Single::exp, f64::exp, 1.1), ("tanh", Single::tanh, f64::tanh, 1.5), ("erf", Single::erf, libm::erf, 1.8)];

fn check(step: usize) {
    for (name, function, exact, most) in CASES {
        let worst = (0..=u32::MAX).step_by(step).map(f32::from_bits).fold((0.0, 0.0), |worst, x| {
            let distance = units(function(x), exact(x.into()));
            if distance > worst.0 { (distance, x) } else { worst }
        });
        assert!(worst.0 <= most, "{name}: {} units at {:?}", worst.0, worst.1);
    }
}

#[test]
fn functions_are_within_two_units_of_the_exact_value() {
    // A prime, so that all exponents are there with different fractions.
    check(1009);
}

#[test]
#[ignore = "long; make test-full runs it"]
fn functions_are_within_two_units_for_every_float() {
    check(1);
}

#[test]
fn special_values_are_exact() {
    for (function, [at_zero, at_less_zero, at_most, at_least]) in [
        (Single::exp as fn(f32) -> f32, [1.0, 1.0, f32::INFINITY, 0.0]),
        (Single::tanh, [0.0, -0.0, 1.0, -1.0]),
        (Single::erf, [0.0, -0.0, 1.0, -1.0]),
    ] {
        let found = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY].map(|x| function(x).to_bits());
        assert_eq!(found, [at_zero, at_less_zero, at_most, at_least].map(f32::to_bits));
        assert!(function(f32::NAN).is_nan());
    }
    // Results below the least normal float keep their bits, and the least and greatest arguments their limits.
    assert_eq!(Single::exp(-103.0), (-103f64).exp() as f32);
    assert!(Single::exp(-103.0) > 0.0);
    assert_eq!(Single::exp(-104.5), 0.0);
    assert!(Single::exp(88.722).is_finite());
    assert_eq!(Single::exp(88.73), f32::INFINITY);
    let least = f32::from_bits(1);
    assert_eq!([Single::tanh(least), Single::erf(least)], [least, libm::erff(least)]);
}

#[test]
fn a_sum_over_a_row_has_the_order_of_lanes() {
    let at = |k: usize| [1e8f32, 1.0, -1e8][k % 3];
    for n in [0, 1, 31, 32, 33, 48, 197] {
        let whole = n / LANES * LANES;
        let mut lanes = [0f32; LANES];
        (0..whole).for_each(|k| lanes[k % LANES] += at(k));
        let by_lanes = lanes.iter().fold(0.0, |sum, x| sum + x);
        let rest: f32 = (whole..n).fold(0.0, |sum, k| sum + at(k));
        let want = match n {
            0..32 => (0..n).fold(0.0, |sum, k| sum + at(k)),
            n if n == whole => by_lanes,
            _ => by_lanes + rest,
        };
        assert_eq!(row_sum(n, at).to_bits(), want.to_bits(), "{n}");
    }
}
