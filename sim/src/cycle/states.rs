//! The state of a unit in each cycle, collected from intervals that arrive in any order: the counters of
//! `hw/TIMING.md`.

use super::ring::Ring;
use super::slots::Time;
use tilewright_hw::isa::Unit;
use tilewright_hw::regs::UnitState;

/// A half-open range of cycles.
type CycleRange = (Time, Time);

/// A half-open range of cycles and the state of a unit in it.
pub(super) type During = (Time, Time, UnitState);

/// Sorted intervals of one kind. Adjacent intervals with the same state are merged.
#[derive(Debug, Default)]
struct Lane {
    spans: Ring<(CycleRange, UnitState)>,
}

impl Lane {
    #[inline]
    fn add(&mut self, from: Time, to: Time, state: UnitState) {
        if let Some(((_, end), last)) = self.spans.back_mut() {
            // If two intervals overlap, the first one wins.
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

    /// Returns the state in cycle `at`, and the end of the cycles for which that holds. Drops earlier intervals.
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

/// Layers of intervals. In each cycle, the first layer with a state wins.
#[derive(Debug)]
pub(super) struct Layers<const N: usize> {
    lanes: [Lane; N],
    /// The cycle up to which states are counted.
    now: Time,
    counts: [u64; UnitState::ALL.len()],
    /// What was counted since the last [`Layers::take_told`], in order and without empty cycles. `None` if not
    /// recorded.
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

    /// Turns on recording for [`Layers::take_told`].
    pub(super) fn tell(&mut self) {
        self.told = Some(Vec::new());
    }

    /// Returns what was counted since the last call.
    pub(super) fn take_told(&mut self) -> Vec<During> {
        self.told.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Records `state` in `layer` for cycles `from..to`.
    #[inline]
    pub(super) fn add(&mut self, layer: usize, from: Time, to: Time, state: UnitState) {
        if from < to {
            self.lanes[layer].add(from, to, state);
        }
    }

    /// Returns how many intervals are not counted yet.
    pub(super) fn waiting(&self) -> usize {
        self.lanes.iter().map(|lane| lane.spans.len()).sum()
    }

    /// Counts the cycles before `until`, which must all be final.
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

    /// Returns the cycles of each state in a run of `cycles`, wrapped to 32 bits like the counters. In cycle 0 a unit
    /// is empty.
    pub(super) fn finish(&mut self, cycles: Time) -> [u64; UnitState::ALL.len()] {
        self.settle(cycles);
        self.counts[UnitState::Empty as usize] += 1;
        self.counts.map(|count| count & u64::from(u32::MAX))
    }
}

/// Returns the state of a unit whose next instruction lacks a token from another unit.
pub(super) fn missing(from: Unit) -> UnitState {
    match from {
        Unit::Load => UnitState::TokenLoad,
        Unit::Gemm => UnitState::TokenGemm,
        Unit::Vector => UnitState::TokenVector,
        Unit::Store => UnitState::TokenStore,
    }
}
