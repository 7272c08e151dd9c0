//! Whose each cycle of a unit is: the shares of instructions in what their unit did, by the rule of `hw/TIMING.md`.

use super::engine::{Engine, Work};
use super::states::During;
use tilewright_hw::device::Span;
use tilewright_hw::isa::Unit;
use tilewright_hw::regs::UnitState;

/// The place of a unit in time: instructions that the cycles so far have passed.
#[derive(Debug, Default)]
pub(super) struct Passed {
    /// That have retired, for load and store; that have started, for gemm and vector.
    insns: usize,
}

impl Passed {
    /// Adds cycles, which come in order and before which all starts and retirements are known, to the instructions that
    /// they belong to. What an instruction waits for that never starts is left out.
    fn share(&mut self, unit: Unit, told: Vec<During>, spans: &mut [Span]) {
        // Load and store are at their oldest; gemm and vector issue for the last that started and wait for the next.
        let moves = matches!(unit, Unit::Load | Unit::Store);
        for (mut from, to, state) in told {
            while from < to {
                let passes = spans.get(self.insns).and_then(|span| if moves { span.end } else { Some(span.start) });
                if passes.is_some_and(|at| at < from) {
                    self.insns += 1;
                    continue;
                }
                let until = passes.map_or(to, |at| to.min(at + 1));
                let started_last = !moves && state == UnitState::Busy;
                if let Some(span) = self.insns.checked_sub(started_last.into()).and_then(|insn| spans.get_mut(insn)) {
                    span.states[state as usize] += until - from;
                }
                from = until;
            }
        }
    }
}

impl<W: Work> Engine<'_, W> {
    /// Keeps when each instruction started and retired, and its share in what its unit did.
    pub(super) fn keep_spans(mut self, keep: bool) -> Self {
        self.keep_spans = keep;
        if keep {
            self.load.states.tell();
            self.gemm.states.tell();
            self.vector.states.tell();
            self.store.states.tell();
        }
        self
    }

    /// Gives the cycles that were counted to their instructions.
    pub(super) fn share(&mut self) {
        if !self.keep_spans {
            return;
        }
        for unit in Unit::ALL {
            let told = match unit {
                Unit::Load => self.load.states.take_told(),
                Unit::Gemm => self.gemm.states.take_told(),
                Unit::Vector => self.vector.states.take_told(),
                Unit::Store => self.store.states.take_told(),
            };
            self.passed[unit as usize].share(unit, told, &mut self.spans[unit as usize]);
        }
    }
}
