//! The load unit: walks rows, requests bursts and writes entries.

use super::bursts::{BurstRequest, Cut, Splitter};
use super::engine::{Fault, Retired};
use super::ports::{AccessPattern, Bytes, Ports, Use};
use super::slots::{Slots, Time, Words};
use super::states::Layers;
use crate::dram::Burst;
use crate::functional::Stop;
use crate::functional::dma::LoadRows;
use std::collections::VecDeque;
use tilewright_hw::HwConfig;
use tilewright_hw::config::Mem;
use tilewright_hw::device::Base;
use tilewright_hw::isa::{self, Unit};
use tilewright_hw::regs::{TrapCause, UnitState};

/// Layers of the unit's states. The first layer with a state wins.
pub(super) mod layer {
    pub const WRITE: usize = 0;
    pub const ASK: usize = 1;
    pub const DATA: usize = 2;
    pub const BUSY: usize = 3;
    pub const WAIT: usize = 4;
    pub const COUNT: usize = 5;
}

/// What the writing side needs to know of an instruction.
#[derive(Debug)]
struct Context {
    ordinal: u32,
    start: Time,
    mem: Mem,
    chunk: u64,
    entry: u64,
    before: u64,
    after: u64,
    row_bytes: u64,
    pack: bool,
}

impl Context {
    /// Returns the bytes of padding in front of a row's data.
    fn pads_before(&self) -> u64 {
        if self.pack { self.before } else { self.before * self.entry }
    }
}

struct Walk {
    rows: std::iter::Peekable<LoadRows>,
    /// The first cycle in which the next row is ready.
    stands: Time,
    first: bool,
    ordinal: u32,
    row_bytes: u64,
}

/// A row on its way from the walk to the writing side.
#[derive(Debug, Clone, Copy)]
struct RowInFlight {
    visible: Time,
    first: bool,
    last: bool,
    pad: bool,
    /// Its first scratchpad byte, and the offset of its first data byte in a beat.
    at: u64,
    src: u64,
}

/// The row whose data is being written.
#[derive(Debug, Clone, Copy)]
struct Data {
    last: bool,
    /// The end of the row's data in the scratchpad.
    end: u64,
    src: u64,
    dst: u64,
    left: u64,
}

/// A burst whose words are not all used.
#[derive(Debug, Clone, Copy)]
struct Flying {
    from: Time,
    words: u32,
    error: bool,
}

pub(super) struct Load {
    bus: u64,
    chunks: [u64; 7],
    entries: [u64; 7],
    started: u32,
    walk: Option<Walk>,
    /// The cycle in which the last instruction's walk ended.
    walked: Time,
    /// Instructions whose rows are not all written, in order. The rows being written belong to the first.
    contexts: VecDeque<Context>,
    context_places: Slots,
    row_places: Slots,
    rows: VecDeque<RowInFlight>,
    splitter: Splitter,
    outstanding: Slots,
    places: Slots,
    words: Words,
    flying: VecDeque<Flying>,
    data: Option<Data>,
    /// The last cycle of the row written last, and the next cycle of the current row.
    finished: Time,
    clock: Time,
    /// Start cycles of the instructions that have not retired.
    unretired: VecDeque<Time>,
    retired: VecDeque<Retired>,
    /// Accesses to memories with shared ports, if they are recorded.
    uses: Option<Vec<(Mem, Use)>>,
    fault: Option<Fault>,
    /// Whether a beat with an error stopped all writing.
    broken: bool,
    pub(super) states: Layers<{ layer::COUNT }>,
}

impl Load {
    pub(super) fn new(config: &HwConfig) -> Load {
        Load {
            bus: config.bus_bytes().into(),
            chunks: Mem::ALL.map(|m| config.chunk_bytes(m).into()),
            entries: Mem::ALL.map(|m| config.entry_bytes(m).into()),
            started: 0,
            walk: None,
            walked: 0,
            contexts: VecDeque::new(),
            context_places: Slots::new(config.loads_under_way()),
            row_places: Slots::new(config.load_rows()),
            rows: VecDeque::new(),
            splitter: Splitter::new(Cut::new(config), config.load_requests()),
            outstanding: Slots::new(config.outstanding),
            places: Slots::new(config.load_buffer_beats),
            words: Words::new(config.front_words()),
            flying: VecDeque::new(),
            data: None,
            finished: 0,
            clock: 0,
            unretired: VecDeque::new(),
            retired: VecDeque::new(),
            uses: None,
            fault: None,
            broken: false,
            states: Layers::new(),
        }
    }

    /// Turns on the recording of accesses to memories with shared ports.
    pub(super) fn keep_uses(&mut self) {
        self.uses = Some(Vec::new());
    }

    /// Swaps the new writes with an empty list.
    pub(super) fn swap_uses(&mut self, empty: &mut Vec<(Mem, Use)>) {
        if let Some(uses) = &mut self.uses {
            std::mem::swap(uses, empty);
        }
    }

    /// Records that pieces of bytes are passed on in cycles `from..to` and written one cycle later.
    #[inline]
    fn written(&mut self, (mem, ordinal): (Mem, u32), (from, to): (Time, Time), first: u64, end: u64, piece: u64) {
        self.states.add(layer::WRITE, from + 1, to + 1, UnitState::Busy);
        if let Some(uses) = &mut self.uses
            && from < to
            && Ports::shares(mem)
        {
            let pattern = AccessPattern::Bytes(Bytes { first, end, piece });
            uses.push((mem, Use { unit: Unit::Load, ordinal, from: from + 1, to: to + 1, pattern }));
        }
    }

    /// Returns the first cycle in which the next instruction can start, if known.
    pub(super) fn free(&self) -> Option<Time> {
        if self.walk.is_some() {
            return None;
        }
        Some(self.walked.max(self.context_places.ready(1)?))
    }

    /// Returns the first cycle in which a lean queue may overwrite the fields of the last instruction at its head, if
    /// known.
    pub(super) fn released(&self) -> Option<Time> {
        let taken = self.context_places.ready(1)?;
        self.walk.is_none().then_some(taken.max(self.walked + 1))
    }

    /// Starts an instruction.
    pub(super) fn start(&mut self, config: &HwConfig, x: &isa::Load, bases: &[Base], at: Time) {
        self.context_places.take(1);
        self.contexts.push_back(Context {
            ordinal: self.started,
            start: at,
            mem: x.mem,
            chunk: self.chunks[x.mem as usize],
            entry: self.entries[x.mem as usize],
            before: x.x_before.into(),
            after: x.x_after.into(),
            row_bytes: x.row_bytes.into(),
            pack: x.pack,
        });
        self.unretired.push_back(at);
        let rows = LoadRows::new(config, x, bases).peekable();
        let (ordinal, row_bytes) = (self.started, x.row_bytes.into());
        self.walk = Some(Walk { rows, stands: at + 1, first: true, ordinal, row_bytes });
        self.started += 1;
    }

    /// Advances as far as times are known. Returns whether anything was done.
    pub(super) fn advance(&mut self) -> bool {
        let mut any = false;
        loop {
            let mut more = self.hand_on();
            more |= self.splitter.advance();
            more |= self.write();
            if !more {
                return any;
            }
            any = true;
        }
    }

    /// Hands on the rows of the walk that have a place. Returns whether there were any.
    fn hand_on(&mut self) -> bool {
        let mut any = false;
        while let Some(walk) = &mut self.walk {
            let Some(next) = walk.rows.peek() else { return any };
            let row = match next {
                Ok(row) => row,
                Err(stop) => {
                    let cause = if let Stop::Trap(cause) = stop { *cause } else { TrapCause::Scratchpad };
                    let fault = Fault { at: walk.stands, cause, ordinal: walk.ordinal };
                    self.fault = Some(fault.or_before(self.fault));
                    return any;
                }
            };
            let mut at = walk.stands;
            match self.row_places.ready(1) {
                Some(t) => at = at.max(t),
                None => return any,
            }
            if row.dram.is_some() {
                match self.splitter.ready() {
                    Some(t) => at = at.max(t),
                    None => return any,
                }
            }
            self.row_places.take(1);
            let (dram, first_byte) = (row.dram, row.bytes.start as u64);
            walk.rows.next();
            let last = walk.rows.peek().is_none();
            let src = dram.unwrap_or(0) & (self.bus - 1);
            let row =
                RowInFlight { visible: at + 1, first: walk.first, last, pad: dram.is_none(), at: first_byte, src };
            if let Some(addr) = dram {
                self.splitter.push(addr, walk.row_bytes, at + 1, last);
            }
            self.rows.push_back(row);
            (walk.first, walk.stands) = (false, at + 1);
            if last {
                self.walked = at;
                self.walk = None;
            }
            any = true;
        }
        any
    }

    /// Returns the next burst and the first cycle in which it is pending and has room, if known.
    pub(super) fn request(&self) -> Option<(Time, BurstRequest)> {
        let (stands, request) = self.splitter.next()?;
        let room = self.outstanding.ready(1)?.max(self.places.ready(request.beats as usize)?);
        Some((stands.max(room), request))
    }

    /// Records that the request is granted in cycle `at`, with the beats of `burst`.
    pub(super) fn granted(&mut self, asked: Time, at: Time, request: BurstRequest, burst: Burst) {
        let Some(granted) = self.splitter.granted(request, at) else { return };
        self.states.add(layer::ASK, granted.stood, asked, UnitState::Space);
        self.states.add(layer::ASK, asked, at, UnitState::Request);
        self.outstanding.take(1);
        self.outstanding.give(burst.beat(u64::from(request.beats) - 1));
        self.places.take(request.beats as usize);
        self.flying.push_back(Flying { from: at + 1, words: request.beats, error: burst.error != 0 });
        for run in burst.runs(request.beats) {
            self.words.enter_run(run, &mut self.places);
        }
    }

    /// Writes the waiting rows, as far as known. Returns whether anything was done.
    fn write(&mut self) -> bool {
        let mut any = false;
        if self.broken {
            return false;
        }
        loop {
            if self.data.is_some() {
                let (ended, moved) = self.write_data();
                any |= moved;
                if !ended {
                    return any;
                }
                continue;
            }
            let Some(row) = self.rows.pop_front() else { return any };
            let Some(c) = self.contexts.front() else { return any };
            any = true;
            let taken = row.visible.max(self.finished);
            self.row_places.give(taken);
            if row.first {
                self.context_places.give(taken);
            }
            self.clock = taken + 1;
            let mut pads = c.before;
            if row.pad {
                pads += c.after + if c.pack { c.row_bytes } else { c.row_bytes.div_ceil(c.entry) };
                self.write_pads(row.at, pads);
                self.end_row(row.last);
            } else {
                let first = row.at + c.pads_before();
                let (dst, left) = (first & (c.chunk - 1), c.row_bytes);
                self.data = Some(Data { last: row.last, end: first + left, src: row.src, dst, left });
                self.write_pads(row.at, pads);
            }
        }
    }

    /// Writes `pads` entries of padding, or bytes if packed, from scratchpad byte `at` on.
    fn write_pads(&mut self, at: u64, pads: u64) {
        let Some(c) = self.contexts.front().filter(|_| pads > 0) else { return };
        let (steps, end, piece) = if c.pack {
            ((at % c.chunk + pads).div_ceil(c.chunk), at + pads, c.chunk)
        } else {
            (pads, at + pads * c.entry, c.entry)
        };
        let target = (c.mem, c.ordinal);
        self.written(target, (self.clock, self.clock + steps), at, end, piece);
        self.clock += steps;
    }

    /// Writes data whose beats are known. Returns whether the row ended, and whether anything was written.
    fn write_data(&mut self) -> (bool, bool) {
        let (Some(mut d), Some(c)) = (self.data, self.contexts.front()) else { return (true, false) };
        let (chunk, target, alike) = (c.chunk, (c.mem, c.ordinal), c.chunk == self.bus);
        let unit = self.bus.min(chunk);
        let (mut run, mut any) = ((self.clock, self.clock), false);
        let mut run_first = d.end - d.left;
        let ended = loop {
            if alike && let Some((from, n)) = self.write_run(&d) {
                if from == run.1 {
                    run.1 += Time::from(n);
                } else {
                    self.written(target, run, run_first, d.end - d.left, chunk);
                    (run, run_first) = ((from, from + Time::from(n)), d.end - d.left);
                }
                any = true;
                self.clock = run.1;
                d.left -= u64::from(n) * self.bus;
                if d.left == 0 {
                    break true;
                }
                continue;
            }
            let n = unit.min(chunk - d.dst).min(d.left);
            let past = d.src + n;
            let both = past > self.bus;
            let Some(usable) = self.words.usable(usize::from(both)) else { break false };
            let at = self.clock.max(usable);
            if self.fails(both) {
                let fault = Fault { at, cause: TrapCause::Bus, ordinal: target.1 };
                self.fault = Some(fault.or_before(self.fault));
                self.broken = true;
                break false;
            }
            if at == run.1 {
                run.1 += 1;
            } else {
                self.written(target, run, run_first, d.end - d.left, chunk);
                (run, run_first) = ((at, at + 1), d.end - d.left);
            }
            any = true;
            self.clock = at + 1;
            d.left -= n;
            d.src = past & (self.bus - 1);
            d.dst = (d.dst + n) & (chunk - 1);
            let words = if d.left == 0 { 1 + u32::from(both) } else { u32::from(past >= self.bus) };
            for _ in 0..words {
                self.use_word(at);
            }
            if d.left == 0 {
                break true;
            }
        };
        self.written(target, run, run_first, d.end - d.left, chunk);
        if ended {
            self.data = None;
            if let Some(c) = self.contexts.front().filter(|c| c.after > 0) {
                // Padding after the data starts at the next entry, or at the next byte if packed.
                let (at, pads) = (if c.pack { d.end } else { d.end.next_multiple_of(c.entry) }, c.after);
                self.write_pads(at, pads);
            }
            self.end_row(d.last);
        } else {
            self.data = Some(d);
        }
        (ended, any)
    }

    /// Writes one whole chunk per cycle, if chunk and beat are equal, aligned and arrive without a pause.
    fn write_run(&mut self, d: &Data) -> Option<(Time, u32)> {
        let burst = self.flying.front_mut()?;
        if d.src != 0 || d.dst != 0 || burst.error {
            return None;
        }
        let most = burst.words.min((d.left >> self.bus.trailing_zeros()) as u32);
        let (from, n) = self.words.use_run(self.clock, most, &mut self.places)?;
        burst.words -= n;
        if burst.words == 0 {
            let since = burst.from;
            self.states.add(layer::DATA, since, from + Time::from(n), UnitState::Data);
            self.flying.pop_front();
        }
        Some((from, n))
    }

    /// Returns whether the oldest word, or with `both` one of the two oldest, has an error.
    fn fails(&self, both: bool) -> bool {
        let Some(first) = self.flying.front() else { return false };
        first.error || (both && first.words == 1 && self.flying.get(1).is_some_and(|f| f.error))
    }

    fn use_word(&mut self, at: Time) {
        self.words.use_up(at, &mut self.places);
        if let Some(first) = self.flying.front_mut() {
            first.words -= 1;
            if first.words == 0 {
                self.states.add(layer::DATA, first.from, at + 1, UnitState::Data);
                self.flying.pop_front();
            }
        }
    }

    /// Ends a row, or with `last` the instruction, in the cycle before `clock`.
    fn end_row(&mut self, last: bool) {
        self.finished = self.clock - 1;
        if last && let Some(context) = self.contexts.pop_front() {
            let at = self.finished + 1;
            self.unretired.pop_front();
            self.states.add(layer::BUSY, context.start + 1, at + 1, UnitState::Busy);
            self.retired.push_back(Retired { ordinal: context.ordinal, at });
        }
    }

    /// Returns the next instruction that retires.
    pub(super) fn retire(&mut self) -> Option<Retired> {
        self.retired.pop_front()
    }

    /// Returns the unit's trap, if any.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Records what is going on until the run ends at cycle `end`.
    pub(super) fn cut(&mut self, end: Time) {
        if let Some(context) = self.contexts.front() {
            self.states.add(layer::BUSY, context.start + 1, end, UnitState::Busy);
        }
        if let Some(flying) = self.flying.front() {
            self.states.add(layer::DATA, flying.from, end, UnitState::Data);
        }
        if let Some((stands, request)) = self.splitter.next() {
            let room = self.outstanding.ready(1).zip(self.places.ready(request.beats as usize));
            let room = room.map_or(end, |(slot, places)| slot.max(places)).clamp(stands, end.max(stands));
            self.states.add(layer::ASK, stands, room, UnitState::Space);
            self.states.add(layer::ASK, room, end, UnitState::Request);
        }
    }

    /// Counts the states that are final given the last start, up to `now` at most.
    pub(super) fn settle(&mut self, last_start: Time, now: Time) {
        self.states.settle((self.unretired.front().copied().unwrap_or(last_start) + 1).min(now));
    }
}
