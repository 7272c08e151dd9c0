//! Static planning of memory: places buffers with known lifetimes so that dead ones make room for others.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A buffer and its lifetime: the points in time, both included, between which its bytes are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// Bytes.
    pub bytes: u64,
    /// Time of the first write.
    pub first: usize,
    /// Time of the last read.
    pub last: usize,
}

impl Buffer {
    /// Whether the lifetimes of both overlap.
    pub fn meets(&self, other: &Buffer) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Offsets of buffers in one memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placement {
    /// First byte of each buffer.
    pub offsets: Vec<u64>,
    /// Total bytes.
    pub bytes: u64,
}

/// The most bytes that are needed at one time; no placement needs less.
pub fn least(buffers: &[Buffer], align: u64) -> u64 {
    let at = |time: usize| {
        let live = buffers.iter().filter(|b| (b.first..=b.last).contains(&time));
        live.map(|b| b.bytes.next_multiple_of(align.max(1))).sum()
    };
    buffers.iter().map(|b| at(b.first)).max().unwrap_or(0)
}

/// An assignment of buffers to memories that they share.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shared {
    /// For each buffer, the index of its memory.
    pub which: Vec<usize>,
    /// Bytes of each memory.
    pub bytes: Vec<u64>,
}

/// Gives every buffer a whole memory, so that buffers needed at the same time have different ones.
///
/// Buffers are handled in order of time. A buffer takes the smallest free memory that is large enough, unless that is
/// more than twice as large; otherwise the largest free one, which grows, if it is at least half as large; otherwise a
/// new one. Time and memory grow with the buffers as sorting them does, so models of many thousand steps can be
/// planned, whereas [`place`] compares all buffers with each other.
pub fn share(buffers: &[Buffer]) -> Shared {
    let mut order: Vec<usize> = (0..buffers.len()).collect();
    order.sort_by_key(|&i| buffers[i].first);
    let mut shared = Shared { which: vec![0; buffers.len()], bytes: Vec::new() };
    // Free memories by their bytes, and used ones by the end of their use.
    let mut free: BTreeSet<(u64, usize)> = BTreeSet::new();
    let mut used: BTreeSet<(usize, usize)> = BTreeSet::new();
    for i in order {
        let Buffer { bytes, first, last } = buffers[i];
        while let Some(&(end, memory)) = used.first().filter(|(end, _)| *end < first) {
            used.remove(&(end, memory));
            free.insert((shared.bytes[memory], memory));
        }
        let fits = free.range((bytes, 0)..).next().filter(|(there, _)| *there <= bytes.saturating_mul(2));
        let grows = || free.range(..(bytes, 0)).next_back().filter(|(there, _)| *there >= bytes / 2);
        let memory = match fits.or_else(grows).copied() {
            Some(found) => {
                free.remove(&found);
                shared.bytes[found.1] = found.0.max(bytes);
                found.1
            }
            None => {
                shared.bytes.push(bytes);
                shared.bytes.len() - 1
            }
        };
        shared.which[i] = memory;
        used.insert((last.max(first), memory));
    }
    shared
}

/// Gives every buffer an offset that is a multiple of `align`, so that buffers needed at the same time do not overlap.
///
/// Buffers are placed one after the other, each in the smallest gap that holds it between the earlier ones with an
/// overlapping lifetime, or in the first such gap. Of several orders (by size, by size times lifetime, by lifetime, by
/// first use) the one that needs the least memory is kept.
pub fn place(buffers: &[Buffer], align: u64) -> Placement {
    let align = align.max(1);
    let most = |i: &usize| buffers[*i].bytes;
    let life = |i: &usize| (buffers[*i].last - buffers[*i].first.min(buffers[*i].last)) as u64 + 1;
    let order = |key: &dyn Fn(&usize) -> u64| {
        let mut order: Vec<usize> = (0..buffers.len()).collect();
        order.sort_by_key(|i| std::cmp::Reverse(key(i)));
        order
    };
    let orders = [
        order(&most),
        order(&|i| life(i).saturating_mul(most(i))),
        order(&life),
        order(&|i| u64::MAX - buffers[*i].first as u64),
    ];
    let placed = orders.iter().flat_map(|order| [true, false].map(|tight| in_order(buffers, order, tight, align)));
    placed.min_by_key(|p| p.bytes).unwrap_or_default()
}

/// Places buffers in the given order, each in the smallest gap that is large enough, or in the first.
fn in_order(buffers: &[Buffer], order: &[usize], tight: bool, align: u64) -> Placement {
    let mut offsets = vec![0; buffers.len()];
    let mut done: Vec<usize> = Vec::with_capacity(order.len());
    let mut end = 0;
    for &i in order {
        let size = buffers[i].bytes.next_multiple_of(align);
        let mut taken: Vec<(u64, u64)> = done
            .iter()
            .filter(|&&d| buffers[d].meets(&buffers[i]))
            .map(|&d| (offsets[d], offsets[d] + buffers[d].bytes.next_multiple_of(align)))
            .collect();
        taken.sort_unstable();
        let (mut at, mut best) = (0, None);
        for (start, stop) in taken {
            let gap = start.saturating_sub(at);
            if start > at && gap >= size && best.is_none_or(|(g, _)| tight && gap < g) {
                best = Some((gap, at));
            }
            at = at.max(stop);
        }
        offsets[i] = best.map_or(at, |(_, at)| at);
        end = end.max(offsets[i] + size);
        done.push(i);
    }
    Placement { offsets, bytes: end }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 33) % n
        }
    }

    /// Each buffer is read only by the next one, so two memories are enough for the small ones, and two for the large
    /// ones.
    #[test]
    fn memory_goes_from_one_buffer_to_the_next() {
        let chain: Vec<Buffer> =
            (0..20_000).map(|i| Buffer { bytes: 100 + 900 * (i as u64 / 10_000), first: i, last: i + 1 }).collect();
        assert_eq!(share(&chain).bytes, [100, 100, 1000, 1000]);
        // A memory that is half as large grows, and one that is more than twice as large is left for others.
        let two = |first, second| {
            let buffer = |bytes, first| Buffer { bytes, first, last: first };
            share(&[buffer(first, 0), buffer(second, 1)]).bytes
        };
        assert_eq!(
            [two(50, 100), two(49, 100), two(100, 50), two(101, 50)],
            [vec![100], vec![49, 100], vec![100], vec![101, 50]]
        );
    }

    #[test]
    fn buffers_that_are_needed_at_one_time_lie_apart() {
        let mut n = Numbers(7);
        for round in 0..300 {
            let count = n.below(40) as usize;
            let align = 1 << n.below(7);
            let buffers: Vec<Buffer> = (0..count)
                .map(|_| {
                    let first = n.below(20) as usize;
                    Buffer { bytes: n.below(5000), first, last: first + n.below(6) as usize }
                })
                .collect();
            let found = place(&buffers, align);
            let sum: u64 = buffers.iter().map(|b| b.bytes.next_multiple_of(align)).sum();
            assert!((least(&buffers, align)..=sum).contains(&found.bytes), "round {round}");
            let shared = share(&buffers);
            assert!(shared.bytes.iter().sum::<u64>() >= least(&buffers, 1), "round {round}");
            for (i, a) in buffers.iter().enumerate() {
                assert!(shared.bytes[shared.which[i]] >= a.bytes, "round {round}: {a:?}");
                assert!(found.offsets[i].is_multiple_of(align) && found.offsets[i] + a.bytes <= found.bytes);
                for (j, b) in buffers.iter().enumerate().skip(i + 1) {
                    let apart = found.offsets[i] + a.bytes <= found.offsets[j]
                        || found.offsets[j] + b.bytes <= found.offsets[i];
                    assert!(apart || !a.meets(b), "round {round}: {a:?} {b:?}");
                    assert!(shared.which[i] != shared.which[j] || !a.meets(b), "round {round}: {a:?} {b:?}");
                }
            }
        }
    }

    #[test]
    fn a_chain_takes_its_two_largest_neighbors() {
        let chain: Vec<Buffer> = [4096, 1024, 2048, 512]
            .iter()
            .enumerate()
            .map(|(i, &bytes)| Buffer { bytes, first: i, last: i + 1 })
            .collect();
        assert_eq!((place(&chain, 64).bytes, least(&chain, 64)), (5120, 5120));
        assert_eq!(place(&[], 64), Placement::default());
    }
}
