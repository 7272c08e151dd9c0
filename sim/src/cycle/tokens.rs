//! The token counters, as times.

use super::check::Clock;
use super::slots::Time;
use std::collections::VecDeque;
use tilewright_hw::isa::{Unit, UnitSet};

/// A push that no pop has taken yet: when, and by which instruction of its unit.
#[derive(Debug, Clone, Copy)]
struct Push {
    at: Time,
    ordinal: u32,
    place: u32,
    clock: Clock,
}

/// An overflow: the unit that pushed, its instruction, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Overflow {
    pub(super) unit: Unit,
    /// Whose tokens they are.
    pub(super) to: Unit,
    pub(super) ordinal: u32,
    pub(super) place: u32,
    pub(super) at: Time,
}

impl Push {
    fn over(&self, unit: Unit, to: Unit) -> Overflow {
        Overflow { unit, to, ordinal: self.ordinal, place: self.place, at: self.at }
    }
}

/// The twelve counters, `[from][to]`.
#[derive(Debug)]
pub(super) struct Tokens {
    pushes: [[VecDeque<Push>; 4]; 4],
    most: usize,
}

impl Tokens {
    pub(super) fn new(bits: u32) -> Tokens {
        Tokens { pushes: Default::default(), most: (1 << bits) - 1 }
    }

    /// The units of `need` whose next token for `unit` nobody has pushed yet.
    pub(super) fn missing(&self, unit: Unit, need: UnitSet) -> UnitSet {
        need.iter().filter(|from| self.pushes[*from as usize][unit as usize].is_empty()).collect()
    }

    /// When the next token from a unit is there, which it is known to be.
    pub(super) fn ready(&self, from: Unit, unit: Unit) -> Time {
        self.pushes[from as usize][unit as usize].front().map_or(0, |push| push.at + 1)
    }

    /// Pushes at the retirement of the instruction `(ordinal, place)`, which comes behind all that `clock` counts, itself
    /// included.
    pub(super) fn push(&mut self, unit: Unit, to: UnitSet, (ordinal, place): (u32, u32), at: Time, clock: Clock) {
        for to in to.iter() {
            self.pushes[unit as usize][to as usize].push_back(Push { at, ordinal, place, clock });
        }
    }

    /// Pops at the start of an instruction in cycle `at`, whose clock comes to count what the pushes counted; tells of a
    /// push before that found its counter full.
    pub(super) fn pop(&mut self, unit: Unit, need: UnitSet, at: Time, clock: &mut Clock) -> Option<Overflow> {
        let mut found = None;
        for from in need.iter() {
            let waiting = &mut self.pushes[from as usize][unit as usize];
            // A push and a pop of a full counter in one cycle is no overflow.
            let over = waiting.get(self.most).filter(|push| push.at < at).copied();
            if let Some(push) = waiting.pop_front() {
                for (known, there) in clock.iter_mut().zip(push.clock) {
                    *known = (*known).max(there);
                }
            }
            found = found.or(over.map(|push| push.over(from, unit)));
        }
        found
    }

    /// Pushes that found their counter full and that no pop has come for since.
    pub(super) fn overflows(&self) -> Vec<Overflow> {
        let pairs = Unit::ALL.into_iter().flat_map(|from| Unit::ALL.map(|to| (from, to)));
        pairs
            .filter_map(|(from, to)| Some(self.pushes[from as usize][to as usize].get(self.most)?.over(from, to)))
            .collect()
    }
}
