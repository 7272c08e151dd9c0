//! Which decisions a layer gets.

use super::record::{Outcome, Record};
use super::workload::Workload;
use crate::codegen::accel::space::Decisions;
use std::collections::BTreeMap;

/// The best known decisions of layers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Records {
    /// By the hashes of the layer and of its neighborhood.
    near: BTreeMap<(String, String), Best>,
    /// By the hash of the layer.
    alone: BTreeMap<String, Best>,
}

/// Decisions, and why they are the best.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Best {
    decisions: Decisions,
    /// Cycles or nanoseconds, and context of the trial; `None` for a choice.
    trial: Option<(u64, String)>,
}

impl Best {
    /// Whether a later record replaces this one: a choice replaces everything, and a trial another trial with more
    /// cycles or in another context.
    fn gives_way_to(&self, later: &Best) -> bool {
        match (&self.trial, &later.trial) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some((cycles, context)), Some((fewer, other))) => context != other || fewer < cycles,
        }
    }
}

impl Records {
    /// Adds records that come after those that are already here.
    pub fn add(&mut self, records: &[Record]) {
        for record in records {
            let trial = match &record.outcome {
                Outcome::Trial { cycles: None, .. } => continue,
                Outcome::Trial { context, cycles: Some(cycles) } => Some((*cycles, context.clone())),
                Outcome::Timed { ns: None } => continue,
                Outcome::Timed { ns: Some(ns) } => Some((*ns, String::new())),
                Outcome::Chosen { .. } | Outcome::Fastest { .. } => None,
            };
            let best = Best { decisions: record.decisions.clone(), trial };
            let near = (record.layer.clone(), record.near.clone());
            put(self.near.entry(near), &best);
            put(self.alone.entry(record.layer.clone()), &best);
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.alone.is_empty()
    }

    /// Number of different layers.
    pub fn len(&self) -> usize {
        self.alone.len()
    }

    /// Returns the best decisions for a layer next to these neighbors.
    pub fn find(&self, layer: &Workload, near: &Workload) -> Option<&Decisions> {
        self.near.get(&(layer.hash.clone(), near.hash.clone())).map(|best| &best.decisions)
    }

    /// Returns the best decisions for a layer next to any neighbors.
    pub fn anywhere(&self, layer: &Workload) -> Option<&Decisions> {
        self.alone.get(&layer.hash).map(|best| &best.decisions)
    }
}

fn put<K: Ord>(entry: std::collections::btree_map::Entry<'_, K, Best>, best: &Best) {
    entry
        .and_modify(|old| {
            if old.gives_way_to(best) {
                old.clone_from(best);
            }
        })
        .or_insert_with(|| best.clone());
}

/// How records were used for a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    /// Number of layers whose plans come from records.
    pub used: usize,
    /// Number of layers without a record.
    pub unknown: usize,
    /// Number of layers whose records do not fit, by reason.
    pub refused: BTreeMap<String, usize>,
}

impl Replay {
    /// Adds the layers of another part of the program.
    pub fn add(&mut self, other: Replay) {
        self.used += other.used;
        self.unknown += other.unknown;
        for (reason, n) in other.refused {
            *self.refused.entry(reason).or_default() += n;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::SCHEMA;
    use super::*;

    fn record(near: &str, rows: usize, outcome: Outcome) -> Record {
        let decisions = Decisions::new([("rows", rows.into())]);
        let layer = Workload::new("layer").hash;
        let near = Workload::new(near).hash;
        Record { schema: SCHEMA, config: String::new(), layer, near, text: String::new(), decisions, outcome }
    }

    fn trial(context: &str, cycles: impl Into<Option<u64>>) -> Outcome {
        Outcome::Trial { context: context.into(), cycles: cycles.into() }
    }

    /// Checks the rows that a layer gets next to the neighbors `a`.
    fn check(records: &[Record], rows: Option<usize>) {
        let mut book = Records::default();
        book.add(records);
        let layer = Workload::new("layer");
        let found = book.find(&layer, &Workload::new("a")).or_else(|| book.anywhere(&layer));
        assert_eq!(found, rows.map(|rows| Decisions::new([("rows", rows.into())])).as_ref());
    }

    #[test]
    fn the_best_record_is_found() {
        check(&[], None);
        check(&[record("a", 1, trial("c", None))], None);
        check(&[record("a", 1, trial("c", 9)), record("a", 2, trial("c", 8)), record("a", 3, trial("c", 8))], Some(2));
        // Cycles of other contexts cannot be compared; later ones are closer to the final plans of the neighbors.
        check(&[record("a", 1, trial("c", 5)), record("a", 2, trial("d", 8))], Some(2));
        let chosen = Outcome::Chosen { cycles: 7 };
        check(&[record("a", 1, chosen.clone()), record("a", 2, trial("c", 1))], Some(1));
        check(&[record("a", 1, chosen.clone()), record("a", 2, chosen.clone())], Some(2));
        // Records next to other neighbors are found if there is none next to these.
        check(&[record("b", 1, chosen.clone())], Some(1));
        check(&[record("a", 1, chosen.clone()), record("b", 2, chosen)], Some(1));
    }
}
