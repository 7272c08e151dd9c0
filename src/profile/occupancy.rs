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

/// An entry with something in it: when it was written first, and when it was used last.
type Life = Option<(u64, u64)>;

/// Lives of entries, as they are found.
pub(super) struct Events {
    begin: u64,
    memories: Vec<Memory>,
}

/// A scratchpad: what its entries hold, and lives that have ended.
struct Memory {
    mem: Mem,
    entries: u32,
    lives: Vec<Life>,
    done: Vec<(u64, u64)>,
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
    /// is in use from the start of the instruction that writes it to the end of the last that reads what it wrote.
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
            for Memory { mem, lives, done, .. } in &mut self.memories {
                let read = sets(*mem, false);
                for entry in read.iter().flat_map(|set| set.iter()) {
                    let life = &mut lives[entry as usize];
                    *life = Some(life.map_or((start, end), |(from, to)| (from, to.max(end))));
                }
                for entry in sets(*mem, true).iter().flat_map(|set| set.iter()) {
                    // What adds to an entry goes on with it.
                    if read.iter().any(|set| set.contains(entry)) {
                        continue;
                    }
                    done.extend(lives[entry as usize].replace((start, end)));
                }
            }
        }
        self.begin += cycles;
    }

    /// The curves.
    pub(super) fn sampled(self) -> Occupancy {
        let step = self.begin.div_ceil(POINTS as u64).max(1);
        let curve = |Memory { mem, entries, lives, mut done }: Memory| {
            done.extend(lives.into_iter().flatten());
            // Entries that begin and end in each step; the most of a step has all that lived in it at some time, and no more than
            // there are.
            let mut change = vec![0i64; POINTS + 2];
            for (from, to) in done {
                let place = |cycle: u64| ((cycle / step) as usize).min(POINTS);
                change[place(from)] += 1;
                change[place(to) + 1] -= 1;
            }
            let points = self.begin.div_ceil(step) as usize;
            let running = change.iter().take(points).scan(0i64, |sum, n| {
                *sum += n;
                Some((*sum).clamp(0, i64::from(entries)) as u32)
            });
            (mem.name(), entries, running.collect())
        };
        Occupancy { step, memories: self.memories.into_iter().map(curve).collect() }
    }
}
