//! What is seen of a value: its range, then how often each part of it occurs.

/// Bins of a histogram.
pub const BINS: usize = 2048;

/// How often values occur in equal parts of a range.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    lo: f32,
    hi: f32,
    counts: Vec<u64>,
}

impl Histogram {
    /// An empty histogram of a range.
    pub fn new(lo: f32, hi: f32) -> Histogram {
        Histogram { lo, hi, counts: vec![0; BINS] }
    }

    /// Counts values; those outside the range are counted at its ends.
    pub fn add(&mut self, values: &[f32]) {
        let width = (f64::from(self.hi) - f64::from(self.lo)) / BINS as f64;
        if width <= 0.0 {
            self.counts[0] += values.len() as u64;
            return;
        }
        let (lo, per) = (self.lo, (1.0 / width) as f32);
        for &x in values {
            // Saturates, so that the last bin takes its upper end.
            let bin = (((x - lo) * per) as usize).min(BINS - 1);
            self.counts[bin] += 1;
        }
    }

    /// Counts, from the least values up.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Values counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The lower end of a bin; of the one past the last, the range's upper end.
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

/// Least and greatest element seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extremes {
    /// The least.
    pub lo: f32,
    /// The greatest.
    pub hi: f32,
}

impl Extremes {
    /// Nothing seen yet.
    pub const NONE: Extremes = Extremes { lo: f32::INFINITY, hi: f32::NEG_INFINITY };

    /// Sees values; false where one is not finite.
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
