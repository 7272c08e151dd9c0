//! Poolings in the tiles of the product before them, weighed against poolings by themselves.
//!
//! The estimate by which a pooling is fused leaves out what its neighbours hide of it. Where someone knows cycles, all is
//! placed and built again with one pooling by itself, for each of them, and the pooling whose absence saves most is left out.
//! That is one step; it is repeated until no pooling saves anything, or until enough was weighed. A pooling whose absence
//! saved nothing once stays for good: what it saves beside another one that was left out later is not seen.

use super::fuse::Fusion;
use std::collections::HashSet;

/// Instructions of all programs in which a pooling is weighed by itself against its place in a product's tiles: they bound the
/// time to compile, and alike on every machine.
pub(super) const MOST_INSNS: usize = 400_000;

/// All programs of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Programs {
    /// Their cycles; none where they cannot be built or run.
    pub cycles: Option<u64>,
    /// Their instructions.
    pub insns: usize,
}

/// What was weighed.
#[derive(Debug)]
pub(super) struct Weighing {
    /// Poolings without which nothing was saved: they are not weighed again.
    stay: HashSet<Fusion>,
    /// Instructions that may still be weighed.
    left: usize,
}

impl Weighing {
    /// Nothing yet, and `most_insns` instructions at most but for the last programs.
    pub fn new(most_insns: usize) -> Weighing {
        Weighing { stay: HashSet::new(), left: most_insns }
    }

    /// Of the poolings that are fused the one without which all takes fewest cycles, and how many; none where all takes no
    /// fewer than `together` without each. `without` builds the programs in which one more pooling stands by itself.
    pub fn dearest(
        &mut self,
        fused: impl IntoIterator<Item = Fusion>,
        together: u64,
        without: &dyn Fn(Fusion) -> Programs,
    ) -> Option<(Fusion, u64)> {
        let mut best: Option<(Fusion, u64)> = None;
        for fusion in fused {
            if self.left == 0 || self.stay.contains(&fusion) {
                continue;
            }
            let programs = without(fusion);
            self.left = self.left.saturating_sub(programs.insns.max(1));
            match programs.cycles.filter(|cycles| *cycles < together) {
                None => _ = self.stay.insert(fusion),
                Some(cycles) if best.is_none_or(|(_, least)| cycles < least) => best = Some((fusion, cycles)),
                Some(_) => {}
            }
        }
        best
    }
}
