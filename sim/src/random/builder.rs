//! Builds correct programs from operations: checks every operation against the previous ones, and adds the tokens that
//! order it after its conflicts.

use super::image::{MEMORY_BYTES, RESULTS, bases};
use super::order::{Order, first_race, others, without};
use crate::access::{Access, Context, Entries, access};
use crate::functional::Fsim;
use rand::Rng;
use rand::rngs::SmallRng;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::{Base, RunReport};
use tilewright_hw::isa::{Insn, Op, encode, illegal_reasons};
use tilewright_hw::regs::TrapCause;

/// Why an operation was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refused {
    /// It cannot be encoded.
    Illegal,
    /// It ends with this trap, or without one, instead of the expected end.
    Ends(Option<TrapCause>),
    /// A deep operation would read a row that it wrote.
    ReadsOwnRow,
    /// It reads something that nothing wrote.
    Uninitialized,
    /// It loads micro-ops from memory where a program that trapped has stored.
    Unknown,
    /// Its tokens could overflow a counter.
    Tokens,
}

/// A program that grows by one operation at a time.
pub(super) struct Builder<'a> {
    pub(super) config: &'a HwConfig,
    pub(super) bases: Vec<Base>,
    /// The machine's state after all operations so far.
    fsim: Fsim,
    pub(super) insns: Vec<Insn>,
    pub(super) accesses: Vec<Access>,
    filled: [Entries; 7],
    /// Whether a program trapped before this one, so that stored bytes can differ from the functional simulator's.
    after_trap: bool,
}

impl<'a> Builder<'a> {
    pub(super) fn new(config: &'a HwConfig, image: &[u8]) -> Builder<'a> {
        let mut fsim = Fsim::new(config.clone(), MEMORY_BYTES);
        fsim.memory_mut()[..image.len()].copy_from_slice(image);
        Builder {
            config,
            bases: bases(config),
            fsim,
            insns: Vec::new(),
            accesses: Vec::new(),
            filled: Default::default(),
            after_trap: false,
        }
    }

    /// Begins the next program, continuing from the machine's current state.
    pub(super) fn begin(&mut self) {
        self.insns.clear();
        self.accesses.clear();
    }

    /// Makes later programs load micro-ops only from memory that no store writes.
    pub(super) fn mistrust_stores(&mut self) {
        self.after_trap = true;
    }

    /// Returns what an operation would access if it came next.
    pub(super) fn access(&self, op: &Op) -> Access {
        let context = Context {
            config: self.config,
            bases: &self.bases,
            memory_bytes: MEMORY_BYTES,
            micro_ops: self.fsim.micro_ops(),
            most: u64::MAX,
        };
        access(&context, op)
    }

    /// Appends an operation that ends with `ends`, ordered after the operations it conflicts with.
    pub(super) fn add(&mut self, op: Op, ends: Option<TrapCause>, rng: &mut SmallRng) -> Result<(), Refused> {
        let insn = Insn::new(op);
        if encode(&insn, self.config).is_err() || !illegal_reasons(&insn, self.config).is_empty() {
            return Err(Refused::Illegal);
        }
        let access = self.access(&op);
        if access.trap != ends {
            return Err(Refused::Ends(access.trap));
        }
        if access.reads_own_row {
            return Err(Refused::ReadsOwnRow);
        }
        if access.needs.iter().zip(&self.filled).any(|(r, f)| !r.is_within(f)) {
            return Err(Refused::Uninitialized);
        }
        let loads_micro_ops = matches!(&op, Op::Load(x) if matches!(x.mem, Mem::GemmUop | Mem::VectorUop));
        if self.after_trap && loads_micro_ops && access.dram_reads.iter().any(|range| range.end > RESULTS.start) {
            return Err(Refused::Unknown);
        }
        let before = self.insns.clone();
        self.insns.push(insn);
        self.accesses.push(access);
        if self.order_last(rng).is_err() {
            self.insns = before;
            self.accesses.pop();
            return Err(Refused::Tokens);
        }
        // With a trap in the middle, hardware can have done more or less. Later operations are ordered after it.
        let _ = self.fsim.execute(&op, &self.bases, u64::MAX, &mut RunReport::default());
        let fills = self.accesses.last().map(|a| a.fills.clone()).unwrap_or_default();
        self.filled.iter_mut().zip(&fills).for_each(|(all, new)| all.add(new));
        Ok(())
    }

    /// Adds tokens until the last instruction has no race with an earlier one.
    fn order_last(&mut self, rng: &mut SmallRng) -> Result<(), String> {
        let last = self.insns.len() - 1;
        loop {
            let order = Order::of(&self.insns, self.config)?;
            let Some(early) = first_race(&order, &self.accesses, last) else { return Ok(()) };
            // The latest conflict with that unit orders the earlier ones too.
            let unit = self.accesses[early].unit;
            let early = (early..last)
                .rev()
                .find(|&i| {
                    self.accesses[i].unit == unit
                        && !order.is_after(last, i, unit)
                        && self.accesses[i].conflicts(&self.accesses[last])
                })
                .unwrap_or(early);
            self.order_behind(early, last, rng)?;
        }
    }

    /// Adds a token from `early`'s unit to `late`, pushed by `early` or a later instruction. All pairs must be balanced
    /// before, so that `late` takes this token.
    pub(super) fn order_behind(&mut self, early: usize, late: usize, rng: &mut SmallRng) -> Result<(), String> {
        let (from, to) = (self.insns[early].unit(), self.insns[late].unit());
        let pushers: Vec<usize> =
            (early..late).filter(|&i| self.insns[i].unit() == from && !self.insns[i].push.contains(to)).collect();
        if pushers.is_empty() || self.insns[late].pop.contains(from) {
            return Err("no instruction is left to push the token".into());
        }
        let pusher = if rng.random_bool(0.7) { pushers[0] } else { pushers[rng.random_range(0..pushers.len())] };
        self.insns[pusher].push.insert(to);
        self.insns[late].pop.insert(from);
        Ok(())
    }

    /// Orders the last instruction after all instructions of other units.
    pub(super) fn order_behind_all(&mut self, rng: &mut SmallRng) -> Result<(), String> {
        let last = self.insns.len() - 1;
        for unit in others(self.insns[last].unit()) {
            let order = Order::of(&self.insns, self.config)?;
            let early = self.insns.iter().rposition(|i| i.unit() == unit);
            if let Some(early) = early.filter(|early| !order.is_after(last, *early, unit)) {
                if self.insns[last].pop.contains(unit) {
                    return Err("this unit's token is already taken".into());
                }
                self.order_behind(early, last, rng)?;
            }
        }
        Order::of(&self.insns, self.config).map(|_| ())
    }

    /// Tries to add tokens that nothing needs. Each must keep the program free of races.
    pub(super) fn add_spare_tokens(&mut self, tries: usize, rng: &mut SmallRng) {
        for _ in 0..tries {
            let early = rng.random_range(0..self.insns.len());
            let late = rng.random_range(early..self.insns.len());
            let (from, to) = (self.insns[early].unit(), self.insns[late].unit());
            if from == to || self.insns[early].push.contains(to) || self.insns[late].pop.contains(from) {
                continue;
            }
            self.insns[early].push.insert(to);
            self.insns[late].pop.insert(from);
            let fine = Order::of(&self.insns, self.config)
                .is_ok_and(|order| (0..self.insns.len()).all(|i| first_race(&order, &self.accesses, i).is_none()));
            if !fine {
                self.insns[early].push = without(self.insns[early].push, to);
                self.insns[late].pop = without(self.insns[late].pop, from);
            }
        }
    }

    /// Returns whether two instructions of different units can run at the same time.
    pub(super) fn overlaps(&self) -> bool {
        let Ok(order) = Order::of(&self.insns, self.config) else { return false };
        (0..self.insns.len()).any(|late| {
            (0..late).any(|early| {
                let unit = self.accesses[early].unit;
                unit != self.accesses[late].unit && !order.is_after(late, early, unit)
            })
        })
    }
}
