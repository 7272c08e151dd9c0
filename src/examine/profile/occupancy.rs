//! How many entries of each scratchpad hold what will still be read, over time.

use tilewright_driver::EntrySet;
use tilewright_driver::trace::Stream;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::Span;

/// Points of a curve: each is the most of its part of the time.
pub const POINTS: usize = 1500;

/// The scratchpads that are looked at.
const MEMS: [Mem; 5] = [Mem::Inp, Mem::Wgt, Mem::Acc, Mem::Out, Mem::Param];

/// Entries in use over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupancy {
    /// Cycles from one point to the next.
    pub step: u64,
    /// Of each scratchpad its name, its entries, and the most entries in use around each point.
    pub memories: Vec<(&'static str, u32, Vec<u32>)>,
}

/// An entry with something in it: the cycle in which it was written first, and the one in which its last use ended, in which it
/// is free again.
type Life = (u64, u64);

/// Lives of entries, as they are found.
pub(super) struct Events {
    begin: u64,
    memories: Vec<Memory>,
}

/// A scratchpad: what its entries hold, and lives that have ended. Lives of one entry do not overlap.
struct Memory {
    mem: Mem,
    entries: u32,
    lives: Vec<Option<Life>>,
    done: Vec<Life>,
}

impl Memory {
    /// What is in an entry was used.
    fn uses(&mut self, entry: u32, start: u64, end: u64) {
        let life = &mut self.lives[entry as usize];
        *life = Some(life.map_or((start, end), |(from, to)| (from, to.max(end))));
    }

    /// An entry gets something else. A unit begins an instruction while the one before it still ends, so what was in it may
    /// be in use until then: the entry stays in use.
    fn writes(&mut self, entry: u32, start: u64, end: u64) {
        let life = &mut self.lives[entry as usize];
        match life {
            Some((from, to)) if start < *to => *life = Some(((*from).min(start), (*to).max(end))),
            _ => self.done.extend(life.replace((start, end))),
        }
    }

    /// The most entries in use in any cycle of each `step` cycles.
    fn most(self, cycles: u64, step: u64) -> Vec<u32> {
        let lives = self.done.into_iter().chain(self.lives.into_iter().flatten());
        let mut changes: Vec<(u64, i64)> = lives.flat_map(|(from, to)| [(from, 1), (to, -1)]).collect();
        changes.sort_unstable_by_key(|(cycle, _)| *cycle);
        let mut most = Vec::with_capacity(cycles.div_ceil(step) as usize);
        let mut held = 0;
        for now in changes.chunk_by(|a, b| a.0 == b.0).take_while(|now| now[0].0 < cycles) {
            // Parts of the time that begin before this cycle begin with what is held since the last change.
            most.resize(now[0].0.div_ceil(step) as usize, held);
            held += now.iter().map(|(_, change)| change).sum::<i64>();
            match most.get_mut((now[0].0 / step) as usize) {
                Some(most) => *most = held.max(*most),
                None => most.push(held),
            }
        }
        most.resize(cycles.div_ceil(step) as usize, held);
        most.into_iter().map(|held| held as u32).collect()
    }
}

impl Events {
    pub(super) fn new(config: &HwConfig) -> Events {
        let memory = |mem: Mem| {
            let entries = config.entries(mem);
            Memory { mem, entries, lives: vec![None; entries as usize], done: Vec::new() }
        };
        Events { begin: 0, memories: MEMS.into_iter().map(memory).collect() }
    }

    /// Follows a command's instructions in the order of its program, which is one of the orders that its tokens allow. An entry
    /// is in use from the cycle in which the instruction that writes it starts to the one before that in which the last that
    /// reads what it wrote retires.
    pub(super) fn command(&mut self, stream: &Stream, spans: &[Span], cycles: u64) {
        let mut next = [0usize; 4];
        let mut of_unit: [Vec<&Span>; 4] = Default::default();
        spans.iter().for_each(|span| of_unit[span.unit as usize].push(span));
        for (index, insn) in stream.insns().iter().enumerate() {
            let unit = insn.unit() as usize;
            let span = of_unit[unit].get(next[unit]);
            next[unit] += 1;
            let (Some(span), Some(found)) = (span, stream.footprint(index)) else { continue };
            let (start, end) = (self.begin + span.start, self.begin + span.end.unwrap_or(cycles));
            let sets = |mem: Mem, write: bool| -> Vec<&EntrySet> {
                let touches = found.scratch.iter().filter(move |touch| touch.mem == mem && touch.write == write);
                touches.map(|touch| &touch.set).collect()
            };
            for memory in &mut self.memories {
                let (read, written) = (sets(memory.mem, false), sets(memory.mem, true));
                read.iter().flat_map(|set| set.iter()).for_each(|entry| memory.uses(entry, start, end));
                for entry in written.iter().flat_map(|set| set.iter()) {
                    // What adds to an entry goes on with it.
                    if !read.iter().any(|set| set.contains(entry)) {
                        memory.writes(entry, start, end);
                    }
                }
            }
        }
        self.begin += cycles;
    }

    /// The curves.
    pub(super) fn sampled(self) -> Occupancy {
        let step = self.begin.div_ceil(POINTS as u64).max(1);
        let curve = |memory: Memory| (memory.mem.name(), memory.entries, memory.most(self.begin, step));
        Occupancy { step, memories: self.memories.into_iter().map(curve).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CYCLES: u64 = 40;

    /// The curve of a memory of four entries with a point for each 10 cycles.
    fn curve(lives: &[(u32, u64, u64)]) -> Vec<u32> {
        let mut memory = Memory { mem: Mem::Inp, entries: 4, lives: vec![None; 4], done: Vec::new() };
        lives.iter().for_each(|(entry, start, end)| memory.writes(*entry, *start, *end));
        memory.most(CYCLES, 10)
    }

    #[test]
    fn an_entry_that_is_written_again_counts_once() {
        let thrice = [(0, 11, 13), (0, 13, 15), (0, 15, 19)];
        assert_eq!(curve(&thrice), [0, 1, 0, 0]);
        assert_eq!(curve(&[&thrice[..], &[(1, 12, 31)]].concat()), [0, 2, 1, 1]);
        // The next write begins before the last use of what was there has ended.
        assert_eq!(curve(&[(2, 3, 8), (2, 6, 12), (2, 12, 14)]), [1, 1, 0, 0]);
    }

    #[test]
    fn the_most_may_lie_between_points_and_in_one_cycle() {
        assert_eq!(curve(&[(0, 2, 6), (1, 5, 8), (2, 6, 9), (3, 7, 8)]), [3, 0, 0, 0]);
        // All change hands at the edge of two steps: neither has both.
        assert_eq!(curve(&[(0, 5, 10), (1, 5, 10), (2, 10, 12), (3, 10, 12)]), [2, 2, 0, 0]);
        // One goes on over steps in which nothing changes, and ends at an edge.
        assert_eq!(curve(&[(0, 1, 30), (1, 2, 4)]), [2, 1, 1, 0]);
        assert_eq!(curve(&[(0, 39, CYCLES), (1, 38, CYCLES)]), [0, 0, 0, 2]);
        assert_eq!(curve(&[]), [0; 4]);
    }

    #[test]
    fn what_is_read_stays_in_use_until_then() {
        let mut memory = Memory { mem: Mem::Acc, entries: 2, lives: vec![None; 2], done: Vec::new() };
        memory.writes(0, 1, 3);
        memory.writes(1, 4, 6);
        memory.uses(0, 14, 21);
        assert_eq!(memory.most(CYCLES, 10), [2, 1, 1, 0]);
    }
}
