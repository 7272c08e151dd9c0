//! Minimum, median and maximum of several measurements.

use serde_json::{Value, json};

/// Milliseconds of several runs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spread {
    /// The smallest value.
    pub min: f64,
    /// The middle value; the upper one for an even number of values.
    pub median: f64,
    /// The largest value.
    pub max: f64,
}

impl Spread {
    /// Computes the spread of measurements; zeros if there are none.
    pub fn of(mut samples: Vec<f64>) -> Spread {
        samples.sort_by(f64::total_cmp);
        let at = |index: usize| samples.get(index).copied().unwrap_or(0.0);
        Spread { min: at(0), median: at(samples.len() / 2), max: at(samples.len().saturating_sub(1)) }
    }

    /// The spread of a value that is always the same.
    pub fn exactly(value: f64) -> Spread {
        Spread { min: value, median: value, max: value }
    }

    /// The three numbers as JSON.
    pub fn json(&self) -> Value {
        json!({ "min": self.min, "median": self.median, "max": self.max })
    }
}
