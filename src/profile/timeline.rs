//! When units worked and waited, and what for: every instruction's own cycles in its unit.

use std::collections::HashMap;

use tilewright_hw::device::Span;
use tilewright_hw::isa::{Insn, Unit, print_insn};
use tilewright_hw::regs::UnitState;
use tilewright_runtime::artifact::{Artifact, StepKind};
use tilewright_runtime::session::RunReport;

use crate::trace;

/// Instructions of a unit up to which each is told by itself; of more, neighbours of one layer that do the same are put
/// together.
pub const MOST_OF_A_UNIT: usize = 20_000;

/// Numbers of a piece in [`UnitRow::pieces`].
pub const FIELDS: usize = 11;

/// All commands of a run, one behind the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// Cycles of all commands.
    pub cycles: u64,
    /// First words of instructions, which pieces name by their places.
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
    /// Instructions.
    pub insns: usize,
    /// Instructions that one piece stands for, at most.
    pub merged: usize,
    /// Cycles by state, as the unit's counters have them; empty where nobody counts.
    pub states: Vec<u64>,
    /// [`FIELDS`] numbers for each piece: cycles from the last piece's start to its own, cycles before its start in which
    /// the unit waited for its tokens, the state of most of them, cycles of work, of waiting for space, for the bus and for
    /// data, cycles to its retirement, title, layer, instructions.
    pub pieces: Vec<u64>,
}

/// What is kept of an instruction.
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
    /// Of a run whose device kept spans.
    pub(super) fn of(artifact: &Artifact, programs: &[Vec<Insn>], report: &RunReport) -> Timeline {
        let mut timeline = Timeline { cycles: 0, titles: Vec::new(), layers: Vec::new(), units: Vec::new() };
        let mut titles: HashMap<String, usize> = HashMap::new();
        let mut rows: [Vec<Piece>; 4] = Default::default();
        let mut states = vec![[0u64; UnitState::ALL.len()]; 4];
        for (number, (step, taken)) in artifact.manifest.steps.iter().zip(&report.steps).enumerate() {
            let (StepKind::Accel(accel), Some(cycles)) = (&step.kind, taken.cycles) else { continue };
            let (program, first_layer) = (&programs[number], timeline.layers.len());
            let ends: Vec<usize> = accel.layers.iter().map(|layer| layer.end).collect();
            let retired = crate::clock::part_ends(program, &taken.spans, &ends, Some(cycles));
            let mut from = 0;
            for (layer, end) in accel.layers.iter().zip(retired.unwrap_or_default()) {
                timeline.layers.push((layer.name.clone(), timeline.cycles + from, timeline.cycles + end));
                from = end;
            }
            for unit in Unit::ALL {
                let insns: Vec<(usize, &Insn)> =
                    program.iter().enumerate().filter(|(_, insn)| insn.unit() == unit).collect();
                for span in taken.spans.iter().filter(|span| span.unit == unit) {
                    let Some((place, insn)) = insns.get(span.ordinal as usize) else { continue };
                    let words: Vec<String> = print_insn(insn).split_whitespace().take(2).map(str::to_string).collect();
                    let next = titles.len();
                    let title = *titles.entry(words.join(" ")).or_insert(next);
                    let layer = first_layer + accel.layers.iter().take_while(|layer| layer.end <= *place).count();
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

    /// Whether the next one may be put together with it.
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
                    // Waits between both count as the later one's: they lie before its start.
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

/// The trace of the run for Perfetto.
pub fn perfetto(profile: &super::Profile, config: &tilewright_hw::config::HwConfig) -> serde_json::Value {
    let reports = std::slice::from_ref(&profile.report);
    let parts = trace::parts(&profile.artifact, reports, &profile.programs);
    trace::trace(&config.name, config.host.clock_mhz, &parts)
}
