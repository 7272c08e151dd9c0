//! One schedule for all sizes of a computation.

use std::num::NonZeroUsize;
use std::sync::Arc;

use thiserror::Error;
use tilewright_driver::StreamCache;
use tilewright_hw::config::HwConfig;

use super::{LowerError, Lowered, Mapping};
use crate::schedule::ScheduleError;
use crate::schedule::file::{FileError, parse_with};
use crate::te::text::Names;
use crate::te::{Name, NoOperators, Operators};

/// Most programs that a [`SizedMapping`] keeps.
const MOST: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// A `.te` file whose sizes are given later. A program is built when its sizes are first asked for, and kept; the
/// steps are applied again for each size, so uneven tiles, padding, micro-ops and addresses follow from it.
///
/// ```
/// use tilewright_tensor::mapping::SizedMapping;
/// use tilewright_hw::HwConfig;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let relu = SizedMapping::new(
///     &HwConfig::load("1x16x16")?,
///     "te relu { size n = 64 input x: i8[n, 16] output y: i8[i in n, j in 16] = max(x[i, j], 0i8) }
///      schedule { cache_read y x inp; cache_write y out; tensorize y.j max }",
/// )?;
/// let small = relu.at(&[("n".into(), 3)])?;
/// let large = relu.at(&[("n".into(), 1000)])?;
/// assert!(small.footprint[0].used < large.footprint[0].used);
/// assert!(std::sync::Arc::ptr_eq(&small, &relu.at(&[("n".into(), 3)])?));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SizedMapping {
    config: HwConfig,
    text: String,
    operators: &'static dyn Operators,
    /// The sizes that the file declares, in order, with their values there.
    declared: Vec<(Name, i64)>,
    programs: StreamCache<Lowered>,
}

/// Why there is no program for these sizes.
#[derive(Debug, Error)]
pub enum SizedError {
    /// The file cannot be read with these sizes.
    #[error(transparent)]
    File(#[from] FileError),
    /// A step does not apply for these sizes.
    #[error("line {line}: {error}")]
    Step {
        /// The line of the step in the file, from 1.
        line: usize,
        /// Why it does not apply.
        error: ScheduleError,
    },
    /// The loops cannot become instructions.
    #[error(transparent)]
    Lower(#[from] LowerError),
}

impl SizedMapping {
    /// Reads the text of a `.te` file that calls no operators.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn new(config: &HwConfig, text: &str) -> Result<SizedMapping, FileError> {
        SizedMapping::with_operators(config, text, &NoOperators)
    }

    /// Reads the text of a `.te` file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn with_operators(
        config: &HwConfig,
        text: &str,
        operators: &'static dyn Operators,
    ) -> Result<SizedMapping, FileError> {
        let (config, programs) = (config.clone(), StreamCache::new(MOST));
        let declared = parse_with(text, &Names { sizes: &[], operators })?.sizes;
        Ok(SizedMapping { config, text: text.into(), operators, declared, programs })
    }

    /// Returns the sizes that the file declares, with their values there.
    pub fn sizes(&self) -> &[(Name, i64)] {
        &self.declared
    }

    /// Returns the program for these sizes; sizes that are not given have the values of the file.
    ///
    /// # Errors
    /// The file has no such size, or what it computes, a step or a buffer's place is not possible with these sizes.
    pub fn at(&self, sizes: &[(Name, i64)]) -> Result<Arc<Lowered>, SizedError> {
        let mut key: Vec<String> = sizes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        key.sort();
        self.programs.get(&self.config, key.join(",").as_bytes(), || self.build(sizes))
    }

    fn build(&self, sizes: &[(Name, i64)]) -> Result<Lowered, SizedError> {
        let file = parse_with(&self.text, &Names { sizes, operators: self.operators })?;
        let mut mapping = Mapping::new(&self.config, &file.program)?;
        for (line, step) in file.steps {
            mapping.apply(step).map_err(|error| SizedError::Step { line, error })?;
        }
        Ok(mapping.lower()?)
    }
}
