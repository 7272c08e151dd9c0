//! Ring allocation of scratchpad entries.
//!
//! Each tile gets the entries after the previous tile's, so that loads, products, requantization and stores of
//! neighboring tiles use different entries. Data that a memory still holds are not loaded again.

use tilewright_hw::config::{HwConfig, Mem};

/// Allocator for the entries of one memory.
#[derive(Debug)]
pub struct Ring<K> {
    first: u32,
    entries: u32,
    align: u32,
    next: u32,
    held: Vec<(K, u32, u32)>,
}

impl<K: PartialEq> Ring<K> {
    /// A memory whose tiles begin at any entry.
    pub fn new(config: &HwConfig, mem: Mem) -> Ring<K> {
        Ring { first: 0, entries: config.entries(mem), align: 1, next: 0, held: Vec::new() }
    }

    /// A memory in which each tile begins at a new bank, so that two units do not use the port of one bank.
    pub fn banked(config: &HwConfig, mem: Mem) -> Ring<K> {
        Ring { align: config.entries(mem) / config.banks(mem), ..Ring::new(config, mem) }
    }

    /// A part of a memory.
    pub fn part(first: u32, entries: u32) -> Ring<K> {
        Ring { first, entries, align: 1, next: 0, held: Vec::new() }
    }

    /// The lower or the upper half of a memory.
    pub fn half(config: &HwConfig, mem: Mem, upper: bool) -> Ring<K> {
        let entries = config.entries(mem) / 2;
        Ring { first: if upper { entries } else { 0 }, entries, ..Ring::new(config, mem) }
    }

    /// Allocates entries for the next tile and returns the first. The memory must have at least `count` entries.
    pub fn take(&mut self, count: u32) -> u32 {
        let start = if self.next + count > self.entries { 0 } else { self.next };
        self.next = (start + count).next_multiple_of(self.align);
        let start = self.first + start;
        self.held.retain(|&(_, at, len)| at + len <= start || start + count <= at);
        start
    }

    /// Returns the first entry of a tile that the memory still holds.
    pub fn find(&self, key: &K) -> Option<u32> {
        self.held.iter().find(|(k, ..)| k == key).map(|&(_, at, _)| at)
    }

    /// Allocates entries for a tile, remembers it under `key`, and returns the first.
    pub fn hold(&mut self, key: K, count: u32) -> u32 {
        let start = self.take(count);
        self.held.push((key, start, count));
        start
    }

    /// Allocates entries for `slots` tiles of `count` entries that are used in turn, and returns the first of each. The
    /// memory must have room for all of them.
    pub fn take_slots(&mut self, slots: u32, count: u32) -> Vec<u32> {
        // Slots do not reach over the end of the memory, so a slot may have to begin some entries later.
        let fits = |start: &u32| (self.entries - start) / count + start / count >= slots;
        let later = self.next..(self.next + count).min(self.entries);
        self.next = later.into_iter().find(fits).unwrap_or(0);
        (0..slots).map(|_| self.take(count)).collect()
    }

    /// Continues behind entry `end` with the next tile.
    pub fn resume(&mut self, end: u32) {
        self.next = (end - self.first).next_multiple_of(self.align);
    }

    /// Forgets all tiles that the memory holds.
    pub fn forget(&mut self) {
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_take_turns_and_give_way() {
        let config = HwConfig::default();
        let mut ring: Ring<u32> = Ring::new(&config, Mem::Wgt);
        assert_eq!((ring.hold(1, 600), ring.hold(2, 400), ring.hold(3, 500)), (0, 600, 0));
        assert_eq!((ring.find(&1), ring.find(&2), ring.find(&3)), (None, Some(600), Some(0)));
        let mut acc: Ring<u32> = Ring::banked(&config, Mem::Acc);
        assert_eq!([acc.take(10), acc.take(600), acc.take(10), acc.take(1)], [0, 512, 1536, 0]);
    }

    #[test]
    fn slots_go_around_the_end() {
        let mut ring: Ring<u32> = Ring::new(&HwConfig::default(), Mem::Wgt);
        ring.take(650);
        assert_eq!(ring.take_slots(3, 280), [650, 0, 280]);
        ring.resume(500);
        assert_eq!(ring.take_slots(3, 280), [560, 0, 280]);
        ring.resume(1024);
        assert_eq!(ring.take_slots(2, 512), [0, 512]);
    }
}
