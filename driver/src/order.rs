//! The order of a program's instructions as a decision.
//!
//! Each unit runs its instructions in the order of the stream, so an instruction that waits holds back all later ones
//! of its unit. A list scheduler looks for an order in which less waits: it runs through approximate times of all
//! units ([`work`]), and at each step selects, among the next few instructions of each unit, one that can start early
//! and that the rest of the program waits for most ([`list`]). So loads of the next tile run ahead of a load that
//! waits, and weights of the next layer are loaded while the bus is idle. Products stay in program order.
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
pub(crate) use work::Work;

/// How an order is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// Number of loads, in program order, from which the next one is selected.
    pub loads: usize,
    /// The same for vector instructions and for stores.
    pub results: usize,
    /// An instruction waits for a more urgent one that starts within this percentage of its own time.
    pub patience: u64,
}

impl Search {
    /// The search that is best most often.
    pub const FIRST: Search = Search { loads: 48, results: 1, patience: 50 };

    /// Searches whose results differ; each is the best one for some program.
    pub const ALL: [Search; 5] = [
        Search::FIRST,
        Search { loads: 128, ..Search::FIRST },
        Search { loads: 16, ..Search::FIRST },
        Search { patience: 100, ..Search::FIRST },
        Search { results: 4, ..Search::FIRST },
    ];
}

/// An order of a program's instructions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Order {
    /// For each instruction of the stream, its place in the program.
    pub places: Vec<u32>,
    /// Pairs of instructions, by place, of which the first waits until the second has retired.
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
