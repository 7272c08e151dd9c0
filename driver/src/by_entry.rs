//! Values of a memory's entries.

use crate::set::EntrySet;

/// Entries of a word of [`EntrySet`].
const WORD: u32 = 64;

/// A value for each entry of a memory. Instructions touch many entries at a time, so entries of a word with equal
/// values are kept together.
#[derive(Debug)]
pub struct ByEntry<T> {
    /// For each word, masks of its entries with their values. Each entry is in one mask; values differ.
    words: Vec<Vec<(u64, T)>>,
}

impl<T: Copy + PartialEq> ByEntry<T> {
    /// The same value for all entries.
    pub fn new(entries: u32, value: T) -> ByEntry<T> {
        ByEntry { words: vec![vec![(u64::MAX, value)]; entries.div_ceil(WORD) as usize] }
    }

    /// The values of a set's entries; those of neighboring entries come together.
    pub fn of<'a>(&'a self, set: &'a EntrySet) -> impl Iterator<Item = T> + 'a {
        let parts = set.words().flat_map(|(at, mask)| self.words[at].iter().filter(move |part| part.0 & mask != 0));
        parts.map(|part| part.1)
    }

    /// Changes the values of a set's entries.
    pub fn change(&mut self, set: &EntrySet, mut to: impl FnMut(T) -> T) {
        for (at, mask) in set.words() {
            change_word(&mut self.words[at], mask, &mut to);
        }
    }
}

fn change_word<T: Copy + PartialEq>(parts: &mut Vec<(u64, T)>, mask: u64, to: &mut impl FnMut(T) -> T) {
    for i in 0..parts.len() {
        let (own, value) = parts[i];
        let (inside, changed) = (own & mask, to(value));
        if inside == 0 || changed == value {
            continue;
        }
        parts[i].0 = own & !mask;
        // Parts behind those that were there have new values, which no longer change.
        parts.push((inside, changed));
    }
    join(parts);
}

/// Joins parts with equal values, and drops those without entries.
fn join<T: Copy + PartialEq>(parts: &mut Vec<(u64, T)>) {
    let mut kept = 0;
    for i in 0..parts.len() {
        let (own, value) = parts[i];
        if own == 0 {
            continue;
        }
        match parts[..kept].iter_mut().find(|part| part.1 == value) {
            Some(part) => part.0 |= own,
            None => {
                parts[kept] = (own, value);
                kept += 1;
            }
        }
    }
    parts.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    #[test]
    fn values_equal_those_kept_entry_by_entry() {
        let mut rng = StdRng::seed_from_u64(1);
        let entries = 200;
        let (mut found, mut plain) = (ByEntry::new(entries, [0; 2]), vec![[0; 2]; entries as usize]);
        for round in 1..500u32 {
            let mut set = EntrySet::new(entries);
            set.insert(rng.random_range(0..8)).unwrap();
            set.spread(1, rng.random_range(1..4)).unwrap();
            set.spread(rng.random_range(1..8), rng.random_range(1..24)).unwrap();
            let by = rng.random_range(0..2);
            let put = |mut value: [u32; 2]| {
                value[by] = round;
                if round.is_multiple_of(3) { [round, 0] } else { value }
            };
            let sorted = |values: &mut Vec<[u32; 2]>| {
                values.sort_unstable();
                values.dedup();
            };
            let (mut have, mut want): (Vec<_>, Vec<_>) =
                (found.of(&set).collect(), set.iter().map(|entry| plain[entry as usize]).collect());
            sorted(&mut have);
            sorted(&mut want);
            assert_eq!(have, want);
            found.change(&set, put);
            set.iter().for_each(|entry| plain[entry as usize] = put(plain[entry as usize]));
        }
    }
}
