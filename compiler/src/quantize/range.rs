//! From what was seen of a value to its scale and zero point.

use super::histogram::{BINS, Histogram};
use crate::graph::OpError;

/// How the range that integers stand for is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// All that was seen.
    MinMax,
    /// Without the rarest values: so many per cent are kept, of what is cut off half at each end.
    Percentile(f64),
    /// The range with the least mean square of differences.
    Mse,
    /// The range whose distribution tells most of the original's: least divergence of Kullback and Leibler.
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

    /// The range to be kept.
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

/// How many bits weights have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WeightBits {
    /// From -63 to 63: the sum of two products with unsigned bytes fits 16 bits.
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

    /// The number.
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
    /// Step of one integer.
    pub scale: f32,
    /// The integer that stands for 0.
    pub zero_point: i32,
}

/// The least scale: smaller ones leave no room for a bias in 32 bits, and nothing to tell apart.
const LEAST_SCALE: f32 = 1e-9;

impl Params {
    /// Integers from -128 to 127 for a range, which must have 0 in it and which then is met exactly.
    pub fn asymmetric(lo: f32, hi: f32) -> Params {
        let (lo, hi) = (f64::from(lo.min(0.0)), f64::from(hi.max(0.0)));
        let scale = (((hi - lo) / 255.0) as f32).max(LEAST_SCALE);
        let zero_point = (-128.0 - lo / f64::from(scale)).round_ties_even().clamp(-128.0, 127.0) as i32;
        Params { scale, zero_point }
    }

    /// Weights of so many bits for magnitudes up to `most`.
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

/// A percentage of values to keep, checked.
///
/// # Errors
/// Where it is not above 50 and at most 100.
pub fn percentage(p: f64) -> Result<f64, OpError> {
    if p > 50.0 && p <= 100.0 {
        Ok(p)
    } else {
        Err(OpError::attribute("percentile", "must be above 50 and at most 100"))
    }
}

fn percentile(h: &Histogram, p: f64) -> (f32, f32) {
    let cut = h.total() as f64 * (100.0 - p) / 200.0;
    // How many bins in front hold no more than what is cut off.
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

/// Bins between two ranges that are tried.
const STRIDE: usize = 16;

/// The best range `[first, last)` of bins: the upper end first, then the lower one, then the upper one again.
fn narrowed(h: &Histogram, cost: impl Fn(usize, usize) -> f64) -> (f32, f32) {
    let (lo, hi) = h.range();
    if hi <= lo || h.total() == 0 {
        return (lo, hi);
    }
    // The bin that holds 0 stays inside.
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

/// The mean square of what quantization to this range changes.
fn mean_square(h: &Histogram, first: usize, last: usize) -> f64 {
    let p = Params::asymmetric(h.edge(first) as f32, h.edge(last) as f32);
    let scale = f64::from(p.scale);
    let (lo, hi) = (f64::from(-128 - p.zero_point) * scale, f64::from(127 - p.zero_point) * scale);
    let width = (h.edge(1) - h.edge(0)).abs();
    // Inside the range the difference is spread evenly over a step, where bins are not wider than it is.
    let inside = if width < scale { scale * scale / 12.0 } else { 0.0 };
    let error = |bin: usize| {
        let x = h.middle(bin);
        let d = x - x.clamp(lo, hi);
        if d != 0.0 { d * d } else { inside.max(((x / scale).round_ties_even() * scale - x).powi(2)) }
    };
    let counts = h.counts().iter().enumerate().filter(|(_, c)| **c > 0);
    counts.map(|(i, &c)| c as f64 * error(i)).sum()
}

/// The counts with no more values in the bin of 0 than beside it: what a relu cut off is met exactly by every range, and
/// would outweigh all else.
fn without_zeros(h: &Histogram) -> Vec<u64> {
    let mut counts = h.counts().to_vec();
    let zero = (0..BINS).find(|&i| h.edge(i) <= 0.0 && 0.0 < h.edge(i + 1));
    if let Some(z) = zero {
        let beside = [z.checked_sub(1), Some(z + 1)].into_iter().flatten().filter_map(|i| counts.get(i)).max();
        counts[z] = counts[z].min(beside.copied().unwrap_or(0).max(1));
    }
    counts
}

/// How much the distribution over 256 steps of this range of bins tells less than the original's.
fn divergence(counts: &[u64], first: usize, last: usize) -> f64 {
    const LEVELS: usize = 256;
    let mut p: Vec<f64> = counts[first..last].iter().map(|&c| c as f64).collect();
    let inside = p.clone();
    // What lies outside is met by the ends.
    if let Some(x) = p.first_mut() {
        *x += counts[..first].iter().sum::<u64>() as f64;
    }
    if let Some(x) = p.last_mut() {
        *x += counts[last..].iter().sum::<u64>() as f64;
    }
    // Each step's count, spread evenly over those of its bins that hold anything.
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
    // A bin that only what was cut off fills has a small share instead of none.
    let term = |(&p, &q): (&f64, &f64)| {
        let (p, q) = (p / sp, (q / sq).max(1e-9));
        if p > 0.0 { p * (p / q).ln() } else { 0.0 }
    };
    p.iter().zip(&q).map(term).sum()
}

#[cfg(test)]
mod tests;
