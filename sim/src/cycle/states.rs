//! What a unit does in each cycle, from intervals that come in no common order: the counters of `hw/TIMING.md`.

use super::slots::Time;
use std::collections::VecDeque;
use tilewright_hw::isa::Unit;
use tilewright_hw::regs::UnitState;

/// Cycles from the first to before the second.
type Span = (Time, Time);

/// What a unit does in the cycles from the first to before the second.
pub(super) type During = (Time, Time, UnitState);

/// Intervals of one kind, sorted; those that touch and say the same are one.
#[derive(Debug, Default)]
struct Lane {
    spans: VecDeque<(Span, UnitState)>,
}

impl Lane {
    #[inline]
    fn add(&mut self, from: Time, to: Time, state: UnitState) {
        if from >= to {
            return;
        }
        if let Some(((_, end), last)) = self.spans.back_mut() {
            // What came first says what is so where two overlap.
            let from = from.max(*end);
            if from >= to {
                return;
            }
            if *end == from && *last == state {
                *end = to;
                return;
            }
            self.spans.push_back(((from, to), state));
            return;
        }
        self.spans.push_back(((from, to), state));
    }

    /// The state in `at`, and the cycle before which it stays so; earlier spans are dropped.
    #[inline]
    fn at(&mut self, at: Time) -> (Option<UnitState>, Time) {
        while let Some(((from, to), state)) = self.spans.front() {
            if *to <= at {
                self.spans.pop_front();
            } else if *from <= at {
                return (Some(*state), *to);
            } else {
                return (None, *from);
            }
        }
        (None, Time::MAX)
    }
}

/// Layers of intervals; in each cycle the first layer that says something holds.
#[derive(Debug)]
pub(super) struct Layers<const N: usize> {
    lanes: [Lane; N],
    /// Cycles counted so far.
    now: Time,
    counts: [u64; UnitState::ALL.len()],
    /// What was counted since anybody asked, in order and without the empty cycles; where anybody asks.
    told: Option<Vec<During>>,
}

impl<const N: usize> Layers<N> {
    pub(super) fn new() -> Layers<N> {
        Layers {
            lanes: std::array::from_fn(|_| Lane::default()),
            now: 1,
            counts: [0; UnitState::ALL.len()],
            told: None,
        }
    }

    /// Keeps what is counted for [`Layers::take_told`].
    pub(super) fn tell(&mut self) {
        self.told = Some(Vec::new());
    }

    /// What was counted since the last time.
    pub(super) fn take_told(&mut self) -> Vec<During> {
        self.told.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// In the cycles from `from` to before `to`, `layer` says `state`.
    #[inline]
    pub(super) fn add(&mut self, layer: usize, from: Time, to: Time, state: UnitState) {
        self.lanes[layer].add(from, to, state);
    }

    /// How many intervals wait to be counted.
    pub(super) fn waiting(&self) -> usize {
        self.lanes.iter().map(|lane| lane.spans.len()).sum()
    }

    /// Counts the cycles before `until`, of which all is known.
    pub(super) fn settle(&mut self, until: Time) {
        while self.now < until {
            let mut end = until;
            let mut state = None;
            for lane in &mut self.lanes {
                let (found, next) = lane.at(self.now);
                end = end.min(next);
                if found.is_some() {
                    state = found;
                    break;
                }
            }
            self.counts[state.unwrap_or(UnitState::Empty) as usize] += end - self.now;
            if let (Some(told), Some(state)) = (&mut self.told, state) {
                told.push((self.now, end, state));
            }
            self.now = end;
        }
    }

    /// Cycles by state of a run of so many cycles, as counters of 32 bits show them; in cycle 0 a unit is empty.
    pub(super) fn finish(&mut self, cycles: Time) -> [u64; UnitState::ALL.len()] {
        self.settle(cycles);
        self.counts[UnitState::Empty as usize] += 1;
        self.counts.map(|count| count & u64::from(u32::MAX))
    }
}

/// The state of a unit whose head misses a token of another.
pub(super) fn missing(from: Unit) -> UnitState {
    match from {
        Unit::Load => UnitState::TokenLoad,
        Unit::Gemm => UnitState::TokenGemm,
        Unit::Vector => UnitState::TokenVector,
        Unit::Store => UnitState::TokenStore,
    }
}
