//! Attributes each cycle of a unit to one of its instructions, by the rule of `hw/TIMING.md`.

use super::engine::{Engine, Environment};
use super::states::During;
use tilewright_hw::device::Span;
use tilewright_hw::isa::Unit;
use tilewright_hw::regs::UnitState;

/// Progress in attributing a unit's cycles.
#[derive(Debug, Default)]
pub(super) struct Passed {
    /// Instructions already passed: retired ones for load and store, started ones for gemm and vector.
    insns: usize,
}

impl Passed {
    /// Adds cycles to the instructions they belong to. The cycles come in order, and all starts and retirements up to
    /// them are known. Waits of instructions that never start are dropped.
    fn share(&mut self, unit: Unit, told: Vec<During>, spans: &mut [Span]) {
        // Load and store work on their oldest instruction. Gemm and vector issue for the last one that started and wait
        // for the next.
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

impl<E: Environment> Engine<'_, E> {
    /// Turns on the recording of when each instruction started and retired, and of its share of its unit's cycles.
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

    /// Attributes the cycles counted so far to their instructions.
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
