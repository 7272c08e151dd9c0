//! The store unit: walks rows, reads chunks, moves them into beats, and requests bursts once their beats are buffered.

use super::bursts::{BurstRequest, Cut, Splitter};
use super::engine::{Fault, Retired};
use super::ports::{AccessPattern, Bytes, Use};
use super::ring::Ring;
use super::slots::{Places, Runs, Slots, Time, Words};
use super::states::Layers;
use crate::dram::Burst;
use crate::functional::dma::{StoreRow, StoreRows};
use tilewright_hw::HwConfig;
use tilewright_hw::config::Mem;
use tilewright_hw::device::Base;
use tilewright_hw::isa::{self, Unit};
use tilewright_hw::regs::{TrapCause, UnitState};

/// Cycles from a beat's last move to the first in which it counts for a request.
const BUFFERED: Time = 4;

/// Layers of the unit's states. The first layer with a state wins.
pub(super) mod layer {
    pub const MOVE: usize = 0;
    pub const FULL: usize = 1;
    pub const SLOT: usize = 2;
    pub const READ: usize = 3;
    pub const WALK: usize = 4;
    pub const BUSY: usize = 5;
    pub const WAIT: usize = 6;
    pub const COUNT: usize = 7;
}

struct Walk {
    rows: StoreRows,
    /// The next row.
    next: Option<Result<StoreRow, TrapCause>>,
    stands: Time,
    start: Time,
    ordinal: u32,
    mem: Mem,
    chunk: u64,
    bytes: u64,
}

/// A row on its way from the walk to the moves.
#[derive(Debug, Clone, Copy)]
struct RowInFlight {
    visible: Time,
    ordinal: u32,
    mem: Mem,
    chunk: u64,
    /// The first byte of the next chunk to read.
    chunk_at: u64,
    src: u64,
    dst: u64,
    left: u64,
}

pub(super) struct Store {
    bus: u64,
    /// Whether chunks are moved many at a time where possible.
    pub(super) passes: bool,
    chunks: [u64; 7],
    started: u32,
    retired: u32,
    walk: Option<Walk>,
    walked: Time,
    under_way: Places,
    row_places: Places,
    rows: Ring<RowInFlight>,
    splitter: Splitter,
    /// The row whose chunks are being read; the rows that are read at least in part but not moved; the row being moved.
    reading: Option<RowInFlight>,
    read: Ring<RowInFlight>,
    row: Option<RowInFlight>,
    words: Words,
    /// Chunks of the row read last that are not among the words yet, and the cycle in which that row was taken.
    rest: (Time, u32),
    /// Cycles of chunk reads that are not recorded in `uses` yet. Only room in the registers delays reads.
    reads: Slots,
    /// Reads of memories with shared ports, if they are recorded.
    uses: Option<Vec<(Mem, Use)>>,
    moved: Time,
    places: Slots,
    /// The cycles in which the beats that wait for their request entered the buffer.
    beats: Runs,
    outstanding: Places,
    /// Start cycles of the instructions that have not retired.
    unretired: Ring<Time>,
    fault: Option<Fault>,
    /// Whether something changed that the start of the next instruction may have waited for.
    pub(super) freed: bool,
    /// Bytes of all bursts granted so far.
    pub(super) written: u64,
    pub(super) states: Layers<{ layer::COUNT }>,
}

impl Store {
    pub(super) fn new(config: &HwConfig) -> Store {
        Store {
            bus: config.bus_bytes().into(),
            passes: !config.lean,
            chunks: Mem::ALL.map(|m| config.chunk_bytes(m).into()),
            started: 0,
            retired: 0,
            walk: None,
            walked: 0,
            under_way: Places::new(config.stores_under_way()),
            row_places: Places::new(config.store_reads()),
            rows: Ring::default(),
            splitter: Splitter::new(Cut::new(config), config.store_rows()),
            reading: None,
            read: Ring::default(),
            row: None,
            words: Words::new(config.front_words()),
            rest: (0, 0),
            reads: Slots::endless(),
            uses: None,
            moved: 0,
            places: Slots::new(config.store_buffer_beats),
            beats: Runs::default(),
            outstanding: Places::new(config.outstanding),
            unretired: Ring::default(),
            fault: None,
            freed: false,
            written: 0,
            states: Layers::new(),
        }
    }

    /// Turns on the recording of accesses to memories with shared ports.
    pub(super) fn keep_uses(&mut self) {
        self.uses = Some(Vec::new());
        self.reads = Slots::new(0);
    }

    /// Swaps the new reads with an empty list.
    pub(super) fn swap_uses(&mut self, empty: &mut Vec<(Mem, Use)>) {
        if let Some(uses) = &mut self.uses {
            std::mem::swap(uses, empty);
        }
    }

    /// Returns the first cycle in which the next instruction can start, if known.
    pub(super) fn free(&self) -> Option<Time> {
        if self.walk.is_some() {
            return None;
        }
        Some(self.walked.max(self.under_way.ready()?))
    }

    /// Returns the first cycle in which a lean queue may overwrite the fields of the last instruction at its head, if
    /// known.
    pub(super) fn released(&self) -> Option<Time> {
        self.walk.is_none().then_some(self.walked + 1)
    }

    /// Starts an instruction.
    pub(super) fn start(&mut self, config: &HwConfig, x: &isa::Store, bases: &[Base], at: Time) {
        self.under_way.take();
        self.started += 1;
        self.unretired.push_back(at);
        let mut rows = StoreRows::new(config, x, bases);
        let next = rows.next_row();
        let chunk = self.chunks[x.mem as usize];
        let (ordinal, mem, bytes) = (self.started - 1, x.mem, x.row_bytes.into());
        self.walk = Some(Walk { rows, next, stands: at + 1, start: at, ordinal, mem, chunk, bytes });
    }

    /// Advances as far as times are known.
    pub(super) fn advance(&mut self) {
        loop {
            self.splitter.advance();
            // A row is read when the chunks of the previous one are, and those are when they are moved.
            let mut more = self.read_rows();
            more |= self.move_rows();
            more |= self.hand_on();
            if !more {
                self.note_reads();
                return;
            }
        }
    }

    /// Hands on the rows of the walk that have a place. Returns whether there were any.
    fn hand_on(&mut self) -> bool {
        let mut any = false;
        while let Some(walk) = &mut self.walk {
            let Some(next) = walk.next else { return any };
            let StoreRow { dram: addr, first } = match next {
                Ok(row) => row,
                Err(cause) => {
                    let found = Fault { at: walk.stands, cause, ordinal: walk.ordinal };
                    self.fault = Some(found.or_before(self.fault));
                    return any;
                }
            };
            let (Some(rows), Some(requests)) = (self.row_places.ready(), self.splitter.ready()) else {
                return any;
            };
            let at = walk.stands.max(rows).max(requests);
            self.row_places.take();
            walk.next = walk.rows.next_row();
            let last = walk.next.is_none();
            let (src, dst) = (first & (walk.chunk - 1), addr & (self.bus - 1));
            self.rows.push_back(RowInFlight {
                visible: at + 1,
                ordinal: walk.ordinal,
                mem: walk.mem,
                chunk: walk.chunk,
                chunk_at: first - src,
                src,
                dst,
                left: walk.bytes,
            });
            self.splitter.push(addr, walk.bytes, at + 1, last);
            walk.stands = at + 1;
            if last {
                self.states.add(layer::WALK, walk.start + 1, at + 1, UnitState::Busy);
                self.walked = at;
                self.walk = None;
                self.freed = true;
            }
            any = true;
        }
        any
    }

    /// Records the reads since the last call. They all belong to the row being read.
    fn note_reads(&mut self) {
        let (Some(uses), Some(row)) = (&mut self.uses, &mut self.reading) else { return };
        for from in self.reads.drain() {
            let (first, end, piece) = (row.chunk_at, row.chunk_at + row.chunk, row.chunk);
            row.chunk_at = end;
            let pattern = AccessPattern::Bytes(Bytes { first, end, piece });
            let used = Use { unit: Unit::Store, ordinal: row.ordinal, from, to: from + 1, pattern };
            uses.push((row.mem, used));
        }
    }

    /// Reads rows one after the other, as fast as the registers take their chunks. Returns whether any were read.
    fn read_rows(&mut self) -> bool {
        let mut any = false;
        while self.rest.1 == 0
            && let Some(before) = self.words.all_read()
            && let Some(row) = self.rows.pop_front()
        {
            let taken = row.visible.max(before);
            self.row_places.give(taken);
            self.note_reads();
            self.reading = Some(row);
            self.rest = (taken, ((row.src + row.left + row.chunk - 1) >> row.chunk.trailing_zeros()) as u32);
            let alike = row.chunk == self.bus && row.src == row.dst;
            if !(self.passes && alike) {
                self.enter_rest();
            } else if !self.words.is_empty() {
                self.read_last();
            }
            self.read.push_back(row);
            any = true;
        }
        any
    }

    /// Puts the rest of a row's chunks among the words.
    fn enter_rest(&mut self) {
        for _ in 0..self.rest.1 {
            self.words.enter(self.rest.0, &mut self.reads);
        }
        self.rest.1 = 0;
    }

    /// Puts the rest of a row's chunks among the words if they are its last: they are read before they have a place in
    /// the buffer, and then the next row is read. Reads that are recorded must not come late either.
    fn read_last(&mut self) {
        if self.rest.1 <= 4 || self.uses.is_some() {
            self.enter_rest();
        }
    }

    /// Moves chunks of the rest, each into a beat of its own, as far as places are known. Returns whether any were
    /// moved.
    fn pass(&mut self) -> bool {
        let Some(row) = &mut self.row else { return false };
        let (taken, before) = self.rest;
        while self.rest.1 > 0
            && let Some((place, free)) = self.places.ready_run()
        {
            let n = self.rest.1.min(free);
            let ready = self.words.usable_after(taken).max(self.moved + 1);
            if !self.words.can_pass(taken, ready.max(place)) {
                self.enter_rest();
                return true;
            }
            let at = self.words.pass((taken, n), ready.max(place), &mut self.reads);
            self.states.add(layer::FULL, ready, at, UnitState::Space);
            self.states.add(layer::MOVE, at, at + Time::from(n), UnitState::Busy);
            self.moved = at + Time::from(n) - 1;
            self.places.take(n as usize);
            self.beats.push((at, n));
            row.left -= row.left.min(u64::from(n) * self.bus - row.dst);
            (row.src, row.dst, self.rest.1) = (0, 0, self.rest.1 - n);
        }
        let any = self.rest.1 < before;
        self.read_last();
        any
    }

    /// Moves chunks that have a place in the buffer. Returns whether any were moved.
    fn move_rows(&mut self) -> bool {
        let mut any = false;
        loop {
            if self.row.is_none() {
                self.row = self.read.pop_front();
            }
            if self.rest.1 > 0 && self.words.is_empty() {
                any |= self.pass();
                if self.rest.1 > 0 {
                    return any;
                }
            }
            let Some(row) = &mut self.row else { return any };
            while row.left > 0 {
                let n = row.chunk.min(self.bus - row.dst).min(row.left);
                let past = row.src + n;
                let both = past > row.chunk;
                let Some(usable) = self.words.usable(usize::from(both)) else { return any };
                let Some(place) = self.places.ready(1) else { return any };
                let ready = usable.max(self.moved + 1);
                let at = ready.max(place);
                self.states.add(layer::FULL, ready, at, UnitState::Space);
                self.states.add(layer::MOVE, at, at + 1, UnitState::Busy);
                any = true;
                self.moved = at;
                row.left -= n;
                row.dst = (row.dst + n) & (self.bus - 1);
                let words = if row.left == 0 { 1 + u32::from(both) } else { u32::from(past >= row.chunk) };
                row.src = past & (row.chunk - 1);
                for _ in 0..words {
                    self.words.use_up(at, &mut self.reads);
                }
                if row.dst == 0 || row.left == 0 {
                    self.places.take(1);
                    self.beats.push((at, 1));
                }
            }
            self.states.add(layer::READ, row.visible, self.moved + 1, UnitState::Busy);
            self.row = None;
            self.note_reads();
        }
    }

    /// Returns the next burst and the first cycle in which it is requested, if known.
    pub(super) fn request(&self) -> Option<(Time, BurstRequest)> {
        let (stands, request) = self.splitter.next()?;
        let buffered = self.beats.get(request.beats as usize - 1)? + BUFFERED;
        Some((stands.max(self.outstanding.ready()?).max(buffered), request))
    }

    /// Records that the request is granted in cycle `at`, with the beats and the response of `burst`. Returns the
    /// instruction that retires with it, if any.
    pub(super) fn granted(&mut self, at: Time, request: BurstRequest, burst: Burst) -> Option<Retired> {
        let response = burst.response;
        let slot = self.outstanding.ready()?;
        let granted = self.splitter.granted(request, at)?;
        self.states.add(layer::SLOT, granted.stood, slot, UnitState::Space);
        self.written += granted.bytes;
        self.outstanding.take();
        self.outstanding.give(response);
        self.beats.drop_first(request.beats as usize);
        for run in burst.runs(request.beats) {
            self.places.give_run(run);
        }
        if burst.error != 0 {
            let found = Fault { at: response, cause: TrapCause::Bus, ordinal: self.retired };
            self.fault = Some(found.or_before(self.fault));
            return None;
        }
        if !granted.last {
            return None;
        }
        let start = self.unretired.pop_front()?;
        self.states.add(layer::BUSY, start + 1, response + 1, UnitState::Data);
        self.under_way.give(response);
        self.freed = true;
        let ordinal = self.retired;
        self.retired += 1;
        Some(Retired { ordinal, at: response })
    }

    /// Returns the unit's trap, if any.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Records what is going on until the run ends at cycle `end`.
    pub(super) fn cut(&mut self, end: Time) {
        if let Some(start) = self.unretired.front() {
            self.states.add(layer::BUSY, start + 1, end, UnitState::Data);
        }
        if let Some(walk) = &self.walk {
            self.states.add(layer::WALK, walk.start + 1, end, UnitState::Busy);
        }
        if let Some(row) = self.row.iter().chain(self.read.iter()).chain(self.rows.iter()).next() {
            self.states.add(layer::READ, row.visible, end, UnitState::Busy);
        }
        if let Some(row) = self.row.as_ref().or(self.read.front()) {
            let n = row.chunk.min(self.bus - row.dst).min(row.left);
            // Everything whose words are known would have moved, so it lacks room in the buffer.
            let usable = match self.rest {
                (taken, 1..) if self.words.is_empty() => Some(self.words.usable_after(taken)),
                _ => self.words.usable(usize::from(row.src + n > row.chunk)),
            };
            if let Some(usable) = usable {
                self.states.add(layer::FULL, usable.max(self.moved + 1), end, UnitState::Space);
            }
        }
        if let Some((stands, _)) = self.splitter.next() {
            let slot = self.outstanding.ready().unwrap_or(end);
            self.states.add(layer::SLOT, stands, slot.min(end), UnitState::Space);
        }
    }

    /// Counts the states that are final given the last start, up to `now` at most.
    pub(super) fn settle(&mut self, last_start: Time, now: Time) {
        self.states.settle((self.unretired.front().copied().unwrap_or(last_start) + 1).min(now));
    }
}
