//! How many entries of each scratchpad hold data that will still be read, over time.

use tilewright_driver::EntrySet;
use tilewright_driver::trace::Stream;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::Span;

/// Largest number of points of a curve; each is the maximum over its part of the time.
pub const POINTS: usize = 1500;

/// The scratchpads that are shown.
const MEMS: [Mem; 5] = [Mem::Inp, Mem::Wgt, Mem::Acc, Mem::Out, Mem::Param];

/// Entries in use over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupancy {
    /// Cycles from one point to the next.
    pub step: u64,
    /// For each scratchpad: name, number of entries, and the maximum of entries in use around each point.
    pub memories: Vec<(&'static str, u32, Vec<u32>)>,
}

/// Life of an entry's contents: the cycle of its first write, and the cycle in which its last use ended and it is free
/// again.
type Life = (u64, u64);

/// Collects the lives of entries.
pub(super) struct Events {
    begin: u64,
    memories: Vec<ScratchpadHistory>,
}

/// A scratchpad: current contents of its entries, and lives that have ended. Lives of one entry do not overlap.
struct ScratchpadHistory {
    mem: Mem,
    entries: u32,
    lives: Vec<Option<Life>>,
    done: Vec<Life>,
}

impl ScratchpadHistory {
    /// Records a read of an entry.
    fn uses(&mut self, entry: u32, start: u64, end: u64) {
        let life = &mut self.lives[entry as usize];
        *life = Some(life.map_or((start, end), |(from, to)| (from, to.max(end))));
    }

    /// Records new contents of an entry. A unit can begin an instruction before the previous one has ended, so the old
    /// contents can still be in use; in that case the life continues.
    fn writes(&mut self, entry: u32, start: u64, end: u64) {
        let life = &mut self.lives[entry as usize];
        match life {
            Some((from, to)) if start < *to => *life = Some(((*from).min(start), (*to).max(end))),
            _ => self.done.extend(life.replace((start, end))),
        }
    }

    /// The maximum number of entries in use in each interval of `step` cycles.
    fn most(self, cycles: u64, step: u64) -> Vec<u32> {
        let lives = self.done.into_iter().chain(self.lives.into_iter().flatten());
        let mut changes: Vec<(u64, i64)> = lives.flat_map(|(from, to)| [(from, 1), (to, -1)]).collect();
        changes.sort_unstable_by_key(|(cycle, _)| *cycle);
        let mut most = Vec::with_capacity(cycles.div_ceil(step) as usize);
        let mut held = 0;
        for now in changes.chunk_by(|a, b| a.0 == b.0).take_while(|now| now[0].0 < cycles) {
            // Intervals that begin before this cycle start with what is held since the last change.
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
            ScratchpadHistory { mem, entries, lives: vec![None; entries as usize], done: Vec::new() }
        };
        Events { begin: 0, memories: MEMS.into_iter().map(memory).collect() }
    }

    /// Follows a command's instructions in program order, which is one of the orders that the tokens allow. An entry is
    /// in use from the start of the instruction that writes it until the last instruction that reads this data retires.
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
                    // An accumulation continues the life of an entry.
                    if !read.iter().any(|set| set.contains(entry)) {
                        memory.writes(entry, start, end);
                    }
                }
            }
        }
        self.begin += cycles;
    }

    /// Samples the curves.
    pub(super) fn sampled(self) -> Occupancy {
        let step = self.begin.div_ceil(POINTS as u64).max(1);
        let curve = |memory: ScratchpadHistory| (memory.mem.name(), memory.entries, memory.most(self.begin, step));
        Occupancy { step, memories: self.memories.into_iter().map(curve).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CYCLES: u64 = 40;

    /// The curve of a memory with four entries and a point for every 10 cycles.
    fn curve(lives: &[(u32, u64, u64)]) -> Vec<u32> {
        let mut memory = ScratchpadHistory { mem: Mem::Inp, entries: 4, lives: vec![None; 4], done: Vec::new() };
        lives.iter().for_each(|(entry, start, end)| memory.writes(*entry, *start, *end));
        memory.most(CYCLES, 10)
    }

    #[test]
    fn an_entry_that_is_written_again_counts_once() {
        let thrice = [(0, 11, 13), (0, 13, 15), (0, 15, 19)];
        assert_eq!(curve(&thrice), [0, 1, 0, 0]);
        assert_eq!(curve(&[&thrice[..], &[(1, 12, 31)]].concat()), [0, 2, 1, 1]);
        // The next write begins before the last use of the old contents has ended.
        assert_eq!(curve(&[(2, 3, 8), (2, 6, 12), (2, 12, 14)]), [1, 1, 0, 0]);
    }

    #[test]
    fn the_most_may_lie_between_points_and_in_one_cycle() {
        assert_eq!(curve(&[(0, 2, 6), (1, 5, 8), (2, 6, 9), (3, 7, 8)]), [3, 0, 0, 0]);
        // All entries are replaced at the border of two intervals: neither interval has both.
        assert_eq!(curve(&[(0, 5, 10), (1, 5, 10), (2, 10, 12), (3, 10, 12)]), [2, 2, 0, 0]);
        // One life spans intervals without a change and ends at a border.
        assert_eq!(curve(&[(0, 1, 30), (1, 2, 4)]), [2, 1, 1, 0]);
        assert_eq!(curve(&[(0, 39, CYCLES), (1, 38, CYCLES)]), [0, 0, 0, 2]);
        assert_eq!(curve(&[]), [0; 4]);
    }

    #[test]
    fn what_is_read_stays_in_use_until_then() {
        let mut memory = ScratchpadHistory { mem: Mem::Acc, entries: 2, lives: vec![None; 2], done: Vec::new() };
        memory.writes(0, 1, 3);
        memory.writes(1, 4, 6);
        memory.uses(0, 14, 21);
        assert_eq!(memory.most(CYCLES, 10), [2, 1, 1, 0]);
    }
}
