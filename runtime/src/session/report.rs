//! What a run took, step by step.

use tilewright_hw::device::{Span, UnitCounters};

use crate::artifact::Place;

/// One step of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct StepReport {
    /// Where it ran.
    pub place: Place,
    /// Of a step of a GPU, what computed it: `kernels`, which are generated, or those and a library's products, by its name.
    pub by: Option<&'static str>,
    /// Seconds from its call to its return, as the host's clock has it.
    pub wall_s: f64,
    /// Seconds of it in which tensors were turned into the device's layout and back.
    pub convert_s: f64,
    /// Seconds of `convert_s` behind the program, in which results were turned back.
    pub convert_back_s: f64,
    /// Cycles of the accelerator, where the device knows time.
    pub cycles: Option<u64>,
    /// Multiply-accumulates that the accelerator did, padding included.
    pub macs: u64,
    /// Bytes that the accelerator's bus carried, read and written, where the device has one.
    pub bytes: Option<(u64, u64)>,
    /// Cycles by unit and state, where the device counts them.
    pub counters: Option<UnitCounters>,
    /// When the accelerator's instructions started and retired, where the device keeps it.
    pub spans: Vec<Span>,
}

impl StepReport {
    pub(super) fn on(place: Place) -> StepReport {
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

/// All steps of a run, in the order of the artifact's.
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

    /// Cycles of all accelerator steps, where every one of them has a count and there is one.
    pub fn cycles(&self) -> Option<u64> {
        let mut on_accel = self.steps.iter().filter(|step| step.place == Place::Accel).peekable();
        on_accel.peek()?;
        on_accel.map(|step| step.cycles).sum()
    }
}
