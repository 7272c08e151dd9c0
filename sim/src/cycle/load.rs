//! The load unit: walks rows, requests bursts and writes entries.

use super::bursts::{BurstRequest, Cut, Splitter};
use super::engine::{Fault, Retired};
use super::ports::{AccessPattern, Bytes, Ports, Use};
use super::ring::Ring;
use super::slots::{Places, Slots, Time, Words};
use super::states::Layers;
use crate::dram::Burst;
use crate::functional::dma::{LoadRow, LoadRows};
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
#[derive(Debug, Clone, Copy)]
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
    rows: LoadRows,
    /// The next row.
    next: Option<Result<LoadRow, TrapCause>>,
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
    /// Whether bursts are written in one step where possible.
    pub(super) passes: bool,
    chunks: [u64; 7],
    entries: [u64; 7],
    started: u32,
    walk: Option<Walk>,
    /// The cycle in which the last instruction's walk ended.
    walked: Time,
    /// Instructions whose rows are not all written, in order. The rows being written belong to the first.
    contexts: Ring<Context>,
    context_places: Places,
    row_places: Places,
    rows: Ring<RowInFlight>,
    splitter: Splitter,
    outstanding: Places,
    places: Slots,
    words: Words,
    flying: Ring<Flying>,
    data: Option<Data>,
    /// The last cycle of the row written last, and the next cycle of the current row.
    finished: Time,
    clock: Time,
    /// Start cycles of the instructions that have not retired.
    unretired: Ring<Time>,
    retired: Ring<Retired>,
    /// Accesses to memories with shared ports, if they are recorded.
    uses: Option<Vec<(Mem, Use)>>,
    fault: Option<Fault>,
    /// Whether a beat with an error stopped all writing.
    broken: bool,
    /// Whether something changed that the start of the next instruction may have waited for.
    pub(super) freed: bool,
    pub(super) states: Layers<{ layer::COUNT }>,
}

impl Load {
    pub(super) fn new(config: &HwConfig) -> Load {
        Load {
            bus: config.bus_bytes().into(),
            passes: !config.lean,
            chunks: Mem::ALL.map(|m| config.chunk_bytes(m).into()),
            entries: Mem::ALL.map(|m| config.entry_bytes(m).into()),
            started: 0,
            walk: None,
            walked: 0,
            contexts: Ring::default(),
            context_places: Places::new(config.loads_under_way()),
            row_places: Places::new(config.load_rows()),
            rows: Ring::default(),
            splitter: Splitter::new(Cut::new(config), config.load_requests()),
            outstanding: Places::new(config.outstanding),
            places: Slots::new(config.load_buffer_beats),
            words: Words::new(config.front_words()),
            flying: Ring::default(),
            data: None,
            finished: 0,
            clock: 0,
            unretired: Ring::default(),
            retired: Ring::default(),
            uses: None,
            fault: None,
            broken: false,
            freed: false,
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
        if from == to {
            return;
        }
        self.states.add(layer::WRITE, from + 1, to + 1, UnitState::Busy);
        if let Some(uses) = &mut self.uses
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
        Some(self.walked.max(self.context_places.ready()?))
    }

    /// Returns the first cycle in which a lean queue may overwrite the fields of the last instruction at its head, if
    /// known.
    pub(super) fn released(&self) -> Option<Time> {
        let taken = self.context_places.ready()?;
        self.walk.is_none().then_some(taken.max(self.walked + 1))
    }

    /// Starts an instruction.
    pub(super) fn start(&mut self, config: &HwConfig, x: &isa::Load, bases: &[Base], at: Time) {
        self.context_places.take();
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
        let mut rows = LoadRows::new(config, x, bases);
        let (ordinal, row_bytes, next) = (self.started, x.row_bytes.into(), rows.next_row());
        self.walk = Some(Walk { rows, next, stands: at + 1, first: true, ordinal, row_bytes });
        self.started += 1;
    }

    /// Advances as far as times are known.
    pub(super) fn advance(&mut self) {
        loop {
            self.splitter.advance();
            self.write();
            // Only another row makes more possible.
            if !self.hand_on() {
                return;
            }
        }
    }

    /// Hands on the rows of the walk that have a place. Returns whether there were any.
    fn hand_on(&mut self) -> bool {
        let mut any = false;
        while let Some(walk) = &mut self.walk {
            let Some(next) = walk.next else { return any };
            let row = match next {
                Ok(row) => row,
                Err(cause) => {
                    let fault = Fault { at: walk.stands, cause, ordinal: walk.ordinal };
                    self.fault = Some(fault.or_before(self.fault));
                    return any;
                }
            };
            let mut at = walk.stands;
            match self.row_places.ready() {
                Some(t) => at = at.max(t),
                None => return any,
            }
            if row.dram.is_some() {
                match self.splitter.ready() {
                    Some(t) => at = at.max(t),
                    None => return any,
                }
            }
            self.row_places.take();
            let LoadRow { dram, first } = row;
            walk.next = walk.rows.next_row();
            let last = walk.next.is_none();
            let src = dram.unwrap_or(0) & (self.bus - 1);
            let row = RowInFlight { visible: at + 1, first: walk.first, last, pad: dram.is_none(), at: first, src };
            if let Some(addr) = dram {
                self.splitter.push(addr, walk.row_bytes, at + 1, last);
            }
            self.rows.push_back(row);
            (walk.first, walk.stands) = (false, at + 1);
            if last {
                self.walked = at;
                self.walk = None;
                self.freed = true;
            }
            any = true;
        }
        any
    }

    /// Returns the next burst and the first cycle in which it is pending and has room, if known.
    pub(super) fn request(&self) -> Option<(Time, BurstRequest)> {
        let (stands, request) = self.splitter.next()?;
        let room = self.outstanding.ready()?.max(self.places.ready(request.beats as usize)?);
        Some((stands.max(room), request))
    }

    /// Records that the request is granted in cycle `at`, with the beats of `burst`.
    pub(super) fn granted(&mut self, asked: Time, at: Time, request: BurstRequest, burst: Burst) {
        let Some(granted) = self.splitter.granted(request, at) else { return };
        self.states.add(layer::ASK, granted.stood, asked, UnitState::Space);
        self.states.add(layer::ASK, asked, at, UnitState::Request);
        // The next request comes later.
        self.places.forget(at);
        self.outstanding.take();
        self.outstanding.give(burst.beat(u64::from(request.beats) - 1));
        self.places.take(request.beats as usize);
        if self.pass(at, request, burst) {
            return;
        }
        self.flying.push_back(Flying { from: at + 1, words: request.beats, error: burst.error != 0 });
        for run in burst.runs(request.beats) {
            self.words.enter_run(run, &mut self.places);
        }
    }

    /// Returns whether all that happens next is that another burst of the same row is granted.
    #[inline]
    pub(super) fn is_within_row(&self) -> bool {
        self.passes && self.uses.is_none() && self.words.is_empty() && !self.broken && self.splitter.is_within_row()
    }

    /// Writes a whole burst, if its words are whole chunks of the row being written and no others wait. Returns whether
    /// it did.
    fn pass(&mut self, at: Time, request: BurstRequest, burst: Burst) -> bool {
        let (Some(d), Some(c)) = (self.data.as_mut(), self.contexts.front()) else { return false };
        if !(self.passes && burst.error == 0 && self.words.is_empty()) {
            return false;
        }
        let (target, chunk, end) = ((c.mem, c.ordinal), c.chunk, d.end);
        if d.src != 0 || d.dst != 0 || c.chunk != self.bus {
            return self.pass_pieces(at, request, burst);
        }
        if !self.words.can_pass(burst.first, self.clock) {
            return false;
        }
        let mut left = d.left;
        for run in burst.runs(request.beats) {
            let from = self.words.pass(run, self.clock, &mut self.places);
            let first = end - left;
            left -= left.min(u64::from(run.1) * self.bus);
            self.clock = from + Time::from(run.1);
            self.written(target, (from, self.clock), first, end - left, chunk);
        }
        self.states.add(layer::DATA, at + 1, self.clock, UnitState::Data);
        if left == 0 {
            self.end_data();
        } else if let Some(d) = &mut self.data {
            d.left = left;
        }
        true
    }

    /// Writes a whole burst piece by piece, if it is the last of its row. Returns whether it did.
    fn pass_pieces(&mut self, at: Time, request: BurstRequest, burst: Burst) -> bool {
        let (Some(d), Some(c)) = (self.data, self.contexts.front()) else { return false };
        let (chunk, target, unit) = (c.chunk, (c.mem, c.ordinal), self.bus.min(c.chunk));
        if d.src + d.left > u64::from(request.beats) * self.bus {
            return false;
        }
        let (mut left, mut src, mut dst) = (d.left, d.src, d.dst);
        let (mut run, mut run_first) = ((self.clock, self.clock), d.end - left);
        // The cycles from which the oldest word that is not used and the one after it can be used, if they are read.
        let (mut word, mut usable, mut next) = (0, None, None);
        while left > 0 {
            let n = unit.min(chunk - dst).min(left);
            let past = src + n;
            let mut ready = match usable {
                Some(ready) => ready,
                None => self.words.read_one(burst.beat(word), 0, &mut self.places),
            };
            usable = Some(ready);
            if past > self.bus {
                ready = self.words.read_one(burst.beat(word + 1), 1, &mut self.places);
                next = Some(ready);
            }
            let at = self.clock.max(ready);
            if at == run.1 {
                run.1 += 1;
            } else {
                self.written(target, run, run_first, d.end - left, chunk);
                (run, run_first) = ((at, at + 1), d.end - left);
            }
            self.clock = at + 1;
            left -= n;
            if past >= self.bus || left == 0 {
                self.words.use_one(at);
                (word, usable, next) = (word + 1, next, None);
            }
            (src, dst) = (past & (self.bus - 1), (dst + n) & (chunk - 1));
            if left == 0 && usable.is_some() {
                self.words.use_one(at);
            }
        }
        self.written(target, run, run_first, d.end, chunk);
        self.states.add(layer::DATA, at + 1, self.clock, UnitState::Data);
        self.end_data();
        true
    }

    /// Ends the data of a row, whose last byte is written in the cycle before `clock`.
    fn end_data(&mut self) {
        let Some(d) = self.data.take() else { return };
        if let Some(c) = self.contexts.front().filter(|c| c.after > 0) {
            // Padding after the data starts at the next entry, or at the next byte if packed.
            let (at, pads) = (if c.pack { d.end } else { d.end.next_multiple_of(c.entry) }, c.after);
            self.write_pads(at, pads);
        }
        self.end_row(d.last);
    }

    /// Writes the waiting rows, as far as known.
    fn write(&mut self) {
        while !self.broken {
            if self.data.is_some() {
                if self.words.is_empty() || !self.write_data() {
                    return;
                }
                continue;
            }
            let Some(row) = self.rows.pop_front() else { return };
            let Some(c) = self.contexts.front() else { return };
            let taken = row.visible.max(self.finished);
            self.row_places.give(taken);
            if row.first {
                self.context_places.give(taken);
                self.freed = true;
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

    /// Writes data whose beats are known. Returns whether the row ended.
    fn write_data(&mut self) -> bool {
        let (Some(mut d), Some(c)) = (self.data, self.contexts.front()) else { return true };
        let (chunk, target) = (c.chunk, (c.mem, c.ordinal));
        let unit = self.bus.min(chunk);
        let mut run = (self.clock, self.clock);
        let mut run_first = d.end - d.left;
        let ended = loop {
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
        self.data = Some(d);
        if ended {
            self.end_data();
        }
        ended
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
            let room = self.outstanding.ready().zip(self.places.ready(request.beats as usize));
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
