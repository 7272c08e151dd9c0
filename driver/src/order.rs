//! The order of a program's instructions as a decision.
//!
//! Each unit runs its instructions in the order of the stream, so a load that waits holds back all later ones. A list
//! scheduler looks for an order in which less waits ([`list`]): it runs through approximate times of all units
//! ([`work`]), and at each step selects the instruction that can start first. Of the loads it selects, among the next
//! ones in program order, one that can start early and that the longest chain of later instructions waits for. So loads
//! of the next tile run ahead of a load that waits, and weights of the next layer are loaded while the bus is idle. The
//! other units keep the program's order.
//!
//! Loads and stores share the bus. Where a transfer would slow down a more urgent one, it waits for it by a token
//! ([`slack`]).
//!
//! The result is an order in which the program computes the same. Times are approximate, so only the cycle model can
//! say whether it takes fewer cycles.

mod list;
mod slack;
#[cfg(test)]
mod tests;
mod work;

use crate::conflicts::Conflicts;
pub use list::Search;
pub(crate) use work::Work;

/// An order of a program's instructions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Order {
    /// For each instruction of the stream, its place in the program.
    pub places: Vec<u32>,
    /// Pairs of places in the program. The first instruction waits until the second has retired.
    pub waits: Vec<(u32, u32)>,
}

impl Order {
    /// The program's own order.
    pub fn of_program(insns: usize) -> Order {
        Order { places: (0..insns as u32).collect(), waits: Vec::new() }
    }

    /// Looks for an order that takes less time.
    pub(crate) fn search(conflicts: &[Conflicts], works: &[Work], search: Search) -> Order {
        let schedule = list::schedule(conflicts, works, search);
        let waits = slack::waits(conflicts, works, &schedule);
        Order { places: schedule.places, waits }
    }
}
