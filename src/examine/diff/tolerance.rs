//! The tolerance of a comparison.

/// Differences that count as equal.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tolerance {
    /// Largest difference between integers.
    pub steps: u64,
    /// Largest difference between floats, as a fraction of the greatest magnitude in the tensor.
    pub relative: f64,
}

/// A text that is not a tolerance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text} is not a tolerance; give whole steps for integers (1), a fraction of the greatest magnitude for floats \
     (1e-4), or both (1,1e-4)"
)]
pub struct ToleranceError {
    /// The text.
    pub text: String,
}

impl std::str::FromStr for Tolerance {
    type Err = ToleranceError;

    fn from_str(text: &str) -> Result<Tolerance, ToleranceError> {
        let wrong = || ToleranceError { text: text.to_string() };
        let (mut steps, mut relative) = (None, None);
        for part in text.split(',') {
            if let Ok(whole) = part.parse::<u64>() {
                if steps.replace(whole).is_some() {
                    return Err(wrong());
                }
            } else {
                let number = part.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0).ok_or_else(wrong)?;
                if relative.replace(number).is_some() {
                    return Err(wrong());
                }
            }
        }
        Ok(Tolerance { steps: steps.unwrap_or(0), relative: relative.unwrap_or(0.0) })
    }
}

impl std::fmt::Display for Tolerance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} step{} between integers, {} of the greatest magnitude between floats",
            self.steps,
            if self.steps == 1 { "" } else { "s" },
            self.relative
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_parts_are_told_apart() {
        let parse = |text: &str| text.parse::<Tolerance>();
        assert_eq!(parse("2"), Ok(Tolerance { steps: 2, relative: 0.0 }));
        assert_eq!(parse("1e-4"), Ok(Tolerance { steps: 0, relative: 1e-4 }));
        assert_eq!(parse("0.5,3"), Ok(Tolerance { steps: 3, relative: 0.5 }));
        for bad in ["", "a", "1,2", "-1", "0.1,0.2", "nan", "inf"] {
            let error = parse(bad).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{bad} is not a tolerance; give whole steps")), "{error}");
        }
    }
}
