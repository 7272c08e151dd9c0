//! Room in the scratchpads, given out in turn.
//!
//! A tile takes the entries behind the tile before it, so that loads, products, requantization and stores of
//! neighbouring tiles work on different ones. What a memory still holds is not loaded again.

use tilewright_hw::config::{HwConfig, Mem};

/// The turn of one memory.
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

    /// A memory whose tiles begin at banks of their own, so that no two units meet at a bank's port.
    pub fn banked(config: &HwConfig, mem: Mem) -> Ring<K> {
        Ring { align: config.entries(mem) / config.banks(mem), ..Ring::new(config, mem) }
    }

    /// Some entries of a memory.
    pub fn part(first: u32, entries: u32) -> Ring<K> {
        Ring { first, entries, align: 1, next: 0, held: Vec::new() }
    }

    /// The lower or the upper half of a memory.
    pub fn half(config: &HwConfig, mem: Mem, upper: bool) -> Ring<K> {
        let entries = config.entries(mem) / 2;
        Ring { first: if upper { entries } else { 0 }, entries, ..Ring::new(config, mem) }
    }

    /// Entries of the next tile; the memory has at least as many.
    pub fn take(&mut self, count: u32) -> u32 {
        let start = if self.next + count > self.entries { 0 } else { self.next };
        self.next = (start + count).next_multiple_of(self.align);
        let start = self.first + start;
        self.held.retain(|&(_, at, len)| at + len <= start || start + count <= at);
        start
    }

    /// Where a tile still lies.
    pub fn find(&self, key: &K) -> Option<u32> {
        self.held.iter().find(|(k, ..)| k == key).map(|&(_, at, _)| at)
    }

    /// Takes room for a tile and remembers it.
    pub fn hold(&mut self, key: K, count: u32) -> u32 {
        let start = self.take(count);
        self.held.push((key, start, count));
        start
    }

    /// Forgets what the memory holds.
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
}
