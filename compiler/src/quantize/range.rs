//! Derives a value's scale and zero point from its statistics.

use super::histogram::{BINS, Histogram};
use crate::graph::OpError;

/// How the range of a value is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// The whole range that was seen.
    MinMax,
    /// The range without the rarest values: keeps this percentage of values and cuts half of the rest at each end.
    Percentile(f64),
    /// The range with the smallest mean square error.
    Mse,
    /// The range whose quantized distribution has the smallest Kullback-Leibler divergence from the original.
    Entropy,
}

impl Method {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Method::MinMax => "min-max",
            Method::Percentile(_) => "percentile",
            Method::Mse => "mse",
            Method::Entropy => "entropy",
        }
    }

    /// The range to keep, extended to include 0.
    pub fn range(self, h: &Histogram) -> (f32, f32) {
        let (lo, hi) = match self {
            Method::MinMax => h.range(),
            Method::Percentile(p) => percentile(h, p),
            Method::Mse => narrowed(h, |first, last| mean_square(h, first, last)),
            Method::Entropy => {
                let counts = without_zeros(h);
                narrowed(h, |first, last| divergence(&counts, first, last))
            }
        };
        (lo.min(0.0), hi.max(0.0))
    }
}

/// Number of bits of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WeightBits {
    /// From -63 to 63, so that the sum of two products with unsigned bytes fits 16 bits.
    Seven,
    /// From -127 to 127.
    #[default]
    Eight,
}

impl WeightBits {
    /// The greatest magnitude of a weight.
    pub fn greatest(self) -> i8 {
        match self {
            WeightBits::Seven => 63,
            WeightBits::Eight => 127,
        }
    }

    /// The number of bits.
    pub fn number(self) -> u8 {
        match self {
            WeightBits::Seven => 7,
            WeightBits::Eight => 8,
        }
    }
}

/// Scale and zero point of an int8 tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// Real value of one step.
    pub scale: f32,
    /// The integer that represents 0.
    pub zero_point: i32,
}

/// The smallest scale. Smaller ones leave no room for a bias in 32 bits and have nothing to distinguish.
const LEAST_SCALE: f32 = 1e-9;

impl Params {
    /// Integers from -128 to 127 for a range, which is extended to include 0. They represent 0 exactly.
    pub fn asymmetric(lo: f32, hi: f32) -> Params {
        let (lo, hi) = (f64::from(lo.min(0.0)), f64::from(hi.max(0.0)));
        let scale = (((hi - lo) / 255.0) as f32).max(LEAST_SCALE);
        let zero_point = (-128.0 - lo / f64::from(scale)).round_ties_even().clamp(-128.0, 127.0) as i32;
        Params { scale, zero_point }
    }

    /// Symmetric integers with this number of bits for weights of magnitude up to `most`.
    pub fn symmetric(most: f32, bits: WeightBits) -> Params {
        Params { scale: (most / f32::from(bits.greatest())).max(LEAST_SCALE), zero_point: 0 }
    }

    /// The integer of a real value.
    pub fn quantize(&self, x: f32) -> i8 {
        let q = (x / self.scale).round_ties_even() as i32;
        q.saturating_add(self.zero_point).clamp(-128, 127) as i8
    }

    /// The real value of an integer.
    pub fn dequantize(&self, q: i8) -> f32 {
        (i32::from(q) - self.zero_point) as f32 * self.scale
    }
}

/// Checks a percentage of values to keep.
///
/// # Errors
/// If it is not above 50 and at most 100.
pub fn percentage(p: f64) -> Result<f64, OpError> {
    if p > 50.0 && p <= 100.0 {
        Ok(p)
    } else {
        Err(OpError::attribute("percentile", "must be above 50 and at most 100"))
    }
}

fn percentile(h: &Histogram, p: f64) -> (f32, f32) {
    let cut = h.total() as f64 * (100.0 - p) / 200.0;
    // Number of leading bins that together hold no more than the part to cut.
    let skipped = |counts: &mut dyn Iterator<Item = &u64>| {
        let mut sum = 0.0;
        let mut bins = 0;
        for &c in counts {
            sum += c as f64;
            if sum > cut {
                break;
            }
            bins += 1;
        }
        bins
    };
    let (front, back) = (skipped(&mut h.counts().iter()), skipped(&mut h.counts().iter().rev()));
    let (first, last) = (front.min(BINS - 1), BINS - back.min(BINS - 1));
    let last = last.max(first + 1);
    (h.edge(first) as f32, h.edge(last) as f32)
}

/// Number of bins between two candidate ranges.
const STRIDE: usize = 16;

/// The best range `[first, last)` of bins. It searches the upper end first, then the lower end, then both again.
fn narrowed(h: &Histogram, cost: impl Fn(usize, usize) -> f64) -> (f32, f32) {
    let (lo, hi) = h.range();
    if hi <= lo || h.total() == 0 {
        return (lo, hi);
    }
    // Keep the bin that holds 0.
    let zero = ((0.0 - f64::from(lo)) / (f64::from(hi) - f64::from(lo)) * BINS as f64).clamp(0.0, BINS as f64) as usize;
    let (mut first, mut last) = (0, BINS);
    let best = |candidates: &mut dyn Iterator<Item = usize>, cost: &dyn Fn(usize) -> f64, start: usize| {
        let mut found = (cost(start), start);
        for c in candidates {
            let x = cost(c);
            if x < found.0 {
                found = (x, c);
            }
        }
        found.1
    };
    for _ in 0..2 {
        let least = (zero + 1).max(first + BINS / 16);
        last = best(&mut (least..=BINS).rev().step_by(STRIDE), &|c| cost(first, c), last);
        let most = zero.min(last.saturating_sub(BINS / 16));
        first = best(&mut (0..=most).step_by(STRIDE), &|c| cost(c, last), first);
    }
    (h.edge(first) as f32, h.edge(last) as f32)
}

/// The mean square error of quantization to this range.
fn mean_square(h: &Histogram, first: usize, last: usize) -> f64 {
    let p = Params::asymmetric(h.edge(first) as f32, h.edge(last) as f32);
    let scale = f64::from(p.scale);
    let (lo, hi) = (f64::from(-128 - p.zero_point) * scale, f64::from(127 - p.zero_point) * scale);
    let width = (h.edge(1) - h.edge(0)).abs();
    // Inside the range, the error is spread evenly over a step if bins are narrower than a step.
    let inside = if width < scale { scale * scale / 12.0 } else { 0.0 };
    let error = |bin: usize| {
        let x = h.middle(bin);
        let d = x - x.clamp(lo, hi);
        if d != 0.0 { d * d } else { inside.max(((x / scale).round_ties_even() * scale - x).powi(2)) }
    };
    let counts = h.counts().iter().enumerate().filter(|(_, c)| **c > 0);
    counts.map(|(i, &c)| c as f64 * error(i)).sum()
}

/// The counts with the bin of 0 limited to its larger neighbor. Every range represents the zeros from a relu exactly,
/// and they would outweigh everything else.
fn without_zeros(h: &Histogram) -> Vec<u64> {
    let mut counts = h.counts().to_vec();
    let zero = (0..BINS).find(|&i| h.edge(i) <= 0.0 && 0.0 < h.edge(i + 1));
    if let Some(z) = zero {
        let beside = [z.checked_sub(1), Some(z + 1)].into_iter().flatten().filter_map(|i| counts.get(i)).max();
        counts[z] = counts[z].min(beside.copied().unwrap_or(0).max(1));
    }
    counts
}

/// Divergence of the distribution over 256 steps of this range of bins from the original.
fn divergence(counts: &[u64], first: usize, last: usize) -> f64 {
    const LEVELS: usize = 256;
    let mut p: Vec<f64> = counts[first..last].iter().map(|&c| c as f64).collect();
    let inside = p.clone();
    // Values outside the range are clamped to its ends.
    if let Some(x) = p.first_mut() {
        *x += counts[..first].iter().sum::<u64>() as f64;
    }
    if let Some(x) = p.last_mut() {
        *x += counts[last..].iter().sum::<u64>() as f64;
    }
    // Each step's count, spread evenly over those of its bins that are not empty.
    let n = p.len();
    let mut q = vec![0.0; n];
    for level in 0..LEVELS.min(n) {
        let (a, b) = (level * n / LEVELS.min(n), (level + 1) * n / LEVELS.min(n));
        let filled = p[a..b].iter().filter(|x| **x > 0.0).count();
        let sum: f64 = inside[a..b].iter().sum();
        for i in (a..b).filter(|&i| p[i] > 0.0) {
            q[i] = sum / filled as f64;
        }
    }
    let (sp, sq) = (p.iter().sum::<f64>(), q.iter().sum::<f64>());
    if sq == 0.0 {
        return f64::INFINITY;
    }
    // A bin that only holds cut-off values gets a small share instead of none.
    let term = |(&p, &q): (&f64, &f64)| {
        let (p, q) = (p / sp, (q / sq).max(1e-9));
        if p > 0.0 { p * (p / q).ln() } else { 0.0 }
    };
    p.iter().zip(&q).map(term).sum()
}

#[cfg(test)]
mod tests;
