//! Ports of scratchpad banks: which unit used which port when, and where two units collide.
//!
//! An instruction's accesses are stored as spans of cycles with the banks that they may touch. Only if the spans of two
//! units share cycles and a bank are they compared cycle by cycle.

use super::slots::Time;
use crate::functional::loops::Affine;
use std::collections::VecDeque;
use std::rc::Rc;
use tilewright_hw::HwConfig;
use tilewright_hw::config::Mem;
use tilewright_hw::isa::Unit;

/// An instruction's micro-ops, and the bounds of their indices.
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

/// The indices of one operand: its micro-ops and their loops.
#[derive(Debug, Clone)]
pub(super) struct Indices {
    pub(super) micro_ops: Rc<MicroOps>,
    pub(super) loops: Affine,
    /// Which of the three indices.
    pub(super) operand: usize,
}

impl Indices {
    fn step(&self, level: usize) -> u64 {
        self.loops.steps[level][self.operand].into()
    }

    /// Returns the index of the row or micro-op with this number.
    fn at(&self, number: u64) -> u64 {
        let uops = self.micro_ops.list.len() as u64;
        let counts = self.loops.counts.map(u64::from);
        let (uop, pass) = (number % uops, number / uops);
        let passes = [pass / counts[2] / counts[1], pass / counts[2] % counts[1], pass % counts[2]];
        let steps: u64 = (0..3).map(|level| passes[level] * self.step(level)).sum();
        u64::from(self.micro_ops.list[uop as usize][self.operand]) + u64::from(self.loops.base[self.operand]) + steps
    }

    /// Returns the smallest and the largest index.
    fn bounds(&self) -> (u64, u64) {
        let loops: u64 = (0..3).map(|level| u64::from(self.loops.counts[level] - 1) * self.step(level)).sum();
        let of = |bound: [u32; 3]| u64::from(bound[self.operand]) + u64::from(self.loops.base[self.operand]);
        (of(self.micro_ops.least), of(self.micro_ops.most) + loops)
    }
}

/// Bytes accessed one piece per cycle. Pieces end at multiples of `piece`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes {
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) piece: u64,
}

/// The cycles in which a row is accessed: every `apart`-th cycle, and of these the first `count` out of every `of`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Accesses {
    pub(super) count: Time,
    pub(super) apart: Time,
    pub(super) of: Time,
}

impl Accesses {
    /// Accesses in every cycle.
    pub(super) const EACH: Accesses = Accesses { count: 1, apart: 1, of: 1 };

    fn at(self, cycle: Time) -> bool {
        cycle.is_multiple_of(self.apart) && cycle / self.apart % self.of < self.count
    }
}

/// What is accessed in each cycle of a use.
#[derive(Debug, Clone)]
pub(super) enum AccessPattern {
    /// Row `n`, in the cycles from `n * every` on.
    Rows { indices: Indices, every: Time, accesses: Accesses },
    /// Pieces of bytes, one per cycle.
    Bytes(Bytes),
}

/// Cycles in which a unit uses one kind of port of a memory.
#[derive(Debug, Clone)]
pub(super) struct Use {
    pub(super) unit: Unit,
    pub(super) ordinal: u32,
    pub(super) from: Time,
    pub(super) to: Time,
    pub(super) pattern: AccessPattern,
}

/// Two units in one port: the cycle, and the unit of lower number with its instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Collision {
    pub(super) at: Time,
    pub(super) unit: Unit,
    pub(super) ordinal: u32,
}

/// The uses of a port by one unit.
#[derive(Debug, Default)]
struct Lane {
    /// Each use with the banks that it may touch.
    uses: VecDeque<(Use, u64)>,
    /// How many uses touch each bank, and a mask of the banks that any use touches.
    touched: Vec<u32>,
    banks: u64,
}

impl Lane {
    fn push(&mut self, used: Use, banks: u64) {
        if let Some((last, known)) = self.uses.back_mut()
            && *known == banks
            && last.continues(&used)
        {
            return;
        }
        self.count(banks, 1);
        self.uses.push_back((used, banks));
    }

    fn count(&mut self, banks: u64, change: i32) {
        let mut left = banks;
        while left != 0 {
            let bank = left.trailing_zeros() as usize;
            left &= left - 1;
            if self.touched.len() <= bank {
                self.touched.resize(bank + 1, 0);
            }
            self.touched[bank] = self.touched[bank].wrapping_add_signed(change);
            let any = u64::from(self.touched[bank] > 0) << bank;
            self.banks = self.banks & !(1 << bank) | any;
        }
    }

    fn forget(&mut self, now: Time) {
        while let Some((used, banks)) = self.uses.front()
            && used.to <= now
        {
            let banks = *banks;
            self.uses.pop_front();
            self.count(banks, -1);
        }
    }
}

impl Use {
    /// Merges the next use into this one if it continues the same bytes in the next cycle. Returns whether it did.
    fn continues(&mut self, next: &Use) -> bool {
        let (AccessPattern::Bytes(a), AccessPattern::Bytes(b)) = (&mut self.pattern, &next.pattern) else {
            return false;
        };
        let goes_on = self.to == next.from
            && self.ordinal == next.ordinal
            && a.end == b.first
            && a.piece == b.piece
            && a.end.is_multiple_of(a.piece);
        if goes_on {
            a.end = b.end;
            self.to = next.to;
        }
        goes_on
    }
}

/// One kind of port (read or write) of one memory.
#[derive(Debug)]
struct Port {
    entry_bytes: u64,
    bank_entries: u64,
    /// The uses of each unit.
    lanes: [Lane; 4],
}

/// The ports that more than one unit can use.
#[derive(Debug)]
pub(super) struct Ports {
    ports: [Port; 6],
    /// The last cycle that counts.
    limit: Time,
}

/// Returns the number of a port, if units share it.
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

    fn banks(&self, used: &Use) -> u64 {
        let (first, last) = match &used.pattern {
            AccessPattern::Rows { indices, .. } => {
                let (first, last) = indices.bounds();
                (self.bank(first), self.bank(last))
            }
            AccessPattern::Bytes(b) => {
                (self.bank(b.first / self.entry_bytes), self.bank((b.end - 1) / self.entry_bytes))
            }
        };
        (first..=last.min(63)).fold(0, |mask, bank| mask | 1 << bank)
    }

    /// Returns the bank that a use accesses in a cycle, if any.
    fn bank_at(&self, used: &Use, at: Time) -> Option<u64> {
        let cycle = at - used.from;
        match &used.pattern {
            AccessPattern::Rows { indices, every, accesses } => {
                accesses.at(cycle % every).then(|| self.bank(indices.at(cycle / every)))
            }
            AccessPattern::Bytes(b) => {
                let byte = if cycle == 0 { b.first } else { (b.first / b.piece + cycle) * b.piece };
                Some(self.bank(byte / self.entry_bytes))
            }
        }
    }

    fn add(&mut self, used: Use) -> Option<Collision> {
        let banks = self.banks(&used);
        let mut found: Option<Collision> = None;
        for (unit, lane) in self.lanes.iter().enumerate() {
            if unit == used.unit as usize || lane.banks & banks == 0 {
                continue;
            }
            for (other, others) in &lane.uses {
                if others & banks == 0 || other.to <= used.from || used.to <= other.from {
                    continue;
                }
                let (from, to) = (used.from.max(other.from), used.to.min(other.to));
                let meet = (from..to).find(|&at| {
                    let bank = self.bank_at(&used, at);
                    bank.is_some() && bank == self.bank_at(other, at)
                });
                let Some(at) = meet else { continue };
                let lower = if used.unit < other.unit { &used } else { other };
                let collision = Collision { at, unit: lower.unit, ordinal: lower.ordinal };
                found = Some(found.map_or(collision, |f| f.min(collision)));
            }
        }
        self.lanes[used.unit as usize].push(used, banks);
        found
    }
}

impl Ports {
    /// Creates the ports. Accesses after cycle `limit` do not count.
    pub(super) fn new(config: &HwConfig, limit: Time) -> Ports {
        let port = |mem| Port {
            entry_bytes: config.entry_bytes(mem).into(),
            bank_entries: (config.entries(mem) / config.banks(mem)).into(),
            lanes: Default::default(),
        };
        Ports { ports: [Mem::Inp, Mem::Inp, Mem::Acc, Mem::Acc, Mem::Out, Mem::Out].map(port), limit }
    }

    /// Returns whether units share the ports of a memory, so that its uses must be recorded.
    pub(super) fn shares(mem: Mem) -> bool {
        number(mem, false).is_some()
    }

    /// Adds a unit's reads or writes of a memory. Returns the first cycle in which another unit uses the same bank.
    pub(super) fn add(&mut self, mem: Mem, write: bool, mut used: Use) -> Option<Collision> {
        used.to = used.to.min(self.limit.saturating_add(1));
        if used.from >= used.to {
            return None;
        }
        self.ports[number(mem, write)?].add(used)
    }

    /// Removes uses that ended before `now`. No later use is earlier.
    pub(super) fn forget(&mut self, now: Time) {
        for port in &mut self.ports {
            port.lanes.iter_mut().for_each(|lane| lane.forget(now));
        }
    }
}
