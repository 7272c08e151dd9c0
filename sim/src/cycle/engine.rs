//! Simulates one command: advances units as far as their times are known, and handles bus events one by one.
//!
//! Except for the bus, every time follows from earlier times by sums and maxima, so each unit advances as far as the
//! known events allow. Then the earliest request of all is granted. Everything still unknown depends on a later grant,
//! and so comes later.

use super::bus::{Client, Requests};
use super::check::{Clock, Diagnosis, DiagnosisKind, TimedDiagnosis};
use super::compute::{self, Compute, Extent, READ, Times};
use super::fetch::{Fetch, Joined};
use super::load::{self, Load};
use super::ports::{self, Collision, MicroOps, Ports};
use super::shares::Passed;
use super::slots::{Places, Time};
use super::states::missing;
use super::store::{self, Store};
use super::tokens::{Overflow, Tokens};
use crate::dram::Dram;
use crate::span;
use std::collections::VecDeque;
use std::rc::Rc;
use tilewright_hw::HwConfig;
use tilewright_hw::config::Mem;
use tilewright_hw::device::{Base, RunReport, Span};
use tilewright_hw::interrupt::{self, Interrupted};
use tilewright_hw::isa::{Insn, Op, Unit, UnitSet};
use tilewright_hw::regs::{TrapCause, TrapUnit, UnitState};

/// After how many requests a run is checked for being stopped from outside.
const TURNS: u64 = 1 << 12;

/// Number of uncounted state intervals that triggers counting.
const WAITING: usize = 1 << 8;

/// Number of grants between two checks for state intervals to count.
const SETTLE: u32 = 64;

/// Cycles between two removals of finished port accesses.
const FORGET: Time = 256;

/// A trap of one of the four units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) at: Time,
    pub(super) cause: TrapCause,
    pub(super) ordinal: u32,
}

impl Fault {
    /// Returns the earlier of two faults. In the same cycle, a bus error comes first.
    pub(super) fn or_before(self, other: Option<Fault>) -> Fault {
        match other {
            Some(other) if other.at < self.at || (other.at == self.at && other.cause == TrapCause::Bus) => other,
            _ => self,
        }
    }
}

/// The retirement of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Retired {
    pub(super) ordinal: u32,
    pub(super) at: Time,
}

/// Why an instruction's work stops early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Halt {
    /// The check of this micro-op, counted from 0, fails.
    At { step: u64, cause: TrapCause },
    /// The check of the constants' address fails.
    Constants,
    /// A row of a load or store fails; the row walk finds the cycle by itself.
    Rows,
    /// The program broke a rule that the hardware does not check.
    Program(String),
}

/// What the engine needs from the rest of the simulator.
pub(super) trait Environment {
    /// Returns the program errors found so far.
    fn found(&mut self) -> Vec<TimedDiagnosis>;

    /// Returns the instruction at a place of the stream, which fetch dispatches in cycle `at`.
    fn decode(&mut self, place: u32, at: Time) -> Result<Insn, TrapCause>;

    /// Returns the in-bounds micro-ops of a gemm or vector instruction. `None` if there are none or values are not
    /// computed.
    fn micro_ops(&mut self, insn: &Insn) -> Option<Rc<MicroOps>>;

    /// Commits the first `bytes` of all stores: they stay written, whatever happens later.
    fn wrote(&mut self, bytes: u64);

    /// Undoes the writes of stores after the first `bytes`.
    fn take_back(&mut self, bytes: u64);

    /// Returns the unit of an instruction that cannot be decoded; load if its opcode is unknown.
    fn refuses(&self, place: u32) -> Unit;

    /// Does an instruction's work. Everything it depends on is already done.
    fn run(&mut self, insn: &Insn, order: Order) -> Result<(), Halt>;
}

/// An instruction's position in the program and in time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    /// Its place in the stream, and its ordinal in its unit.
    pub(super) place: u32,
    pub(super) ordinal: u32,
    /// The cycle of its start.
    pub(super) start: Time,
    /// Most micro-ops or rows of device memory that can be checked before the run's limit.
    pub(super) most: u64,
    /// The instructions that tokens order it after.
    pub(super) clock: Clock,
}

/// An instruction in its queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queued {
    pub(super) insn: Insn,
    pub(super) place: u32,
    pub(super) visible: Time,
}

/// What the retirement of an instruction needs to know.
#[derive(Debug, Clone, Copy)]
pub(super) struct Started {
    push: UnitSet,
    place: u32,
    clock: Clock,
}

/// A unit's queue and the state of its instructions.
pub(super) struct Queue {
    pub(super) waiting: VecDeque<Queued>,
    pub(super) places: Places,
    pub(super) last_start: Time,
    pub(super) started: u32,
    /// Instructions that have started but not retired.
    pub(super) flying: VecDeque<Started>,
    /// The clock of the instruction that started last.
    pub(super) clock: Clock,
    pub(super) last_retire: Time,
    /// Whether the unit has stopped for good.
    pub(super) dead: bool,
}

/// A trap that might end the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    pub(super) at: Time,
    pub(super) unit: usize,
    /// 0 for a unit's own check, 1 for token overflow, 2 for a collision, 3 for a deadlock.
    pub(super) rank: u8,
    pub(super) cause: u32,
    pub(super) ordinal: u32,
}

/// Result of a run.
pub(super) struct EngineOutcome {
    pub(super) report: RunReport,
    /// The first broken rule that the hardware does not check, as place and text.
    pub(super) program: Option<(u32, String)>,
    pub(super) last_load: bool,
    /// Program errors, including deadlock and overflow.
    pub(super) diagnoses: Vec<Diagnosis>,
}

pub(super) struct Engine<'a, E: Environment> {
    pub(super) config: &'a HwConfig,
    pub(super) bases: &'a [Base],
    pub(super) dram: Dram,
    pub(super) environment: E,
    pub(super) limit: Time,
    pub(super) fetch: Fetch,
    pub(super) requests: Requests,
    pub(super) standing: Option<(Joined, Insn)>,
    /// The cycle of an instruction that cannot be decoded, and the unit whose queue it waits for.
    pub(super) refused: Option<(Time, Unit)>,
    pub(super) queues: [Queue; 4],
    /// Units whose next instruction may be able to start: something that it may have waited for happened.
    pub(super) startable: UnitSet,
    pub(super) tokens: Tokens,
    pub(super) load: Load,
    pub(super) gemm: Compute,
    pub(super) vector: Compute,
    pub(super) store: Store,
    /// The cycle of the last grant. Nothing found from now on comes earlier.
    pub(super) now: Time,
    pub(super) forgotten: Time,
    /// Number of calls to `propagate` so far, modulo 2^32.
    pub(super) propagated: u32,
    /// The last cycle in which a read was granted, and whether it was granted to load.
    pub(super) last_read: Time,
    pub(super) last_load: bool,
    /// Uses of shared ports, as far as micro-ops are known.
    pub(super) ports: Ports,
    pub(super) watches_ports: bool,
    /// Whether to try all units whenever anything changed.
    plain: bool,
    /// A buffer reused for accesses on their way to `ports`.
    pub(super) spare: Vec<(Mem, ports::Use)>,
    pub(super) candidates: Vec<Candidate>,
    /// Explanations of candidates.
    pub(super) texts: Vec<(Candidate, String)>,
    pub(super) keep_spans: bool,
    pub(super) spans: [Vec<Span>; 4],
    pub(super) passed: [Passed; 4],
    /// Retirement cycles of each unit. Those after the earliest trap do not count.
    pub(super) retirements: [Vec<Time>; 4],
    /// Multiply-accumulates of the gemm instructions, in order.
    pub(super) macs: Vec<u64>,
    /// Start, place and text of the first instruction that breaks a rule the hardware does not check.
    pub(super) program: Option<(Time, u32, String)>,
    pub(super) found: Vec<TimedDiagnosis>,
    /// Bytes read.
    pub(super) read: u64,
    /// Grants since a token counter may have overflowed: cycle, bytes read and bytes written. They are undone if it
    /// did.
    pub(super) late: Vec<(Time, u64, u64)>,
}

impl<'a, E: Environment> Engine<'a, E> {
    pub(super) fn new(
        config: &'a HwConfig,
        bases: &'a [Base],
        dram: Dram,
        environment: E,
        stream: (u64, u32),
        limit: Time,
        last_load: bool,
    ) -> Engine<'a, E> {
        let queue = || Queue {
            waiting: VecDeque::new(),
            places: Places::new(config.queue_depth),
            last_start: 0,
            started: 0,
            flying: VecDeque::new(),
            clock: Clock::default(),
            last_retire: 0,
            dead: false,
        };
        Engine {
            config,
            bases,
            dram,
            environment,
            limit,
            fetch: Fetch::new(config, stream.0, stream.1),
            requests: Requests::default(),
            standing: None,
            refused: None,
            late: Vec::new(),
            queues: [queue(), queue(), queue(), queue()],
            startable: UnitSet::default(),
            tokens: Tokens::new(config.token_bits),
            load: Load::new(config),
            gemm: Compute::new(),
            vector: Compute::new(),
            store: Store::new(config),
            now: 0,
            forgotten: 0,
            propagated: 0,
            last_read: 0,
            last_load,
            ports: Ports::new(config, limit),
            watches_ports: false,
            plain: false,
            spare: Vec::new(),
            candidates: Vec::new(),
            texts: Vec::new(),
            keep_spans: false,
            spans: Default::default(),
            passed: Default::default(),
            retirements: Default::default(),
            macs: Vec::new(),
            program: None,
            found: Vec::new(),
            read: 0,
        }
    }

    /// Turns on the detection of collisions.
    pub(super) fn watch_ports(mut self) -> Self {
        self.load.keep_uses();
        self.store.keep_uses();
        self.watches_ports = true;
        self
    }

    /// Turns off everything that handles more than one word or skips work: the reference for tests.
    pub(super) fn plain(mut self) -> Self {
        self.load.passes = false;
        self.store.passes = false;
        self.plain = true;
        self
    }

    /// Runs to the end or to a trap. Returns `None` if the limit comes first.
    ///
    /// # Errors
    /// [`Interrupted`] if the work is stopped from outside.
    pub(super) fn run(mut self) -> Result<Option<EngineOutcome>, Interrupted> {
        self.propagate(Client::Fetch);
        for turn in 0_u64.. {
            if turn % TURNS == 0 {
                interrupt::check()?;
            }
            let end = self.trap_time();
            let before = (self.read, self.store.written);
            let Some((at, granted)) = self.grant(end) else { break };
            if at > self.limit {
                return Ok(self.finish(true));
            }
            if self.tokens.may_have_overflowed() {
                self.late.push((at, self.read - before.0, self.store.written - before.1));
            } else {
                self.late.clear();
                if granted == Client::Store {
                    self.environment.wrote(self.store.written);
                }
            }
            self.now = at;
            if granted == Client::Load && self.load.is_within_row() {
                // Everything else waits for the end of the row.
                self.requests.load = self.load.request();
            } else {
                self.propagate(granted);
            }
        }
        Ok(self.finish(false))
    }

    /// Returns the cycle of the earliest trap or broken rule. Nothing later counts.
    fn trap_time(&self) -> Time {
        let broken = self.program.iter().map(|(at, ..)| *at);
        self.candidates.iter().map(|c| c.at).chain(broken).min().unwrap_or(Time::MAX)
    }

    /// Advances every unit as far as possible, starting with the one whose request was granted.
    fn propagate(&mut self, granted: Client) {
        let mut fetch = granted == Client::Fetch;
        let mut load = granted == Client::Load;
        let mut store = granted == Client::Store;
        let mut changed = true;
        loop {
            if std::mem::take(&mut fetch) {
                self.fetch_on();
                self.requests.fetch = self.requests.fetch.or_else(|| self.fetch.request());
            }
            if std::mem::take(&mut load) {
                self.load.advance();
                if std::mem::take(&mut self.load.freed) {
                    self.startable.insert(Unit::Load);
                }
                while let Some(retired) = self.load.retire() {
                    self.retire(Unit::Load, retired);
                }
                self.requests.load = self.requests.load.or_else(|| self.load.request());
            }
            if std::mem::take(&mut store) {
                self.store.advance();
                if std::mem::take(&mut self.store.freed) {
                    self.startable.insert(Unit::Store);
                }
                self.requests.store = self.requests.store.or_else(|| self.store.request());
            }
            if self.plain && std::mem::take(&mut changed) {
                self.startable = Unit::ALL.into_iter().collect();
            }
            if self.startable.is_empty() {
                break;
            }
            for unit in Unit::ALL {
                if !self.startable.contains(unit) {
                    continue;
                }
                self.startable.remove(unit);
                while self.start(unit) {
                    // A start frees a place in the queue, gives the unit work, and can give tokens to other units.
                    (fetch, changed) = (true, true);
                    load |= unit == Unit::Load;
                    store |= unit == Unit::Store;
                }
            }
        }
        if self.watches_ports {
            self.note_uses();
        }
        for (unit, fault) in [(Unit::Load, self.load.fault()), (Unit::Store, self.store.fault())] {
            if let Some(fault) = fault {
                self.fail(unit, fault);
            }
        }
        self.propagated = self.propagated.wrapping_add(1);
        if self.propagated.is_multiple_of(SETTLE) {
            self.settle();
        }
    }

    /// Adds the new accesses of load and store to the ports.
    fn note_uses(&mut self) {
        let mut uses = std::mem::take(&mut self.spare);
        for write in [true, false] {
            if write {
                self.load.swap_uses(&mut uses);
            } else {
                self.store.swap_uses(&mut uses);
            }
            for (mem, used) in uses.drain(..) {
                let found = self.ports.add(mem, write, used);
                self.collide(found);
            }
        }
        self.spare = uses;
    }

    /// Counts the states that can no longer change.
    fn settle(&mut self) {
        if self.tokens.may_have_overflowed() {
            return;
        }
        if self.now >= self.forgotten + FORGET {
            self.forgotten = self.now;
            self.ports.forget(self.now);
        }
        let (now, last) = (self.now, |unit: Unit| self.queues[unit as usize].last_start);
        if self.load.states.waiting() > WAITING {
            self.load.settle(last(Unit::Load), now);
        }
        if self.store.states.waiting() > WAITING {
            self.store.settle(last(Unit::Store), now);
        }
        for (unit, compute) in [(Unit::Gemm, &mut self.gemm), (Unit::Vector, &mut self.vector)] {
            if compute.states.waiting() > WAITING {
                compute.states.settle((self.queues[unit as usize].last_start + 1).min(now));
            }
        }
        if self.fetch.states.waiting() > WAITING {
            self.fetch.settle(now);
        }
        self.share();
    }

    pub(super) fn candidate(&mut self, candidate: Candidate) {
        if !self.candidates.contains(&candidate) {
            self.candidates.push(candidate);
        }
    }

    fn fail(&mut self, unit: Unit, fault: Fault) {
        // Replace the unit's previous fault: the unit itself decides which of two comes first.
        self.candidates.retain(|known| known.unit != unit as usize || known.rank != 0);
        self.candidate(Candidate {
            at: fault.at,
            unit: unit as usize,
            rank: 0,
            cause: fault.cause as u32,
            ordinal: fault.ordinal,
        });
    }

    /// Moves instructions into their queues.
    fn fetch_on(&mut self) {
        loop {
            if self.standing.is_none() {
                let Some(joined) = self.fetch.join() else { return };
                let found =
                    if joined.error { Err(TrapCause::Bus) } else { self.environment.decode(joined.place, joined.at) };
                match found {
                    Ok(insn) => self.standing = Some((joined, insn)),
                    Err(cause) => {
                        if !joined.error {
                            self.refused = Some((joined.at, self.environment.refuses(joined.place)));
                        }
                        self.candidate(Candidate {
                            at: joined.at,
                            unit: TrapUnit::Fetch as usize,
                            rank: 0,
                            cause: cause as u32,
                            ordinal: joined.place,
                        });
                        return;
                    }
                }
            }
            let Some((joined, insn)) = &self.standing else { return };
            let (joined, unit) = (*joined, insn.unit());
            let queue = &mut self.queues[unit as usize];
            let Some(place) = queue.places.ready() else {
                self.fetch.gather();
                return;
            };
            let at = joined.at.max(place);
            let words = if self.config.lean { self.config.insn_words(insn.op.opcode()) } else { 1 };
            let visible = at + Time::from(words);
            queue.places.take();
            queue.waiting.push_back(Queued { insn: *insn, place: joined.place, visible });
            self.fetch.handed_on(joined.at, at, visible);
            self.standing = None;
            self.startable.insert(unit);
        }
    }

    /// Returns the first cycle in which a unit's next instruction is at its queue's head, if known. In a lean queue,
    /// its words move there one by one, once the fields of the previous instruction are no longer needed.
    pub(super) fn stands(&self, unit: Unit) -> Option<Time> {
        let queue = &self.queues[unit as usize];
        let head = queue.waiting.front()?;
        let behind = head.visible.max(queue.last_start + 1);
        if !self.config.lean {
            return Some(behind);
        }
        let released = match unit {
            Unit::Load => self.load.released()?,
            Unit::Store => self.store.released()?,
            Unit::Gemm => self.gemm.released(),
            Unit::Vector => self.vector.released(),
        };
        Some(behind.max(released) + Time::from(self.config.insn_words(head.insn.op.opcode())) + 1)
    }

    /// Starts the next instruction of a unit, if the start is known. Returns whether it did.
    fn start(&mut self, unit: Unit) -> bool {
        let queue = &self.queues[unit as usize];
        let Some(head) = queue.waiting.front() else { return false };
        let (need, visible) = (head.insn.pop, head.visible);
        if self.tokens.missing(unit, need).0 != 0 {
            return false;
        }
        let free = match unit {
            Unit::Load => self.load.free(),
            Unit::Gemm => Some(self.gemm.free()),
            Unit::Vector => Some(self.vector.free()),
            Unit::Store => self.store.free(),
        };
        let Some(free) = free else { return false };
        let Some(seen) = self.stands(unit) else { return false };
        self.wait(unit, visible.max(self.queues[unit as usize].last_start + 1), seen, UnitState::Space);
        let mut at = seen;
        for from in need.iter() {
            let ready = self.tokens.ready(from, unit);
            self.wait(unit, at, ready, missing(from));
            at = at.max(ready);
        }
        let start = at.max(free);
        self.wait(unit, at, start + 1, UnitState::Space);
        let mut clock = self.queues[unit as usize].clock;
        if let Some(over) = self.tokens.pop(unit, need, start, &mut clock) {
            self.overflow(over);
        }

        let queue = &mut self.queues[unit as usize];
        queue.clock = clock;
        let Some(head) = queue.waiting.pop_front() else { return false };
        queue.places.give(start);
        queue.last_start = start;
        let ordinal = queue.started;
        queue.started += 1;
        queue.flying.push_back(Started { push: head.insn.push, place: head.place, clock });
        if self.keep_spans {
            self.spans[unit as usize].push(span::started(unit, ordinal, start));
        }
        // An instruction that starts after its unit trapped has no effect.
        let dead = queue.dead;
        let micro_ops = if dead { None } else { self.environment.micro_ops(&head.insn) };
        let most = self.limit.saturating_sub(start);
        let order = Order { place: head.place, ordinal, start, most, clock };
        let halt = if dead { None } else { self.environment.run(&head.insn, order).err() };
        if let Some(Halt::Program(text)) = &halt
            && self.program.as_ref().is_none_or(|(at, place, _)| (start, head.place) < (*at, *place))
        {
            self.program = Some((start, head.place, text.clone()));
        }
        let (times, all) = match &head.insn.op {
            Op::Load(x) => {
                self.load.start(self.config, x, self.bases, start);
                return true;
            }
            Op::Store(x) => {
                self.store.start(self.config, x, self.bases, start);
                return true;
            }
            Op::Gemm(x) => {
                self.macs.push(x.micro_ops() * self.config.macs_per_cycle());
                (self.gemm.gemm(self.config, x, start), x.micro_ops())
            }
            Op::Vector(x) => (self.vector.vector(self.config, x, start), x.micro_ops()),
        };
        match halt {
            None if dead => {}
            None => {
                self.use_ports(&head.insn.op, micro_ops.as_ref(), (times, Extent::whole(all)), ordinal);
                self.retire(unit, Retired { ordinal, at: times.retire });
            }
            Some(halt) => {
                let extent = self.halt(unit, ordinal, times, &halt);
                self.use_ports(&head.insn.op, micro_ops.as_ref(), (times, extent), ordinal);
            }
        }
        true
    }

    /// Adds the accesses of the given part of a gemm or vector instruction to the ports.
    fn use_ports(&mut self, op: &Op, micro_ops: Option<&Rc<MicroOps>>, when: (Times, Extent), ordinal: u32) {
        let found = match (op, micro_ops) {
            (Op::Gemm(x), Some(uops)) => compute::gemm_ports(self.config, &mut self.ports, x, uops, when, ordinal),
            (Op::Vector(x), Some(uops)) => compute::vector_ports(self.config, &mut self.ports, x, uops, when, ordinal),
            _ => None,
        };
        self.collide(found);
    }

    /// Stops the unit at an instruction of gemm or vector that fails. Returns the part of it that runs.
    fn halt(&mut self, unit: Unit, ordinal: u32, times: Times, halt: &Halt) -> Extent {
        self.queues[unit as usize].dead = true;
        let (at, cause, micro_ops) = match halt {
            Halt::At { step, cause } => {
                // Operands that collide are still read; an index outside its memory is not.
                let read = u64::from(*cause == TrapCause::Collision);
                (times.first + step * times.step + READ, *cause, step + read)
            }
            Halt::Constants => (times.constants.unwrap_or(times.first), TrapCause::Scratchpad, 0),
            Halt::Rows | Halt::Program(_) => return Extent { micro_ops: 0, end: 0 },
        };
        let rank = if cause == TrapCause::Collision { 2 } else { 0 };
        self.candidate(Candidate { at, unit: unit as usize, rank, cause: cause as u32, ordinal });
        Extent { micro_ops, end: at + 1 }
    }

    fn collide(&mut self, found: Option<Collision>) {
        if let Some(Collision { at, unit, ordinal }) = found {
            let cause = TrapCause::Collision as u32;
            self.candidate(Candidate { at, unit: unit as usize, rank: 2, cause, ordinal });
        }
    }

    pub(super) fn overflow(&mut self, over: Overflow) {
        let text = format!(
            "{} pushes a token to {}, but that counter is full; pop the tokens sooner, or push fewer",
            over.unit.name(),
            over.to.name()
        );
        let (unit, cause) = (over.unit as usize, TrapCause::Token as u32);
        let candidate = Candidate { at: over.at, unit, rank: 1, cause, ordinal: over.ordinal };
        self.texts.push((candidate, text.clone()));
        self.found.push((over.at, Diagnosis { place: over.place, kind: DiagnosisKind::Overflow, text }));
        self.candidate(candidate);
    }

    /// Records that a unit without work waits.
    pub(super) fn wait(&mut self, unit: Unit, from: Time, to: Time, state: UnitState) {
        match unit {
            Unit::Load => self.load.states.add(load::layer::WAIT, from, to, state),
            Unit::Gemm => self.gemm.states.add(compute::layer::WAIT, from, to, state),
            Unit::Vector => self.vector.states.add(compute::layer::WAIT, from, to, state),
            Unit::Store => self.store.states.add(store::layer::WAIT, from, to, state),
        }
    }

    pub(super) fn retire(&mut self, unit: Unit, retired: Retired) {
        let queue = &mut self.queues[unit as usize];
        let Some(Started { push, place, mut clock }) = queue.flying.pop_front() else { return };
        clock[unit as usize] = retired.ordinal + 1;
        queue.last_retire = retired.at;
        self.retirements[unit as usize].push(retired.at);
        for to in push.iter() {
            self.startable.insert(to);
        }
        let over = self.tokens.push(unit, push, (retired.ordinal, place), retired.at, clock);
        if self.keep_spans
            && let Some(span) = self.spans[unit as usize].get_mut(retired.ordinal as usize)
        {
            span.end = Some(retired.at);
        }
        if let Some(over) = over {
            self.overflow(over);
        }
    }
}
