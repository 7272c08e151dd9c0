//! Finds the instructions that stalled their units longest, and what they waited for.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use tilewright_hw::device::{RunReport, Span};
use tilewright_hw::isa::{Insn, Unit, print_insn};
use tilewright_hw::regs::{TrapCause, TrapUnit, UnitState};

use crate::examine::parts::Part;

/// Cycles by [`UnitState`].
type States = [u64; UnitState::ALL.len()];

/// An instruction that waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stall {
    /// Its unit.
    pub unit: Unit,
    /// Its index among its unit's instructions, from 0.
    pub ordinal: u32,
    /// Its index in the stream, if the program is available.
    pub place: Option<usize>,
    /// Its text; empty if the program is not available.
    pub text: String,
    /// Its layer, or the name of its program if layers are not known.
    pub layer: String,
    /// Whether it started; after a deadlock some never did.
    pub started: bool,
    /// Cycles of all its runs, by state.
    pub states: States,
    /// The instructions that pushed the tokens it waited for: unit, ordinal and index in the stream.
    pub tokens_of: Vec<(Unit, u32, usize)>,
}

impl Stall {
    /// Cycles that its unit waited for it.
    pub fn cycles(&self) -> u64 {
        causes(&self.states).map(|(_, cycles)| cycles).sum()
    }

    /// What it waited for and how long, the longest wait first.
    fn waits(&self) -> String {
        let mut causes: Vec<(UnitState, u64)> = causes(&self.states).collect();
        causes.sort_by_key(|(_, cycles)| std::cmp::Reverse(*cycles));
        let texts: Vec<String> = causes
            .iter()
            .map(|(state, cycles)| {
                let giver = state.token_of().and_then(|unit| self.tokens_of.iter().find(|(of, ..)| *of == unit));
                match giver {
                    Some((unit, ordinal, _)) => format!("{cycles} token of {} {ordinal}", unit.name()),
                    None => format!("{cycles} {}", state.name()),
                }
            })
            .collect();
        texts.join(", ") + if self.started { "" } else { ", and never started" }
    }
}

/// The instructions that waited longest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stalls {
    /// Cycles that load, gemm, vector and store waited for an instruction, in total.
    pub cycles: u64,
    /// Cycles of all commands.
    pub of: u64,
    /// Number of instructions that waited.
    pub insns: usize,
    /// The instructions that waited longest, the longest first; for equal times the lower unit first, then the earlier
    /// one.
    pub worst: Vec<Stall>,
}

/// The stall states with a nonzero number of cycles.
pub fn causes(states: &States) -> impl Iterator<Item = (UnitState, u64)> + use<'_> {
    let stalls = UnitState::ALL.iter().copied().filter(|state| state.is_stall());
    stalls.map(|state| (state, states[state as usize])).filter(|(_, cycles)| *cycles > 0)
}

/// The stall states by name.
pub(crate) fn by_name(states: &States) -> Map<String, Value> {
    causes(states).map(|(state, cycles)| (state.name().to_string(), json!(cycles))).collect()
}

/// The waits of instructions that a deadlock kept from starting: for each waiting unit its next instruction, with the
/// cycles that its counters have beyond the spans. Empty if the run ended in another way or has no counters.
pub fn never_started(report: &RunReport) -> Vec<Span> {
    let deadlock = report.trap.is_some_and(|trap| trap.cause == TrapCause::Deadlock);
    let Some(counters) = report.counters.filter(|_| deadlock) else { return Vec::new() };
    let waits = |unit: Unit| {
        let mut states = counters.0[TrapUnit::from(unit) as usize];
        let mut ordinal = 0;
        for span in report.spans.iter().filter(|span| span.unit == unit) {
            ordinal += 1;
            // Hardware without counters of causes reports fewer cycles than the spans.
            states.iter_mut().zip(span.states).for_each(|(left, cycles)| *left = left.saturating_sub(cycles));
        }
        UnitState::ALL.iter().filter(|state| !state.is_stall()).for_each(|state| states[*state as usize] = 0);
        let start = report.cycles.unwrap_or(0);
        // An instruction that has not started waits for a token.
        let waits = UnitState::ALL.iter().any(|state| state.token_of().is_some() && states[*state as usize] > 0);
        waits.then_some(Span { unit, ordinal, start, end: None, states })
    };
    Unit::ALL.into_iter().filter_map(waits).collect()
}

/// The `most` instructions that waited longest, summed over all runs of the same program.
pub fn worst(parts: &[Part], most: usize) -> Stalls {
    let mut found: HashMap<(usize, Unit, u32), (&Part, bool, States)> = HashMap::new();
    for part in parts {
        let spans = part.spans.iter().map(|span| (span, true));
        for (span, started) in spans.chain(part.never_started.iter().map(|span| (span, false))) {
            let (.., states) = found.entry((part.number, span.unit, span.ordinal)).or_insert((
                part,
                started,
                [0; UnitState::ALL.len()],
            ));
            states.iter_mut().zip(span.states).for_each(|(sum, cycles)| *sum += cycles);
        }
    }
    let mut all: Vec<_> = found
        .into_iter()
        .map(|(key, (part, started, states))| {
            (causes(&states).map(|(_, cycles)| cycles).sum::<u64>(), key, part, started, states)
        })
        .filter(|(cycles, ..)| *cycles > 0)
        .collect();
    let cycles = all.iter().map(|(cycles, ..)| cycles).sum();
    all.sort_by_key(|(cycles, key, ..)| (std::cmp::Reverse(*cycles), *key));
    let insns = all.len();
    all.truncate(most);
    let mut programs: HashMap<usize, Index> = HashMap::new();
    let worst = all
        .into_iter()
        .map(|(_, (number, unit, ordinal), part, started, states)| {
            let index = programs.entry(number).or_insert_with(|| Index::new(part.program));
            let at = index.places[unit as usize].get(ordinal as usize).copied();
            let tokens_of = at.map_or(&[][..], |at| &index.givers[at]);
            Stall {
                unit,
                ordinal,
                place: at,
                text: at.map_or_else(String::new, |at| print_insn(&part.program[at])),
                layer: at.and_then(|at| part.layer_of(at)).unwrap_or(&part.name).to_string(),
                started,
                states,
                tokens_of: tokens_of
                    .iter()
                    .map(|&place| (part.program[place].unit(), index.ordinals[place], place))
                    .collect(),
            }
        })
        .collect();
    Stalls { cycles, of: parts.iter().map(|part| part.cycles).sum(), insns, worst }
}

/// Index of a program's instructions, and of those that push their tokens.
struct Index {
    /// Indices in the stream of each unit's instructions.
    places: [Vec<usize>; 4],
    /// Index of each instruction among its unit's instructions.
    ordinals: Vec<u32>,
    /// For each instruction, the indices of those that push its tokens: between two units, the n-th pop takes the n-th
    /// push.
    givers: Vec<Vec<usize>>,
}

impl Index {
    fn new(program: &[Insn]) -> Index {
        let mut index = Index { places: Default::default(), ordinals: Vec::new(), givers: Vec::new() };
        for (place, insn) in program.iter().enumerate() {
            let of = &mut index.places[insn.unit() as usize];
            index.ordinals.push(of.len() as u32);
            of.push(place);
        }
        let pushes = |from: Unit, to: Unit| {
            let places = index.places[from as usize].iter().copied();
            places.filter(move |&place| program[place].push.contains(to))
        };
        let mut pushes = Unit::ALL.map(|from| Unit::ALL.map(|to| pushes(from, to)));
        let mut givers = |insn: &Insn| -> Vec<usize> {
            insn.pop.iter().filter_map(|from| pushes[from as usize][insn.unit() as usize].next()).collect()
        };
        let givers = program.iter().map(&mut givers).collect();
        Index { givers, ..index }
    }
}

impl Stalls {
    /// The stalls as a text table.
    pub fn table(&self) -> String {
        let share = |cycles: u64, of: u64| 100.0 * cycles as f64 / of.max(1) as f64;
        let mut text = format!(
            "stalls        {} cycles of load, gemm, vector and store ({:.1} % of their time) in {} instructions\n",
            self.cycles,
            share(self.cycles, 4 * self.of),
            self.insns
        );
        if self.worst.is_empty() {
            return text;
        }
        let rows = self.worst.iter().map(|stall| {
            let place = stall.place.map_or_else(String::new, |place| format!(" at {place}"));
            [
                stall.cycles().to_string(),
                format!("{:.1} %", share(stall.cycles(), self.cycles)),
                format!("{} {}{place}", stall.unit.name(), stall.ordinal),
                stall.layer.clone(),
                stall.waits(),
                stall.text.clone(),
            ]
        });
        let head = ["cycles", "share", "unit", "layer", "waits for", "instruction"].map(String::from);
        let rows: Vec<[String; 6]> = std::iter::once(head).chain(rows).collect();
        let widths = [0, 1, 2, 3, 4].map(|i| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0));
        let [a, b, c, d, e] = widths;
        for [cycles, part, unit, layer, waits, insn] in &rows {
            let line = format!("  {cycles:>a$}  {part:>b$}  {unit:<c$}  {layer:<d$}  {waits:<e$}  {insn}");
            text += line.trim_end();
            text.push('\n');
        }
        text
    }

    /// The stalls as JSON.
    pub fn json(&self) -> Value {
        let worst: Vec<Value> = self
            .worst
            .iter()
            .map(|stall| {
                let tokens_of: Vec<Value> = stall
                    .tokens_of
                    .iter()
                    .map(|(unit, ordinal, place)| json!({ "unit": unit.name(), "ordinal": ordinal, "place": place }))
                    .collect();
                json!({
                    "unit": stall.unit.name(),
                    "ordinal": stall.ordinal,
                    "place": stall.place,
                    "instruction": stall.text,
                    "layer": stall.layer,
                    "cycles": stall.cycles(),
                    "share": stall.cycles() as f64 / self.cycles.max(1) as f64,
                    "started": stall.started,
                    "busy": stall.states[UnitState::Busy as usize],
                    "stalls": by_name(&stall.states),
                    "tokens_of": tokens_of,
                })
            })
            .collect();
        json!({ "cycles": self.cycles, "instructions": self.insns, "worst": worst })
    }
}

#[cfg(test)]
mod tests {
    use tilewright_runtime::artifact::InsnLayers;

    use super::*;
    use tilewright_hw::config::HwConfig;
    use tilewright_hw::device::Span;
    use tilewright_hw::isa::parse_program;

    #[test]
    fn the_longest_waits_come_first_with_who_ended_them() {
        let text = "load mem=out push=store\nload mem=out offset=64 push=store\nstore pop=load\nstore pop=load\n";
        let program = parse_program(text).unwrap();
        let program: Vec<Insn> = program.into_iter().collect();
        assert!(HwConfig::default().violations().is_empty());
        let span = |unit, ordinal, states: &[(UnitState, u64)]| {
            let mut of = [0; UnitState::ALL.len()];
            states.iter().for_each(|(state, cycles)| of[*state as usize] = *cycles);
            Span { unit, ordinal, start: 1, end: Some(9), states: of }
        };
        let spans = [
            span(Unit::Load, 0, &[(UnitState::Data, 4), (UnitState::Busy, 90)]),
            span(Unit::Store, 0, &[(UnitState::TokenLoad, 3), (UnitState::Space, 1)]),
            span(Unit::Store, 1, &[(UnitState::TokenLoad, 20), (UnitState::Data, 7)]),
        ];
        let part = Part {
            name: "a".into(),
            number: 0,
            program: &program,
            layers: &[],
            insn_layers: InsnLayers::default(),
            spans: &spans,
            never_started: &[],
            cycles: 50,
        };
        let again = Part { name: "a".into(), insn_layers: InsnLayers::default(), ..part };
        let found = worst(&[part, again], 2);
        assert_eq!((found.cycles, found.of, found.insns), (70, 100, 3));
        let worst = &found.worst[0];
        assert_eq!((worst.unit, worst.ordinal, worst.place, worst.cycles()), (Unit::Store, 1, Some(3), 54));
        assert_eq!(worst.waits(), "40 token of load 1, 14 data");
        // The same number of cycles, and earlier in the order of units.
        assert_eq!((found.worst[1].unit, found.worst[1].cycles()), (Unit::Load, 8));
        assert!(found.table().contains("77.1 %  store 1 at 3"), "{}", found.table());
        assert_eq!(found.json()["worst"][0]["tokens_of"][0]["place"], 1);
    }
}
