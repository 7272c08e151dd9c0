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
    clock: Clock,
}

/// An overflow: the unit that pushed, its instruction, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Overflow {
    pub(super) unit: Unit,
    pub(super) ordinal: u32,
    pub(super) at: Time,
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

    /// Pushes at the retirement of an instruction, which comes behind all that `clock` counts, itself included.
    pub(super) fn push(&mut self, unit: Unit, to: UnitSet, ordinal: u32, at: Time, clock: Clock) {
        for to in to.iter() {
            self.pushes[unit as usize][to as usize].push_back(Push { at, ordinal, clock });
        }
    }

    /// Pops at the start of an instruction in cycle `at`, whose clock comes to count what the pushes counted; tells of a
    /// push before that found its counter full.
    pub(super) fn pop(&mut self, unit: Unit, need: UnitSet, at: Time, clock: &mut Clock) -> Option<Overflow> {
        let mut found = None;
        for from in need.iter() {
            let waiting = &mut self.pushes[from as usize][unit as usize];
            // A push and a pop of a full counter in one cycle is no overflow.
            let over = waiting.get(self.most).filter(|push| push.at < at).map(|push| (push.at, push.ordinal));
            if let Some(push) = waiting.pop_front() {
                for (known, there) in clock.iter_mut().zip(push.clock) {
                    *known = (*known).max(there);
                }
            }
            found = found.or(over.map(|(at, ordinal)| Overflow { unit: from, ordinal, at }));
        }
        found
    }

    /// Pushes that found their counter full and that no pop has come for since.
    pub(super) fn overflows(&self) -> impl Iterator<Item = Overflow> + '_ {
        Unit::ALL.into_iter().flat_map(move |unit| {
            let full = move |waiting: &VecDeque<Push>| waiting.get(self.most).copied();
            self.pushes[unit as usize].iter().filter_map(full).map(move |push| Overflow {
                unit,
                ordinal: push.ordinal,
                at: push.at,
            })
        })
    }
}
