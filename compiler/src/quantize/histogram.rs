//! Statistics of a value: first its range, then how often each part of the range occurs.

/// Number of bins of a histogram.
pub const BINS: usize = 2048;

/// Counts of values in equal parts of a range.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    lo: f32,
    hi: f32,
    counts: Vec<u64>,
}

impl Histogram {
    /// An empty histogram over a range.
    pub fn new(lo: f32, hi: f32) -> Histogram {
        Histogram { lo, hi, counts: vec![0; BINS] }
    }

    /// Counts values; those outside the range go into the first or last bin.
    pub fn add(&mut self, values: &[f32]) {
        let width = (f64::from(self.hi) - f64::from(self.lo)) / BINS as f64;
        if width <= 0.0 {
            self.counts[0] += values.len() as u64;
            return;
        }
        let (lo, per) = (self.lo, (1.0 / width) as f32);
        for &x in values {
            // `as` saturates; `min` puts the upper end of the range into the last bin.
            let bin = (((x - lo) * per) as usize).min(BINS - 1);
            self.counts[bin] += 1;
        }
    }

    /// Counts per bin, smallest values first.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of values counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The lower end of a bin; for `BINS`, the upper end of the range.
    pub fn edge(&self, bin: usize) -> f64 {
        let (lo, hi) = (f64::from(self.lo), f64::from(self.hi));
        lo + (hi - lo) * bin as f64 / BINS as f64
    }

    /// The middle of a bin.
    pub fn middle(&self, bin: usize) -> f64 {
        (self.edge(bin) + self.edge(bin + 1)) / 2.0
    }

    /// The range.
    pub fn range(&self) -> (f32, f32) {
        (self.lo, self.hi)
    }
}

/// Smallest and greatest element seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extremes {
    /// The smallest.
    pub lo: f32,
    /// The greatest.
    pub hi: f32,
}

impl Extremes {
    /// Nothing seen yet.
    pub const NONE: Extremes = Extremes { lo: f32::INFINITY, hi: f32::NEG_INFINITY };

    /// Adds values; returns false if one is not finite.
    #[must_use]
    pub fn add(&mut self, values: &[f32]) -> bool {
        let mut finite = true;
        for &x in values {
            finite &= x.is_finite();
            self.lo = self.lo.min(x);
            self.hi = self.hi.max(x);
        }
        finite
    }
}
