//! Layers of models as scheduled tensor expressions.

use tilewright_hw::config::HwConfig;

use super::LowerError;
use super::Mapping;
use crate::schedule::{Step, file::File, text::parse_steps};
use crate::te::{Array, Program};

/// What a layer computes from tensors in device memory, and how it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerSchedule {
    /// The tensor expression. Its inputs and its output have the layouts of device memory.
    pub program: Program,
    /// What each input of the expression is.
    pub inputs: Vec<LayerInput>,
    /// The schedule.
    pub steps: Vec<Step>,
}

/// An input of a layer's tensor expression.
#[derive(Debug, Clone, PartialEq)]
pub enum LayerInput {
    /// The layer's input of this number.
    Tensor(usize),
    /// A constant.
    Constant(Array),
}

impl LayerSchedule {
    /// Returns the schedule with the steps of a file, if there is one.
    ///
    /// # Errors
    /// The file computes another expression.
    pub fn with(self, given: Option<&File>) -> Result<LayerSchedule, LowerError> {
        match given {
            None => Ok(self),
            Some(file) if file.program == self.program => {
                Ok(LayerSchedule { steps: file.steps.iter().map(|(_, step)| step.clone()).collect(), ..self })
            }
            Some(_) => Err(LowerError::OtherExpression),
        }
    }

    /// Returns the expression and the steps as a file.
    pub fn file(&self) -> File {
        let steps = (1..).zip(self.steps.iter().cloned()).collect();
        File { sizes: Vec::new(), program: self.program.clone(), steps }
    }

    /// Applies the steps of an operator. They are verified only at the end. If one does not apply, all are repeated with
    /// checks, so that the error names it.
    ///
    /// # Errors
    /// The same as [`LayerSchedule::mapping`].
    pub(super) fn mapping_of_operator(&self, config: &HwConfig) -> Result<Mapping, LowerError> {
        let quick = if cfg!(debug_assertions) { None } else { self.without_checks(config) };
        quick.map_or_else(|| self.mapping(config), Ok)
    }

    /// Applies the steps without checks after each; `None` if one does not apply, or if the result is wrong.
    pub(super) fn without_checks(&self, config: &HwConfig) -> Option<Mapping> {
        let mut quick = Mapping::new(config, &self.program).ok()?.without_checks();
        self.steps.iter().try_for_each(|step| quick.apply(step.clone()).map(|_| ())).ok()?;
        quick.with_checks()
    }

    /// Applies the steps for a configuration.
    ///
    /// # Errors
    /// The first step that cannot be applied, with the reason and the loops that there are.
    pub fn mapping(&self, config: &HwConfig) -> Result<Mapping, LowerError> {
        let mut mapping = Mapping::new(config, &self.program)?;
        for step in &self.steps {
            if let Err(source) = mapping.apply(step.clone()) {
                return Err(LowerError::Step { source: Box::new(source), loops: mapping.function().loop_names() });
            }
        }
        Ok(mapping)
    }
}

/// Returns the steps of an operator's schedule, which are written as in a file; `None` if one of them is no step, which is
/// a fault of the operator.
pub fn template(steps: &str) -> Option<Vec<Step>> {
    let parsed = parse_steps(steps);
    debug_assert!(parsed.is_ok(), "{parsed:?} in {steps}");
    Some(parsed.ok()?.into_iter().map(|(_, step)| step).collect())
}
