//! Finds program errors that the hardware does not detect: races, collisions avoided only by accident of timing, and
//! reads of data that nothing wrote.
//!
//! Two instructions of different units are ordered if tokens lead from the retirement of one to the start of the other.
//! Each instruction carries a clock: for each unit, how many of its instructions tokens prove retired at the start. Two
//! instructions that clocks do not order may run in any order, whatever the timing of this run was.

use super::engine::Order;
use super::slots::Time;
use crate::access::{Access, Conflict, Context, Entries, access};
use std::collections::VecDeque;
use std::ops::Range;
use tilewright_hw::config::Mem;
use tilewright_hw::isa::{INSN_BYTES, Op, PARAM_ROWS, Unit};

/// For each unit, the number of instructions that tokens prove retired.
pub(super) type Clock = [u32; 4];

/// A program error, reported at one instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// The instruction's place in the stream.
    pub place: u32,
    /// The kind of error.
    pub kind: DiagnosisKind,
    /// What happened, the other instruction if there is one, and what to change.
    pub text: String,
}

/// Kinds of program errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DiagnosisKind {
    /// Two units access an entry or a byte, at least one of them writes, and no tokens order them.
    Race,
    /// Two units use the same port of a bank and no tokens order them, even if they did not collide in this run.
    Port,
    /// An entry of a scratchpad is read before anything wrote it.
    UninitializedEntry,
    /// Bytes of device memory are read that neither the host nor a store wrote.
    UninitializedMemory,
    /// Units wait for one another.
    Deadlock,
    /// A token counter overflows.
    Overflow,
}

/// Bytes of device memory that have been written.
#[derive(Debug, Default)]
pub(super) struct Written(Vec<u64>);

impl Written {
    fn bit(at: u64) -> (usize, u64) {
        ((at / 64) as usize, 1 << (at % 64))
    }

    pub(super) fn add(&mut self, range: Range<u64>) {
        let words = range.end.div_ceil(64) as usize;
        if self.0.len() < words {
            self.0.resize(words, 0);
        }
        let mut at = range.start;
        while at < range.end {
            if at.is_multiple_of(64) && at + 64 <= range.end {
                self.0[(at / 64) as usize] = u64::MAX;
                at += 64;
            } else {
                let (word, bit) = Written::bit(at);
                self.0[word] |= bit;
                at += 1;
            }
        }
    }

    /// Returns the first byte of a range that nothing wrote.
    fn first_missing(&self, range: &Range<u64>) -> Option<u64> {
        let mut at = range.start;
        while at < range.end {
            let (word, bit) = Written::bit(at);
            match self.0.get(word) {
                Some(&u64::MAX) => at = (at / 64 + 1) * 64,
                Some(bits) if bits & bit != 0 => at += 1,
                _ => return Some(at),
            }
        }
        None
    }
}

/// State that outlives a command: which entries and bytes have been written.
#[derive(Debug, Default)]
pub(super) struct Memories {
    entries: [Entries; 7],
    pub(super) bytes: Written,
}

/// An earlier instruction that later ones might not be ordered after.
#[derive(Debug)]
struct Past {
    ordinal: u32,
    place: u32,
    start: Time,
    access: Access,
}

/// A program error, with the cycle in which the last instruction involved starts.
pub(super) type TimedDiagnosis = (Time, Diagnosis);

/// The checker for one command.
#[derive(Debug)]
pub(super) struct Checker {
    /// The stream's bytes in device memory.
    stream: Range<u64>,
    /// Whether an unwritten instruction has been reported.
    unwritten: bool,
    past: [VecDeque<Past>; 4],
    clocks: [Clock; 4],
    found: Vec<TimedDiagnosis>,
}

impl Checker {
    pub(super) fn new(stream: Range<u64>) -> Checker {
        Checker { stream, unwritten: false, past: Default::default(), clocks: Default::default(), found: Vec::new() }
    }

    /// Returns the bytes of instruction `place` and of all that follow it in the stream.
    fn stream_from(&self, place: u32) -> Range<u64> {
        (self.stream.start + u64::from(place) * INSN_BYTES as u64).min(self.stream.end)..self.stream.end
    }

    /// Checks an instruction that fetch dispatches in cycle `at`.
    pub(super) fn fetched(&mut self, memories: &Memories, place: u32, at: Time) {
        let from = self.stream_from(place);
        let insn = from.start..from.end.min(from.start + INSN_BYTES as u64);
        if !self.unwritten
            && let Some(byte) = memories.bytes.first_missing(&insn)
        {
            self.unwritten = true;
            let text = format!(
                "is fetched from byte {byte:#x} of device memory, which neither the host nor a store has written; write \
                 the whole stream first, or submit fewer instructions"
            );
            self.found.push((at, Diagnosis { place, kind: DiagnosisKind::UninitializedMemory, text }));
        }
    }

    /// Checks an instruction that starts, with its place, start cycle and clock in `order`.
    pub(super) fn starts(&mut self, c: &Context, memories: &mut Memories, order: Order, op: &Op) {
        let Order { place, ordinal, clock, start, .. } = order;
        let now = access(c, op);
        let unit = now.unit;
        for other in Unit::ALL.into_iter().filter(|other| *other != unit) {
            let past = &self.past[other as usize];
            let unordered = past.partition_point(|past| past.ordinal < clock[other as usize]);
            for past in past.range(unordered..) {
                if let Some(conflict) = now.conflict(&past.access) {
                    let (kind, what) = describe(conflict);
                    // Program order says which of the two should wait for the other.
                    let mut pair = [(past.place, other), (place, unit)];
                    pair.sort_unstable();
                    let [(early, first), (place, second)] = pair;
                    let text = format!(
                        "{second} and instruction {early} ({first}) both access {what}, and no tokens order them; push a \
                         token from {first} to {second}",
                        first = first.name(),
                        second = second.name(),
                    );
                    self.found.push((start.max(past.start), Diagnosis { place, kind, text }));
                }
            }
        }
        // Fetch waits for no unit, so it may already have read the instructions that follow this one.
        if let Some(byte) = now.dram_writes.first_common(&self.stream_from(place + 1).into()) {
            let text = format!(
                "{unit} writes byte {byte:#x} of device memory, which is part of the stream and can be fetched at any time; keep \
                 the stream outside the memory that the program stores to",
                unit = unit.name()
            );
            self.found.push((start, Diagnosis { place, kind: DiagnosisKind::Race, text }));
        }
        self.reads(&now, memories, place, start);
        for (known, writes) in memories.entries.iter_mut().zip(&now.writes) {
            known.add(writes);
        }
        now.dram_writes.iter().for_each(|range| memories.bytes.add(range));

        self.clocks[unit as usize] = clock;
        self.past[unit as usize].push_back(Past { ordinal, place, start, access: now });
        for (u, past) in self.past.iter_mut().enumerate() {
            // Every later instruction of another unit is ordered after these.
            let others = self.clocks.iter().enumerate().filter(|(other, _)| *other != u);
            let ordered = others.map(|(_, clock)| clock[u]).min().unwrap_or(0);
            while past.front().is_some_and(|past| past.ordinal < ordered) {
                past.pop_front();
            }
        }
    }

    fn reads(&mut self, now: &Access, memories: &Memories, place: u32, start: Time) {
        for mem in Mem::ALL {
            let Some(entry) = now.needs[mem as usize].first_outside(&memories.entries[mem as usize]) else { continue };
            let text = match mem {
                Mem::Param => format!("reads row {} of entry {} of param", entry % PARAM_ROWS, entry / PARAM_ROWS),
                _ => format!("reads entry {entry} of {}", mem.name()),
            };
            let text = format!("{text}, which nothing has written; load it first");
            self.found.push((start, Diagnosis { place, kind: DiagnosisKind::UninitializedEntry, text }));
        }
        if let Some(byte) = now.dram_reads.iter().find_map(|range| memories.bytes.first_missing(&range)) {
            let text = format!(
                "reads byte {byte:#x} of device memory, which neither the host nor a store has written; write it first"
            );
            self.found.push((start, Diagnosis { place, kind: DiagnosisKind::UninitializedMemory, text }));
        }
    }

    /// Returns the errors found.
    pub(super) fn into_found(self) -> Vec<TimedDiagnosis> {
        self.found
    }
}

fn describe(conflict: Conflict) -> (DiagnosisKind, String) {
    match conflict {
        Conflict::Entry(Mem::Param, entry) => (DiagnosisKind::Race, format!("entry {} of param", entry / PARAM_ROWS)),
        Conflict::Entry(mem, entry) => (DiagnosisKind::Race, format!("entry {entry} of {}", mem.name())),
        Conflict::Port { mem, bank, write } => {
            let kind = if write { "write" } else { "read" };
            (DiagnosisKind::Port, format!("the {kind} port of bank {bank} of {}", mem.name()))
        }
        Conflict::Memory(byte) => (DiagnosisKind::Race, format!("byte {byte:#x} of device memory")),
    }
}
