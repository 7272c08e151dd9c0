//! Least, middle and greatest of several measurements.

use serde_json::{Value, json};

/// Milliseconds of several runs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The middle one; of an even number the upper of both.
    pub median: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// Of some measurements; zeros where there are none.
    pub fn of(mut samples: Vec<f64>) -> Spread {
        samples.sort_by(f64::total_cmp);
        let at = |index: usize| samples.get(index).copied().unwrap_or(0.0);
        Spread { min: at(0), median: at(samples.len() / 2), max: at(samples.len().saturating_sub(1)) }
    }

    /// Of what is the same every time.
    pub fn exactly(value: f64) -> Spread {
        Spread { min: value, median: value, max: value }
    }

    /// As an object with these three numbers.
    pub fn json(&self) -> Value {
        json!({ "min": self.min, "median": self.median, "max": self.max })
    }
}
