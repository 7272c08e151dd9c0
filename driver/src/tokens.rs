//! Derives dependency tokens by analysis.
//!
//! Every instruction is compared with the last ones that touched the same entries, bank ports and device memory. If
//! another unit's instruction must have retired first, this one pops a token from it, unless that is known already:
//! each instruction carries a vector clock, the number of each unit's instructions that have retired when it starts.

use crate::access::Footprint;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{Insn, Unit, UnitSet};

/// Granularity in bytes at which accesses to device memory are distinguished.
const GRANULE: u64 = 64;
/// Most banks of a memory.
const BANKS: usize = 8;

/// For each of the four units, the number of instructions known to have retired.
pub type Clock = [u32; 4];

/// The last instruction that touched each entry and bank of one memory, by unit; counts from 1, 0 for none.
struct MemHistory {
    bank_entries: u32,
    written: [Vec<u32>; 4],
    read: [Vec<u32>; 4],
    bank_written: [[u32; BANKS]; 4],
    bank_read: [[u32; BANKS]; 4],
}

/// The last load and store of each granule of a region.
#[derive(Default)]
struct RegionHistory {
    loaded: Vec<u32>,
    stored: Vec<u32>,
}

/// A token: pushed by the instruction at one index of the stream, popped by that at a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token {
    push: usize,
    pop: usize,
}

/// Follows a program in order and collects its tokens.
pub struct Analysis {
    memories: Vec<MemHistory>,
    regions: Vec<RegionHistory>,
    /// For each unit: index in the stream and clock of each instruction.
    issued: [Vec<(usize, Clock)>; 4],
    clock: [Clock; 4],
    /// Tokens by pushing and popping unit.
    tokens: [[Vec<Token>; 4]; 4],
    limit: usize,
}

impl Analysis {
    /// An empty history; `None` if the configuration's token counters are too narrow for its queues.
    pub fn new(config: &HwConfig) -> Option<Analysis> {
        // A unit's queue and one decoded instruction can hold pops that come after the pusher in the stream.
        let limit = (1usize << config.token_bits).checked_sub(2 + config.queue_depth as usize)?;
        let memories = Mem::ALL.iter().map(|&mem| {
            let entries = config.entries(mem);
            MemHistory {
                bank_entries: entries / config.banks(mem),
                written: std::array::from_fn(|_| vec![0; entries as usize]),
                read: std::array::from_fn(|_| vec![0; entries as usize]),
                bank_written: Default::default(),
                bank_read: Default::default(),
            }
        });
        (limit > 0).then(|| Analysis {
            memories: memories.collect(),
            regions: Vec::new(),
            issued: Default::default(),
            clock: Default::default(),
            tokens: Default::default(),
            limit,
        })
    }

    /// Adds the instruction at index `place` of the stream.
    pub fn add(&mut self, place: usize, unit: Unit, footprint: &Footprint) {
        let mut required: Clock = [0; 4];
        self.scratchpads(unit, footprint, &mut required);
        self.dram(footprint, &mut required);
        required[unit as usize] = 0;
        self.wait(place, unit, required);
        let count = self.issued[unit as usize].len() as u32 + 1;
        let mut clock = self.clock[unit as usize];
        clock[unit as usize] = count;
        self.issued[unit as usize].push((place, clock));
        self.remember(unit, footprint, count);
    }

    fn scratchpads(&self, unit: Unit, footprint: &Footprint, required: &mut Clock) {
        for touch in &footprint.scratch {
            let memory = &self.memories[touch.mem as usize];
            let banks = touch.set.banks(memory.bank_entries);
            for other in Unit::ALL.into_iter().filter(|&u| u != unit) {
                let need = &mut required[other as usize];
                let ports = if touch.write { &memory.bank_written } else { &memory.bank_read };
                let port = (0..BANKS).filter(|b| banks >> b & 1 == 1).map(|b| ports[other as usize][b]).max();
                *need = (*need).max(port.unwrap_or(0));
                // A write waits for reads of its entries, and a read for writes. Two writes conflict on their bank's
                // port anyway.
                let table = if touch.write { &memory.read } else { &memory.written };
                let last = touch.set.iter().map(|e| table[other as usize][e as usize]).max();
                *need = (*need).max(last.unwrap_or(0));
            }
        }
    }

    fn dram(&self, footprint: &Footprint, required: &mut Clock) {
        let Some(touch) = &footprint.dram else { return };
        let Some(region) = self.regions.get(touch.base as usize) else { return };
        let (table, other) = if touch.write { (&region.loaded, Unit::Load) } else { (&region.stored, Unit::Store) };
        let last = granules(touch).filter_map(|g| table.get(g)).max().copied().unwrap_or(0);
        required[other as usize] = required[other as usize].max(last);
    }

    fn wait(&mut self, place: usize, unit: Unit, required: Clock) {
        let known = self.clock[unit as usize];
        let missing: Vec<usize> = (0..4).filter(|&u| required[u] > known[u]).collect();
        let clock_of = |u: usize| self.issued[u][required[u] as usize - 1];
        let mut clock = known;
        let mut kept = Vec::new();
        for &u in &missing {
            let (push, at_push) = clock_of(u);
            let implied = missing.iter().any(|&v| v != u && clock_of(v).1[u] >= required[u]);
            if !implied {
                kept.push((u, push));
            }
            for (mine, theirs) in clock.iter_mut().zip(at_push) {
                *mine = (*mine).max(theirs);
            }
        }
        for (u, push) in kept {
            self.tokens[u][unit as usize].push(Token { push, pop: place });
        }
        self.clock[unit as usize] = clock;
    }

    fn remember(&mut self, unit: Unit, footprint: &Footprint, count: u32) {
        for touch in &footprint.scratch {
            let memory = &mut self.memories[touch.mem as usize];
            let banks = touch.set.banks(memory.bank_entries);
            let (table, ports) = if touch.write {
                (&mut memory.written, &mut memory.bank_written)
            } else {
                (&mut memory.read, &mut memory.bank_read)
            };
            for entry in touch.set.iter() {
                table[unit as usize][entry as usize] = count;
            }
            for bank in (0..BANKS).filter(|b| banks >> b & 1 == 1) {
                ports[unit as usize][bank] = count;
            }
        }
        let Some(touch) = &footprint.dram else { return };
        if self.regions.len() <= touch.base as usize {
            self.regions.resize_with(touch.base as usize + 1, RegionHistory::default);
        }
        let region = &mut self.regions[touch.base as usize];
        let table = if touch.write { &mut region.stored } else { &mut region.loaded };
        let end = touch.spans.iter().map(|s| s.end.div_ceil(GRANULE) as usize).max().unwrap_or(0);
        if table.len() < end {
            table.resize(end, 0);
        }
        for granule in granules(touch) {
            table[granule] = count;
        }
    }

    /// Writes the token masks into the program.
    ///
    /// If program order has more tokens of a pair in flight than a counter holds in addition to a full queue, the first
    /// waiting instruction waits for the last push instead, which comes before it in the stream.
    pub fn finish(self, program: &mut [Insn]) {
        for (pusher, by_popper) in self.tokens.into_iter().enumerate() {
            for (popper, tokens) in by_popper.into_iter().enumerate() {
                for token in coalesce(tokens, self.limit) {
                    mark(&mut program[token.push].push, popper);
                    mark(&mut program[token.pop].pop, pusher);
                }
            }
        }
    }
}

fn mark(set: &mut UnitSet, unit: usize) {
    set.insert(Unit::ALL[unit]);
}

fn granules(touch: &crate::access::DramTouch) -> impl Iterator<Item = usize> + '_ {
    touch.spans.iter().flat_map(|s| (s.start / GRANULE) as usize..s.end.div_ceil(GRANULE) as usize)
}

fn coalesce(tokens: Vec<Token>, limit: usize) -> Vec<Token> {
    let mut done = Vec::new();
    let mut waiting: std::collections::VecDeque<Token> = Default::default();
    for token in tokens {
        while waiting.front().is_some_and(|t| t.pop <= token.push) {
            done.extend(waiting.pop_front());
        }
        waiting.push_back(token);
        if waiting.len() > limit
            && let Some(first) = waiting.front().copied()
        {
            waiting.clear();
            waiting.push_back(Token { push: token.push, pop: first.pop });
        }
    }
    done.extend(waiting);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_tokens_become_one_that_waits_for_the_last() {
        let tokens: Vec<Token> = (0..10).map(|k| Token { push: k, pop: 100 + k }).collect();
        let kept = coalesce(tokens, 4);
        assert!(kept.iter().all(|t| t.push < t.pop));
        let balance = |at: usize| kept.iter().filter(|t| t.push < at && t.pop >= at).count();
        assert!((0..120).all(|at| balance(at) <= 4), "{kept:?}");
        assert_eq!(kept[0], Token { push: 8, pop: 100 });
    }
}
