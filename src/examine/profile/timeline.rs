//! When each unit works and waits, and what for: the cycles of every instruction in its unit.

use std::collections::HashMap;

use tilewright_hw::device::Span;
use tilewright_hw::isa::{Insn, Unit, print_insn};
use tilewright_hw::regs::UnitState;
use tilewright_runtime::artifact::{Artifact, StepKind};
use tilewright_runtime::session::RunReport;

/// Largest number of instructions of a unit that are listed one by one. If there are more, neighbors in one layer with
/// the same title are merged.
pub const MOST_OF_A_UNIT: usize = 20_000;

/// Numbers per piece in [`UnitRow::pieces`].
pub const FIELDS: usize = 11;

/// All commands of a run, one after another.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// Cycles of all commands.
    pub cycles: u64,
    /// First words of instructions; pieces refer to them by index.
    pub titles: Vec<String>,
    /// Names of layers with their first and last cycle.
    pub layers: Vec<(String, u64, u64)>,
    /// The units: load, gemm, vector, store.
    pub units: Vec<UnitRow>,
}

/// A unit's instructions.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitRow {
    /// Its name.
    pub name: &'static str,
    /// Number of instructions.
    pub insns: usize,
    /// Largest number of instructions in one piece.
    pub merged: usize,
    /// Cycles by state, from the unit's counters; empty if there are none.
    pub states: Vec<u64>,
    /// `FIELDS` numbers per piece: cycles since the start of the previous piece; cycles before its start in which the
    /// unit waited for tokens; the state of most of these; cycles of work, of waiting for space, for the bus and for
    /// data; cycles until it retires; title; layer; number of instructions.
    pub pieces: Vec<u64>,
}

/// One or more merged instructions.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    start: u64,
    tokens: u64,
    token: u64,
    own: [u64; 4],
    end: u64,
    title: usize,
    layer: usize,
    insns: u64,
}

impl Timeline {
    /// The timeline of a run whose device reports spans.
    pub(super) fn of(artifact: &Artifact, programs: &[Vec<Insn>], report: &RunReport) -> Timeline {
        let mut timeline = Timeline { cycles: 0, titles: Vec::new(), layers: Vec::new(), units: Vec::new() };
        let mut titles: HashMap<String, usize> = HashMap::new();
        let mut rows: [Vec<Piece>; 4] = Default::default();
        let mut states = vec![[0u64; UnitState::ALL.len()]; 4];
        for (number, (step, taken)) in artifact.manifest.steps.iter().zip(&report.steps).enumerate() {
            let (StepKind::Accel(accel), Some(cycles)) = (&step.kind, taken.cycles) else { continue };
            let (program, first_layer) = (&programs[number], timeline.layers.len());
            let layers = accel.insn_layers();
            let parts = crate::examine::layers::parts(program, &taken.spans, &layers, Some(cycles));
            let mut from = 0;
            for (layer, part) in accel.layers.iter().zip(parts.unwrap_or_default()) {
                timeline.layers.push((layer.name.clone(), timeline.cycles + from, timeline.cycles + part.stop));
                from = part.stop;
            }
            for unit in Unit::ALL {
                let insns: Vec<(usize, &Insn)> =
                    program.iter().enumerate().filter(|(_, insn)| insn.unit() == unit).collect();
                for span in taken.spans.iter().filter(|span| span.unit == unit) {
                    let Some((place, insn)) = insns.get(span.ordinal as usize) else { continue };
                    let words: Vec<String> = print_insn(insn).split_whitespace().take(2).map(str::to_string).collect();
                    let next = titles.len();
                    let title = *titles.entry(words.join(" ")).or_insert(next);
                    let layer = first_layer + layers.of(*place).unwrap_or(layers.layers());
                    rows[unit as usize].push(Piece::of(span, timeline.cycles, cycles, title, layer));
                    states[unit as usize].iter_mut().zip(span.states).for_each(|(sum, n)| *sum += n);
                }
            }
            timeline.cycles += cycles;
        }
        let mut named: Vec<(String, usize)> = titles.into_iter().collect();
        named.sort_by_key(|(_, at)| *at);
        timeline.titles = named.into_iter().map(|(title, _)| title).collect();
        for (unit, row) in Unit::ALL.into_iter().zip(rows) {
            let mut states = states[unit as usize].to_vec();
            let known: u64 = states.iter().sum();
            states[UnitState::Empty as usize] = timeline.cycles.saturating_sub(known);
            timeline.units.push(UnitRow::of(unit, row, states));
        }
        timeline
    }
}

impl Piece {
    fn of(span: &Span, begin: u64, cycles: u64, title: usize, layer: usize) -> Piece {
        let of = |state: UnitState| span.states[state as usize];
        let waits = UnitState::ALL.iter().filter(|state| state.token_of().is_some());
        let token = waits.clone().max_by_key(|state| of(**state)).copied().unwrap_or(UnitState::Empty);
        Piece {
            start: begin + span.start,
            tokens: waits.map(|state| of(*state)).sum(),
            token: token as u64,
            own: [UnitState::Busy, UnitState::Space, UnitState::Request, UnitState::Data].map(of),
            end: begin + span.end.unwrap_or(cycles),
            title,
            layer,
            insns: 1,
        }
    }

    /// Whether the next piece can be merged with this one.
    fn takes(&self, next: &Piece, most: u64) -> bool {
        self.insns < most && (self.title, self.layer) == (next.title, next.layer)
    }
}

impl UnitRow {
    fn of(unit: Unit, pieces: Vec<Piece>, states: Vec<u64>) -> UnitRow {
        let insns = pieces.len();
        let most = insns.div_ceil(MOST_OF_A_UNIT).max(1) as u64;
        let mut kept: Vec<Piece> = Vec::with_capacity(insns);
        for piece in pieces {
            match kept.last_mut() {
                Some(last) if most > 1 && last.takes(&piece, most) => {
                    // Waits between the two count for the later one, since they come before its start.
                    last.own.iter_mut().zip(piece.own).for_each(|(sum, n)| *sum += n);
                    last.own[1] += piece.tokens;
                    last.end = last.end.max(piece.end);
                    last.insns += 1;
                }
                _ => kept.push(piece),
            }
        }
        let merged = kept.iter().map(|piece| piece.insns).max().unwrap_or(1) as usize;
        let mut numbers = Vec::with_capacity(kept.len() * FIELDS);
        let mut before = 0;
        for piece in kept {
            let [busy, space, bus, data] = piece.own;
            let start = piece.start.saturating_sub(before);
            before = piece.start;
            let length = piece.end.saturating_sub(piece.start);
            let (title, layer) = (piece.title as u64, piece.layer as u64);
            numbers.extend([
                start,
                piece.tokens,
                piece.token,
                busy,
                space,
                bus,
                data,
                length,
                title,
                layer,
                piece.insns,
            ]);
        }
        UnitRow { name: unit.name(), insns, merged, states, pieces: numbers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instructions of 10 cycles with 2 cycles of waiting before each. Titles alternate after every `turn`
    /// instructions; there are `layers` layers.
    fn pieces(count: usize, turn: usize, layers: usize) -> Vec<Piece> {
        let piece = |at: usize| Piece {
            start: 2 + 12 * at as u64,
            tokens: 2,
            token: UnitState::Space as u64,
            own: [7, 1, 1, 1],
            end: 12 + 12 * at as u64,
            title: at / turn % 2,
            layer: at * layers / count,
            insns: 1,
        };
        (0..count).map(piece).collect()
    }

    /// Makes a row of pieces and checks that its pieces cover all instructions and do not overlap.
    fn row(pieces: Vec<Piece>) -> (UnitRow, Vec<Vec<u64>>) {
        let (count, last) = (pieces.len(), pieces.last().map_or(0, |piece| piece.end));
        let row = UnitRow::of(Unit::Load, pieces, Vec::new());
        let found: Vec<Vec<u64>> = row.pieces.chunks(FIELDS).map(<[u64]>::to_vec).collect();
        let (mut start, mut before) = (0, 0);
        for piece in &found {
            start += piece[0];
            assert!(start - piece[1] >= before, "a piece begins before the previous one ends");
            before = start + piece[3..7].iter().sum::<u64>();
        }
        assert_eq!(before, last);
        assert_eq!(found.iter().map(|piece| piece[10]).sum::<u64>() as usize, count);
        let cycles: u64 = found.iter().map(|piece| piece[1] + piece[3..7].iter().sum::<u64>()).sum();
        assert_eq!(cycles, 12 * count as u64);
        (row, found)
    }

    #[test]
    fn up_to_the_limit_every_instruction_stands_by_itself() {
        let (row, found) = row(pieces(MOST_OF_A_UNIT, 100, 3));
        assert_eq!((found.len(), row.merged), (MOST_OF_A_UNIT, 1));
    }

    #[test]
    fn above_it_neighbors_that_do_the_same_are_put_together() {
        let (row, found) = row(pieces(3 * MOST_OF_A_UNIT - 1, 50, 3));
        assert_eq!(row.merged, 3);
        assert!(found.len() <= MOST_OF_A_UNIT + MOST_OF_A_UNIT / 10, "{}", found.len());
        // Of the waits for tokens in a piece of three, two are inside and count as waits for space, and one is before
        // it.
        let whole = found.iter().find(|piece| piece[10] == 3).unwrap();
        assert_eq!((&whole[3..7], whole[1]), (&[21, 7, 3, 3][..], 2));
        // Titles and layers are never mixed.
        let titles: Vec<u64> = found.iter().map(|piece| piece[8]).collect();
        assert!(titles.contains(&0) && titles.contains(&1));
        assert_eq!(found.last().unwrap()[9], 2);
    }
}
