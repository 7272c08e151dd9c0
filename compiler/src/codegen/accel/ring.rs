//! Ring allocation of scratchpad entries.
//!
//! Each layer gets the entries behind those of the layer before, so that the units can work on both at the same time.

use tilewright_hw::config::{HwConfig, Mem};

/// Allocator for the entries of one memory.
#[derive(Debug)]
pub struct Ring {
    first: u32,
    entries: u32,
    align: u32,
    next: u32,
}

impl Ring {
    /// A memory whose buffers begin at any entry.
    pub fn new(config: &HwConfig, mem: Mem) -> Ring {
        Ring::part(0, config.entries(mem))
    }

    /// A memory in which each buffer begins at a new bank, so that two units do not use the port of one bank.
    pub fn banked(config: &HwConfig, mem: Mem) -> Ring {
        Ring { align: config.entries(mem) / config.banks(mem), ..Ring::new(config, mem) }
    }

    /// A part of a memory.
    pub fn part(first: u32, entries: u32) -> Ring {
        Ring { first, entries, align: 1, next: 0 }
    }

    /// Allocates the next entries and returns the first. The memory must have at least `count` entries.
    pub fn take(&mut self, count: u32) -> u32 {
        let start = if self.next + count > self.entries { 0 } else { self.next };
        self.next = (start + count).next_multiple_of(self.align);
        self.first + start
    }

    /// Allocates `slots` times `count` entries that are used in turn, and returns the first of each. The memory must
    /// have room for all of them.
    pub fn take_slots(&mut self, slots: u32, count: u32) -> Vec<u32> {
        // Slots do not reach over the end of the memory, so a slot may have to begin some entries later.
        let fits = |start: &u32| (self.entries - start) / count + start / count >= slots;
        let later = self.next..(self.next + count).min(self.entries);
        self.next = later.into_iter().find(fits).unwrap_or(0);
        (0..slots).map(|_| self.take(count)).collect()
    }

    /// Continues behind entry `end`.
    pub fn resume(&mut self, end: u32) {
        self.next = (end - self.first).next_multiple_of(self.align);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_take_turns() {
        let config = HwConfig::default();
        let mut ring = Ring::new(&config, Mem::Wgt);
        assert_eq!([ring.take(600), ring.take(400), ring.take(500)], [0, 600, 0]);
        let mut acc = Ring::banked(&config, Mem::Acc);
        assert_eq!([acc.take(10), acc.take(600), acc.take(10), acc.take(1)], [0, 512, 1536, 0]);
    }

    #[test]
    fn slots_go_around_the_end() {
        let mut ring = Ring::new(&HwConfig::default(), Mem::Wgt);
        ring.take(650);
        assert_eq!(ring.take_slots(3, 280), [650, 0, 280]);
        ring.resume(500);
        assert_eq!(ring.take_slots(3, 280), [560, 0, 280]);
        ring.resume(1024);
        assert_eq!(ring.take_slots(2, 512), [0, 512]);
    }
}
