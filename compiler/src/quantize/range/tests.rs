//! Each method on distributions with a known answer.

use super::*;

fn histogram(values: &[f32]) -> Histogram {
    let lo = values.iter().copied().fold(f32::INFINITY, f32::min);
    let hi = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut h = Histogram::new(lo, hi);
    h.add(values);
    h
}

/// Pseudo-random values of a normal distribution with deviation 1.
fn normal(n: usize) -> Vec<f32> {
    let mut s = 88_172_645_463_325_252u64;
    let mut uniform = move || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        ((s >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    };
    (0..n).map(|_| ((-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()) as f32).collect()
}

const METHODS: [Method; 4] = [Method::MinMax, Method::Percentile(99.99), Method::Mse, Method::Entropy];

#[test]
fn a_uniform_distribution_keeps_its_range() {
    let values: Vec<f32> = (0..100_000).map(|i| -1.0 + 3.0 * i as f32 / 99_999.0).collect();
    for m in METHODS {
        let (lo, hi) = m.range(&histogram(&values));
        assert!((lo + 1.0).abs() < 0.1 && (hi - 2.0).abs() < 0.1, "{}: {lo} to {hi}", m.name());
    }
}

#[test]
fn an_outlier_is_kept_by_min_max_alone() {
    let mut values = normal(200_000);
    values.push(100.0);
    let h = histogram(&values);
    let (lo, hi) = Method::MinMax.range(&h);
    assert!(hi == 100.0 && lo < -4.0);
    for m in [METHODS[1], METHODS[3]] {
        let (lo, hi) = m.range(&h);
        assert!(hi < 15.0 && hi > 1.5 && lo < -1.5, "{}: {lo} to {hi}", m.name());
    }
    // One value in 200,000 costs (100 - hi)^2 / 200,000; the steps of all cost (hi + 3.2)^2 / 255^2 / 12. The minimum
    // is near 77.
    let (lo, hi) = Method::Mse.range(&h);
    assert!((70.0..85.0).contains(&hi) && lo < -1.5, "{lo} to {hi}");
}

#[test]
fn percentile_cuts_what_it_says() {
    let values: Vec<f32> = (0..100_000).map(|i| i as f32 / 1000.0 - 50.0).collect();
    let (lo, hi) = Method::Percentile(90.0).range(&histogram(&values));
    assert!((lo + 45.0).abs() < 0.1 && (hi - 45.0).abs() < 0.1, "{lo} to {hi}");
    let (lo, hi) = Method::Percentile(100.0).range(&histogram(&values));
    assert!((lo, hi) == (values[0], values[values.len() - 1]));
    assert!(percentage(50.0).is_err() && percentage(100.1).is_err() && percentage(f64::NAN).is_err());
}

/// The mean square error of a normal distribution in 256 equal steps is smallest near 4 deviations (Max 1960 has 3.9
/// for the range of a uniform quantizer with 256 levels).
#[test]
fn mean_square_of_a_normal_distribution() {
    let h = histogram(&normal(1_000_000));
    let (lo, hi) = Method::Mse.range(&h);
    assert!((3.6..4.4).contains(&hi) && (-4.4..-3.6).contains(&lo), "{lo} to {hi}");
    // No other range that was tried is better than one near it.
    let at = |x: f64| ((x - h.edge(0)) / (h.edge(1) - h.edge(0))) as usize;
    let cost = |r: f64| mean_square(&h, at(-r), at(r));
    assert!(cost(3.9) < cost(3.0) && cost(3.9) < cost(4.8));
}

#[test]
fn what_is_never_negative_starts_at_zero() {
    let values: Vec<f32> = normal(100_000).into_iter().map(|x| x.max(0.0)).collect();
    for m in METHODS {
        let (lo, hi) = m.range(&histogram(&values));
        assert!(lo == 0.0 && hi > 2.0, "{}: {lo} to {hi}", m.name());
        assert_eq!(Params::asymmetric(lo, hi).zero_point, -128);
    }
    // 0 stays in the range even if all values are on one side of it.
    let (lo, hi) = Method::MinMax.range(&histogram(&[3.0, 4.0]));
    assert_eq!((lo, hi), (0.0, 4.0));
}

#[test]
fn scales_meet_their_ends_and_zero() {
    for (lo, hi) in [(-1.0, 2.0), (0.0, 6.0), (-3.0, 0.0), (0.0, 0.0), (-1e-3, 1e3)] {
        let p = Params::asymmetric(lo, hi);
        assert_eq!(p.dequantize(p.quantize(0.0)), 0.0);
        let far = |x: f32| (p.dequantize(p.quantize(x)) - x).abs();
        assert!(far(lo) <= p.scale * 0.51 && far(hi) <= p.scale * 0.51, "{lo} to {hi}");
    }
    assert_eq!(Params::symmetric(127.0, WeightBits::Eight), Params { scale: 1.0, zero_point: 0 });
    assert_eq!(Params::symmetric(126.0, WeightBits::Seven), Params { scale: 2.0, zero_point: 0 });
}

#[test]
fn a_single_value_is_no_trouble() {
    for m in METHODS {
        for x in [0.0, 5.0, -5.0] {
            let (lo, hi) = m.range(&histogram(&[x; 10]));
            assert!(lo <= x && hi >= x && lo <= 0.0 && hi >= 0.0, "{}: {lo} to {hi}", m.name());
        }
    }
}
