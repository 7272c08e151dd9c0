//! Sets of scratchpad entries.

/// A set of entries of one memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntrySet {
    words: Vec<u64>,
    entries: u32,
}

impl EntrySet {
    /// An empty set for a memory of `entries`.
    pub fn new(entries: u32) -> EntrySet {
        EntrySet { words: vec![0; entries.div_ceil(64) as usize], entries }
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// The entry, if it is outside the memory.
    pub fn insert(&mut self, entry: u64) -> Result<(), u64> {
        if entry >= self.entries.into() {
            return Err(entry);
        }
        self.words[entry as usize / 64] |= 1 << (entry % 64);
        Ok(())
    }

    /// Adds `count` entries from `start` on.
    ///
    /// # Errors
    /// The last entry, if it is outside the memory.
    pub fn insert_range(&mut self, start: u64, count: u64) -> Result<(), u64> {
        if count == 0 {
            return Ok(());
        }
        let last = start + count - 1;
        if last >= self.entries.into() {
            return Err(last);
        }
        let (first_word, last_word) = (start as usize / 64, last as usize / 64);
        let (from, to) = (u64::MAX << (start % 64), u64::MAX >> (63 - last % 64));
        for (i, word) in self.words[first_word..=last_word].iter_mut().enumerate() {
            let from = if i == 0 { from } else { u64::MAX };
            let to = if first_word + i == last_word { to } else { u64::MAX };
            *word |= from & to;
        }
        Ok(())
    }

    /// Replaces the set by its union with itself shifted by `step`, `2 step`, … `(count - 1) step`.
    ///
    /// # Errors
    /// The greatest entry, if it is outside the memory.
    pub fn spread(&mut self, step: u32, count: u32) -> Result<(), u64> {
        let Some(last) = self.last() else { return Ok(()) };
        let reach = u64::from(last) + u64::from(step) * u64::from(count.saturating_sub(1));
        if reach >= self.entries.into() {
            return Err(reach);
        }
        if step == 0 {
            return Ok(());
        }
        let mut have = 1;
        while have < count {
            let more = have.min(count - have);
            self.or_shifted((more * step) as usize);
            have += more;
        }
        Ok(())
    }

    fn or_shifted(&mut self, by: usize) {
        let (words, bits) = (by / 64, by % 64);
        for i in (words..self.words.len()).rev() {
            let mut moved = self.words[i - words] << bits;
            if bits > 0 && i > words {
                moved |= self.words[i - words - 1] >> (64 - bits);
            }
            self.words[i] |= moved;
        }
    }

    /// The greatest entry.
    pub fn last(&self) -> Option<u32> {
        let (i, word) = self.words.iter().enumerate().rev().find(|(_, w)| **w != 0)?;
        Some(i as u32 * 64 + 63 - word.leading_zeros())
    }

    /// The words with entries: their indices, and the bits of their entries.
    pub fn words(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.words.iter().copied().enumerate().filter(|(_, word)| *word != 0)
    }

    /// The entries in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                Some(i as u32 * 64 + bit)
            })
        })
    }

    /// Whether an entry is in the set.
    pub fn contains(&self, entry: u32) -> bool {
        self.words.get(entry as usize / 64).is_some_and(|word| word >> (entry % 64) & 1 == 1)
    }

    /// Adds the entries of another set of the same memory.
    pub fn insert_all(&mut self, other: &EntrySet) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a |= b);
    }

    /// Whether every entry of another set of the same memory is in this one.
    pub fn covers(&self, other: &EntrySet) -> bool {
        self.words.iter().zip(&other.words).all(|(a, b)| b & !a == 0)
    }

    /// Whether both sets have an entry in common.
    pub fn intersects(&self, other: &EntrySet) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// Bit mask of the banks that the set touches, each of `bank_entries` entries.
    pub fn banks(&self, bank_entries: u32) -> u32 {
        if bank_entries == 0 || !bank_entries.is_multiple_of(64) {
            return self.iter().fold(0, |mask, entry| mask | 1 << (entry / bank_entries.max(1)));
        }
        let banks = self.words.chunks(bank_entries as usize / 64).enumerate();
        banks.filter(|(_, words)| words.iter().any(|word| *word != 0)).fold(0, |mask, (bank, _)| mask | 1 << bank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreading_equals_counting() {
        for (start, step, count) in [(3u32, 7, 20), (0, 64, 5), (60, 1, 300), (5, 0, 9), (2, 100, 10)] {
            let mut set = EntrySet::new(1024);
            set.insert(start.into()).unwrap();
            set.insert(u64::from(start) + 2).unwrap();
            set.spread(step, count).unwrap();
            let mut expected: Vec<u32> = (0..count).flat_map(|k| [start + k * step, start + 2 + k * step]).collect();
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(set.iter().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn ranges_and_banks_equal_single_entries() {
        for (start, count) in [(0, 64), (5, 3), (60, 10), (63, 2), (64, 128), (100, 200), (255, 1), (0, 512)] {
            let (mut range, mut single) = (EntrySet::new(512), EntrySet::new(512));
            range.insert_range(start, count).unwrap();
            (start..start + count).for_each(|entry| single.insert(entry).unwrap());
            assert_eq!(range, single);
            for bank_entries in [64, 100, 128, 512] {
                let expected = single.iter().fold(0, |mask, entry| mask | 1 << (entry / bank_entries));
                assert_eq!(range.banks(bank_entries), expected);
            }
        }
    }

    #[test]
    fn what_lies_outside_is_named() {
        let mut set = EntrySet::new(100);
        assert_eq!(set.insert_range(90, 11), Err(100));
        set.insert(10).unwrap();
        assert_eq!(set.spread(30, 5), Err(130));
        assert_eq!(set.last(), Some(10));
    }
}
