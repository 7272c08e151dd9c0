//! Errors of schedule steps.

use thiserror::Error;

use super::Step;

/// A step that could not be applied. The function is unchanged.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("cannot apply `{step}`: {reason}")]
pub struct ScheduleError {
    /// The step.
    pub step: Step,
    /// Why it could not be applied.
    pub reason: String,
}

/// Why a primitive does not apply, as text.
#[derive(Debug)]
pub(super) struct Reason(pub String);

/// Returns an error with a reason, formatted like `format!`.
macro_rules! refuse {
    ($($arg:tt)*) => { return Err($crate::schedule::error::Reason(format!($($arg)*))) };
}
pub(super) use refuse;
