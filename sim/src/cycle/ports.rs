//! Ports of scratchpads' banks: who uses which when, and where two units meet.
//!
//! An instruction's accesses are kept as spans of cycles with the banks that they touch at most. Only where spans of two
//! units share cycles and a bank are they walked cycle by cycle.

use super::slots::Time;
use std::collections::VecDeque;
use std::rc::Rc;
use tilewright_hw::HwConfig;
use tilewright_hw::config::Mem;
use tilewright_hw::isa::Unit;

/// The micro-ops of an instruction, and the bounds of their indices.
#[derive(Debug)]
pub(super) struct MicroOps {
    list: Vec<[u32; 3]>,
    least: [u32; 3],
    most: [u32; 3],
}

impl MicroOps {
    pub(super) fn new(list: &[[u32; 3]]) -> MicroOps {
        let fold = |start, f: fn(u32, u32) -> u32| {
            list.iter().fold([start; 3], |all, uop| [0, 1, 2].map(|i| f(all[i], uop[i])))
        };
        MicroOps { list: list.to_vec(), least: fold(u32::MAX, u32::min), most: fold(0, u32::max) }
    }
}

/// The indices of one operand: micro-ops under their loops.
#[derive(Debug, Clone)]
pub(super) struct Indices {
    pub(super) micro_ops: Rc<MicroOps>,
    pub(super) operand: usize,
    pub(super) counts: [u32; 3],
    pub(super) base: u32,
    pub(super) steps: [u32; 3],
}

impl Indices {
    /// The index of the row or micro-op with this number.
    fn at(&self, number: u64) -> u64 {
        let uops = self.micro_ops.list.len() as u64;
        let counts = self.counts.map(u64::from);
        let (uop, pass) = (number % uops, number / uops);
        let loops = [pass / counts[2] / counts[1], pass / counts[2] % counts[1], pass % counts[2]];
        let steps: u64 = loops.iter().zip(self.steps).map(|(n, step)| n * u64::from(step)).sum();
        u64::from(self.micro_ops.list[uop as usize][self.operand]) + u64::from(self.base) + steps
    }

    /// The least and the greatest index.
    fn bounds(&self) -> (u64, u64) {
        let loops: u64 = self.counts.iter().zip(self.steps).map(|(n, step)| u64::from(n - 1) * u64::from(step)).sum();
        let base = u64::from(self.base);
        let of = |bound: [u32; 3]| u64::from(bound[self.operand]) + base;
        (of(self.micro_ops.least), of(self.micro_ops.most) + loops)
    }
}

/// Bytes that are visited one piece after the other, one a cycle: pieces end at multiples of `piece`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes {
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) piece: u64,
}

/// What is accessed in which cycle of a span.
#[derive(Debug, Clone)]
pub(super) enum Walk {
    /// Row `n` in the cycles from the `n * every`th on, `busy` of every `of` cycles.
    Rows { indices: Indices, every: Time, busy: Time, of: Time },
    /// Pieces of bytes, one a cycle.
    Bytes(Bytes),
}

/// Cycles in which a unit uses one kind of port of a memory.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) unit: Unit,
    pub(super) ordinal: u32,
    pub(super) from: Time,
    pub(super) to: Time,
    pub(super) walk: Walk,
}

/// Two units in one port: the cycle, the unit of lower number and its instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Collision {
    pub(super) at: Time,
    pub(super) unit: Unit,
    pub(super) ordinal: u32,
}

/// One kind of port of one memory.
#[derive(Debug)]
struct Port {
    /// Logarithms of entry bytes and of a bank's entries.
    entry_bytes: u64,
    bank_entries: u64,
    spans: VecDeque<(Span, u64)>,
}

/// Ports that more than one unit uses.
#[derive(Debug)]
pub(super) struct Ports {
    ports: [Port; 6],
}

/// The number of a port, where units share it.
fn number(mem: Mem, write: bool) -> Option<usize> {
    let mem = match mem {
        Mem::Inp => 0,
        Mem::Acc => 1,
        Mem::Out => 2,
        _ => return None,
    };
    Some(mem * 2 + usize::from(write))
}

impl Port {
    fn bank(&self, entry: u64) -> u64 {
        entry / self.bank_entries
    }

    fn banks(&self, span: &Span) -> u64 {
        let (first, last) = match &span.walk {
            Walk::Rows { indices, .. } => {
                let (first, last) = indices.bounds();
                (self.bank(first), self.bank(last))
            }
            Walk::Bytes(b) => (self.bank(b.first / self.entry_bytes), self.bank((b.end - 1) / self.entry_bytes)),
        };
        (first..=last.min(63)).fold(0, |mask, bank| mask | 1 << bank)
    }

    /// The bank that a span uses in a cycle of it.
    fn bank_at(&self, span: &Span, at: Time) -> Option<u64> {
        let cycle = at - span.from;
        match &span.walk {
            Walk::Rows { indices, every, busy, of } => {
                (cycle % every % of < *busy).then(|| self.bank(indices.at(cycle / every)))
            }
            Walk::Bytes(b) => {
                let byte = if cycle == 0 { b.first } else { (b.first / b.piece + cycle) * b.piece };
                Some(self.bank(byte / self.entry_bytes))
            }
        }
    }

    fn add(&mut self, span: Span) -> Option<Collision> {
        let banks = self.banks(&span);
        let mut found: Option<Collision> = None;
        for (other, others) in &self.spans {
            if other.unit == span.unit || others & banks == 0 || other.to <= span.from || span.to <= other.from {
                continue;
            }
            let (from, to) = (span.from.max(other.from), span.to.min(other.to));
            let meet = (from..to).find(|&at| {
                let bank = self.bank_at(&span, at);
                bank.is_some() && bank == self.bank_at(other, at)
            });
            let Some(at) = meet else { continue };
            let (unit, ordinal) =
                if span.unit < other.unit { (span.unit, span.ordinal) } else { (other.unit, other.ordinal) };
            if found.is_none_or(|f| (at, unit) < (f.at, f.unit)) {
                found = Some(Collision { at, unit, ordinal });
            }
        }
        self.spans.push_back((span, banks));
        found
    }
}

impl Ports {
    pub(super) fn new(config: &HwConfig) -> Ports {
        let port = |mem| Port {
            entry_bytes: config.entry_bytes(mem).into(),
            bank_entries: (config.entries(mem) / config.banks(mem)).into(),
            spans: VecDeque::new(),
        };
        Ports { ports: [Mem::Inp, Mem::Inp, Mem::Acc, Mem::Acc, Mem::Out, Mem::Out].map(port) }
    }

    /// Whether units share the ports of a memory, so that spans of it count.
    pub(super) fn shares(mem: Mem) -> bool {
        number(mem, false).is_some()
    }

    /// A unit reads, or writes, a memory. The first cycle in which another does so in the same bank.
    pub(super) fn add(&mut self, mem: Mem, write: bool, span: Span) -> Option<Collision> {
        if span.from >= span.to {
            return None;
        }
        self.ports[number(mem, write)?].add(span)
    }

    /// Forgets what ended before `now`: nothing that comes is earlier.
    pub(super) fn forget(&mut self, now: Time) {
        for port in &mut self.ports {
            port.spans.retain(|(span, _)| span.to > now);
        }
    }

    /// Spans that are kept.
    pub(super) fn len(&self) -> usize {
        self.ports.iter().map(|port| port.spans.len()).sum()
    }
}
