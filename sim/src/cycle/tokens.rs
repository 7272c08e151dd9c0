//! The token counters, as times.

use super::check::Clock;
use super::slots::Time;
use std::collections::VecDeque;
use tilewright_hw::isa::{Unit, UnitSet};

/// A push whose token no pop has taken yet.
#[derive(Debug, Clone, Copy)]
struct Push {
    at: Time,
    ordinal: u32,
    place: u32,
    clock: Clock,
}

/// An overflow: the unit that pushed, its instruction, and the cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Overflow {
    pub(super) unit: Unit,
    /// The unit that the tokens are for.
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

/// A counter. Pushes and pops each arrive in the order of their cycles, but not in a common order: a pop that waits for
/// its busy unit is known before pushes that happen until then.
#[derive(Debug, Default)]
struct Counter {
    /// Pushes whose token no pop has taken.
    pushes: VecDeque<Push>,
    /// Pops that a later push could still precede, oldest first.
    pops: VecDeque<Time>,
}

/// The twelve counters, `[from][to]`.
#[derive(Debug)]
pub(super) struct Tokens {
    counters: [[Counter; 4]; 4],
    most: usize,
    /// Number of pushes to full counters whose pops are not known yet.
    full: usize,
}

impl Tokens {
    pub(super) fn new(bits: u32) -> Tokens {
        Tokens { counters: Default::default(), most: (1 << bits) - 1, full: 0 }
    }

    /// Returns whether a counter has overflowed unless a pop still makes room in time.
    pub(super) fn may_have_overflowed(&self) -> bool {
        self.full > 0
    }

    /// Returns the units in `need` that have not pushed their next token for `unit` yet.
    pub(super) fn missing(&self, unit: Unit, need: UnitSet) -> UnitSet {
        need.iter().filter(|from| self.counters[*from as usize][unit as usize].pushes.is_empty()).collect()
    }

    /// Returns the first cycle in which the next token from a unit can be taken. The token must have been pushed.
    pub(super) fn ready(&self, from: Unit, unit: Unit) -> Time {
        self.counters[from as usize][unit as usize].pushes.front().map_or(0, |push| push.at + 1)
    }

    /// Pushes tokens when instruction `(ordinal, place)` retires. `clock` counts the instructions it is ordered after,
    /// itself included. Returns an overflow if the pop that makes room comes later.
    pub(super) fn push(
        &mut self,
        unit: Unit,
        to: UnitSet,
        (ordinal, place): (u32, u32),
        at: Time,
        clock: Clock,
    ) -> Option<Overflow> {
        let mut found = None;
        for to in to.iter() {
            let counter = &mut self.counters[unit as usize][to as usize];
            let push = Push { at, ordinal, place, clock };
            counter.pushes.push_back(push);
            self.full += usize::from(counter.pushes.len() > self.most);
            // The pop that makes room for this push precedes it by as many tokens as the counter holds.
            if counter.pushes.len() + counter.pops.len() > self.most
                && counter.pops.pop_front().is_some_and(|pop| at < pop)
            {
                found = found.or(Some(push.over(unit, to)));
            }
        }
        found
    }

    /// Pops tokens when an instruction starts in cycle `at`, and raises its clock to those of the pushes. Returns an
    /// overflow if an earlier push found its counter full.
    pub(super) fn pop(&mut self, unit: Unit, need: UnitSet, at: Time, clock: &mut Clock) -> Option<Overflow> {
        let mut found = None;
        for from in need.iter() {
            let counter = &mut self.counters[from as usize][unit as usize];
            // The push that needs the room of this pop. A push and a pop of a full counter in the same cycle do not
            // overflow.
            match counter.pushes.get(self.most) {
                Some(push) if push.at < at => found = found.or(Some(push.over(from, unit))),
                Some(_) => {}
                None => counter.pops.push_back(at),
            }
            self.full -= usize::from(counter.pushes.len() > self.most);
            if let Some(push) = counter.pushes.pop_front() {
                for (known, there) in clock.iter_mut().zip(push.clock) {
                    *known = (*known).max(there);
                }
            }
        }
        found
    }

    /// Returns the pushes to full counters that no pop has made room for.
    pub(super) fn overflows(&self) -> Vec<Overflow> {
        let pairs = Unit::ALL.into_iter().flat_map(|from| Unit::ALL.map(|to| (from, to)));
        let full = |counter: &Counter| counter.pushes.get(self.most).copied();
        pairs.filter_map(|(from, to)| Some(full(&self.counters[from as usize][to as usize])?.over(from, to))).collect()
    }
}
