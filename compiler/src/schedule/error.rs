//! Why a step cannot be applied.

use thiserror::Error;

use super::Step;

/// A step that was refused; the function stays as it was.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("cannot apply {step:?}: {reason}")]
pub struct ScheduleError {
    /// The step.
    pub step: Step,
    /// Why it was refused.
    pub reason: String,
}

/// Why a primitive does not apply, in words.
#[derive(Debug)]
pub(super) struct Reason(pub String);

/// Fails with a reason, written as for `format!`.
macro_rules! refuse {
    ($($arg:tt)*) => { return Err($crate::schedule::error::Reason(format!($($arg)*))) };
}
pub(super) use refuse;
