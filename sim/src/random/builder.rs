//! From operations to a correct program: every operation is checked against what came before, and gets the tokens that
//! order it behind what it conflicts with.

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

/// Why an operation was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refused {
    /// It cannot be encoded.
    Illegal,
    /// It does not end as it should: with this trap, or without.
    Ends(Option<TrapCause>),
    /// A deep operation would read what it wrote.
    ReadsOwnRow,
    /// It reads what nothing wrote.
    Uninitialised,
    /// It takes micro-ops from where a program that trapped has stored.
    Unknown,
    /// Its tokens could overflow a counter.
    Tokens,
}

/// A program that grows by one operation at a time.
pub(super) struct Builder<'a> {
    pub(super) config: &'a HwConfig,
    pub(super) bases: Vec<Base>,
    /// The machine after what was taken so far.
    fsim: Fsim,
    pub(super) insns: Vec<Insn>,
    pub(super) accesses: Vec<Access>,
    filled: [Entries; 7],
    /// A program trapped before this one, so that what is stored is not as the functional simulator has it.
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

    /// Begins the next program, on the machine as the last one left it.
    pub(super) fn begin(&mut self) {
        self.insns.clear();
        self.accesses.clear();
    }

    /// From here on micro-ops come only from where nothing is stored.
    pub(super) fn mistrust_stores(&mut self) {
        self.after_trap = true;
    }

    /// What an operation would touch as the next one.
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

    /// Appends an operation that ends with `ends`, ordered behind what it conflicts with.
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
            return Err(Refused::Uninitialised);
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
        // A trap in the middle leaves what hardware may or may not have reached; later operations are ordered behind.
        let _ = self.fsim.execute(&op, &self.bases, u64::MAX, &mut RunReport::default());
        let fills = self.accesses.last().map(|a| a.fills.clone()).unwrap_or_default();
        self.filled.iter_mut().zip(&fills).for_each(|(all, new)| all.add(new));
        Ok(())
    }

    /// Inserts tokens until the last instruction races with none before it.
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

    /// Gives `late` a token of `early`'s unit, pushed by `early` or a later instruction. All pairs are in balance before,
    /// so it is the one that `late` takes.
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

    /// Orders the last instruction behind all others of other units.
    pub(super) fn order_behind_all(&mut self, rng: &mut SmallRng) -> Result<(), String> {
        let last = self.insns.len() - 1;
        for unit in others(self.insns[last].unit()) {
            let order = Order::of(&self.insns, self.config)?;
            let early = self.insns.iter().rposition(|i| i.unit() == unit);
            if let Some(early) = early.filter(|early| !order.is_after(last, *early, unit)) {
                if self.insns[last].pop.contains(unit) {
                    return Err("the token of this unit is taken already".into());
                }
                self.order_behind(early, last, rng)?;
            }
        }
        Order::of(&self.insns, self.config).map(|_| ())
    }

    /// Adds tokens that nothing needs, as far as the program stays free of races.
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

    /// Whether two instructions of different units may run at the same time.
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
