//! The cost of a run, step by step.

use tilewright_hw::device::{Span, UnitCounters};

use crate::artifact::Place;

/// One step of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct StepReport {
    /// Where it ran.
    pub place: Place,
    /// For a GPU step, what computed it: `kernels`, which are generated, or the name of the library that computed its
    /// products.
    pub by: Option<&'static str>,
    /// Seconds from its call to its return, by the host's clock; for a GPU step, by the GPU's.
    pub wall_s: f64,
    /// Seconds of it spent converting tensors to the device's layout and back.
    pub convert_s: f64,
    /// Seconds of `convert_s` after the program, spent converting results back.
    pub convert_back_s: f64,
    /// Cycles of the accelerator, if the device counts them.
    pub cycles: Option<u64>,
    /// Multiply-accumulates that the accelerator computed, padding included.
    pub macs: u64,
    /// Bytes that the accelerator's bus carried, read and written, if the device has one.
    pub bytes: Option<(u64, u64)>,
    /// Cycles by unit and state, if the device counts them.
    pub counters: Option<UnitCounters>,
    /// When the accelerator's instructions started and retired, if the device records it.
    pub spans: Vec<Span>,
}

impl StepReport {
    /// A step without figures.
    pub fn on(place: Place) -> StepReport {
        StepReport {
            place,
            by: None,
            wall_s: 0.0,
            convert_s: 0.0,
            convert_back_s: 0.0,
            cycles: None,
            macs: 0,
            bytes: None,
            counters: None,
            spans: Vec::new(),
        }
    }
}

/// All steps of a run, in the artifact's order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunReport {
    /// The steps.
    pub steps: Vec<StepReport>,
}

impl RunReport {
    /// Seconds inside steps.
    pub fn wall_s(&self) -> f64 {
        // The sum of no floats is -0.
        self.steps.iter().map(|step| step.wall_s).sum::<f64>() + 0.0
    }

    /// Cycles of all accelerator steps; `None` if there is no such step or one has no count.
    pub fn cycles(&self) -> Option<u64> {
        let mut on_accel = self.steps.iter().filter(|step| step.place == Place::Accel).peekable();
        on_accel.peek()?;
        on_accel.map(|step| step.cycles).sum()
    }
}
