//! The end of a run: its last cycle, the first trap, the units in a deadlock, and the report.

use super::check::{Diagnosis, DiagnosisKind};
use super::engine::{Candidate, Engine, EngineOutcome, Environment};
use super::slots::Time;
use super::states::missing;
use crate::span;
use tilewright_hw::config::Counters;
use tilewright_hw::device::{RunReport, Trap, UnitCounters};
use tilewright_hw::isa::Unit;
use tilewright_hw::regs::{TrapCause, TrapUnit, UnitState};

/// Cycles without progress before a deadlock is reported.
const STUCK: Time = 15;

impl<E: Environment> Engine<'_, E> {
    /// Ends the run when nothing can proceed, or, if `cut`, nothing before the limit. Finds the end, the first trap or
    /// the deadlock.
    pub(super) fn finish(mut self, cut: bool) -> Option<EngineOutcome> {
        for over in self.tokens.overflows() {
            self.overflow(over);
        }
        let idle = self.queues.iter().all(|q| q.waiting.is_empty() && q.flying.is_empty());
        let end = match (idle, self.fetch.done()) {
            // Everything up to the limit is known, so a full counter without a pop until then has overflowed.
            _ if cut => None,
            (true, Some(done)) => {
                let retired = self.queues.iter().map(|q| q.last_retire + 1).max().unwrap_or(0);
                Some(done.max(retired))
            }
            _ if self.candidates.is_empty() && self.program.is_none() => {
                let deadlock = self.deadlock()?;
                self.candidate(deadlock);
                None
            }
            _ => None,
        };
        let trap = self.candidates.iter().min().copied();
        let trap = trap.filter(|trap| end.is_none_or(|end| trap.at <= end));
        let broken = self.program.as_ref().map(|(at, ..)| *at);
        if let Some(at) = broken
            && at <= self.limit
            && trap.is_none_or(|trap| at <= trap.at)
        {
            return Some(self.report(at + 1, None));
        }
        self.program = None;
        let last = trap.map(|trap| trap.at).or(end)?;
        // The host sees the end one cycle later.
        let cycles = last + 1;
        if last + Time::from(trap.is_some()) > self.limit {
            return None;
        }
        self.wait_for_ever(cycles);
        if trap.is_some() {
            for (_, read, written) in self.late.drain(..).filter(|(at, ..)| *at >= cycles) {
                self.read -= read;
                self.store.written -= written;
            }
            self.environment.take_back(self.store.written);
            if let Some((at, unit)) = self.refused {
                let place = self.queues[unit as usize].places.ready();
                self.fetch.refused(at, place.is_none_or(|free| free > at));
            }
            self.load.cut(cycles);
            self.store.cut(cycles);
            self.fetch.cut(self.standing.as_ref().map(|(joined, _)| joined.at), cycles);
        }
        Some(self.report(cycles, trap))
    }

    /// Records the waits of instructions that never start because a token does not come before the end.
    fn wait_for_ever(&mut self, end: Time) {
        for unit in Unit::ALL {
            let queue = &self.queues[unit as usize];
            let Some(head) = queue.waiting.front() else { continue };
            let (need, behind) = (head.insn.pop, head.visible.max(queue.last_start + 1));
            let stands = self.stands(unit);
            self.wait(unit, behind, stands.unwrap_or(end).min(end), UnitState::Space);
            let Some(mut at) = stands else { continue };
            let absent = self.tokens.missing(unit, need);
            for from in need.iter() {
                let until = if absent.contains(from) { end } else { self.tokens.ready(from, unit) };
                self.wait(unit, at, until.min(end), missing(from));
                at = at.max(until);
            }
        }
    }

    /// Builds the trap of units that wait for each other.
    fn deadlock(&mut self) -> Option<Candidate> {
        let mut since = self.queues.iter().map(|q| q.last_retire + 1).max().unwrap_or(0);
        since = since.max(self.fetch.last_beat() + 1).max(match self.standing {
            Some((joined, _)) => joined.at,
            None => self.fetch.done()?,
        });
        let mut lowest = None;
        let mut waits = Vec::new();
        for unit in Unit::ALL {
            let queue = &self.queues[unit as usize];
            let Some(head) = queue.waiting.front() else { continue };
            let names: Vec<&str> = self.tokens.missing(unit, head.insn.pop).iter().map(Unit::name).collect();
            waits.push((
                head.place,
                format!("{} waits at instruction {} for a token from {}", unit.name(), head.place, names.join(" and ")),
            ));
            since = since.max(self.stands(unit)?);
            lowest = lowest.or(Some((unit as usize, queue.started)));
        }
        let (unit, ordinal) = lowest?;
        let place = waits.iter().map(|(place, _)| *place).min()?;
        let texts: Vec<String> = waits.into_iter().map(|(_, text)| text).collect();
        let text = format!(
            "{}, and nothing else is running; push one of these tokens from an instruction that can start, or remove its pop",
            texts.join(", ")
        );
        let cause = TrapCause::Deadlock as u32;
        let candidate = Candidate { at: since + STUCK, unit, rank: 3, cause, ordinal };
        self.texts.push((candidate, text.clone()));
        self.found.push((candidate.at, Diagnosis { place, kind: DiagnosisKind::Deadlock, text }));
        Some(candidate)
    }

    fn report(mut self, cycles: Time, trap: Option<Candidate>) -> EngineOutcome {
        let counted = |times: &Vec<Time>| times.partition_point(|t| *t < cycles) as u32;
        let retired = [0, 1, 2, 3].map(|unit| counted(&self.retirements[unit]));
        let trap_text =
            trap.and_then(|trap| self.texts.iter().find(|(of, _)| *of == trap).map(|(_, text)| text.clone()));
        let trap = trap.and_then(|trap| {
            Some(Trap {
                unit: TrapUnit::ALL[trap.unit],
                cause: TrapCause::from_code(trap.cause)?,
                ordinal: trap.ordinal,
                cycle: Some(trap.at),
            })
        });
        let mut states = [[0; UnitState::ALL.len()]; 5];
        states[Unit::Gemm as usize] = self.gemm.states.finish(cycles);
        states[Unit::Vector as usize] = self.vector.states.finish(cycles);
        states[Unit::Load as usize] = self.load.states.finish(cycles);
        states[Unit::Store as usize] = self.store.states.finish(cycles);
        states[TrapUnit::Fetch as usize] = self.fetch.finish(cycles);
        self.share();
        let counters = match self.config.counters {
            Counters::None => None,
            Counters::Busy => {
                let busy = |of: [u64; UnitState::ALL.len()]| {
                    let mut counts = [0; UnitState::ALL.len()];
                    counts[UnitState::Busy as usize] = of[UnitState::Busy as usize];
                    counts
                };
                Some(UnitCounters(states.map(busy)))
            }
            Counters::Causes => Some(UnitCounters(states)),
        };
        // Ignore everything after a trap.
        for unit in &mut self.spans {
            unit.retain(|span| span.start < cycles);
            unit.iter_mut().for_each(|span| span.end = span.end.filter(|end| *end < cycles));
        }
        let mut spans = self.spans.concat();
        span::leave_out(&mut spans, trap);
        let report = RunReport {
            cycles: Some(cycles),
            trap,
            trap_text,
            retired,
            macs: self.macs.iter().take(retired[Unit::Gemm as usize] as usize).sum(),
            bytes: Some((self.read, self.store.written)),
            counters,
            spans,
        };
        self.found.extend(self.environment.found());
        // Ignore everything after a trap here too.
        let mut diagnoses: Vec<Diagnosis> =
            self.found.into_iter().filter(|(at, _)| *at < cycles).map(|(_, found)| found).collect();
        diagnoses.sort_by_key(|found| (found.place, found.kind));
        let program = self.program.map(|(_, place, text)| (place, text));
        EngineOutcome { report, program, last_load: self.last_load, diagnoses }
    }
}
