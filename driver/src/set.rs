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
        for entry in start..=last {
            self.words[entry as usize / 64] |= 1 << (entry % 64);
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
        self.iter().fold(0, |mask, entry| mask | 1 << (entry / bank_entries.max(1)))
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
    fn what_lies_outside_is_named() {
        let mut set = EntrySet::new(100);
        assert_eq!(set.insert_range(90, 11), Err(100));
        set.insert(10).unwrap();
        assert_eq!(set.spread(30, 5), Err(130));
        assert_eq!(set.last(), Some(10));
    }
}
