//! The store unit: walks rows, reads chunks, moves them into beats, and requests bursts once their beats are buffered.

use super::bursts::{BurstRequest, Cut, Splitter};
use super::engine::{Fault, Retired};
use super::ports::{AccessPattern, Bytes, Use};
use super::slots::{Slots, Time, Words};
use super::states::Layers;
use crate::dram::Burst;
use crate::functional::Stop;
use crate::functional::dma::StoreRows;
use std::collections::VecDeque;
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
    rows: std::iter::Peekable<StoreRows>,
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
    chunks: [u64; 7],
    started: u32,
    retired: u32,
    walk: Option<Walk>,
    walked: Time,
    under_way: Slots,
    row_places: Slots,
    rows: VecDeque<RowInFlight>,
    splitter: Splitter,
    /// The row whose chunks are being read; the rows that are read at least in part but not moved; the row being moved.
    reading: Option<RowInFlight>,
    read: VecDeque<RowInFlight>,
    row: Option<RowInFlight>,
    words: Words,
    /// Cycles of chunk reads that are not recorded in `uses` yet. Only room in the registers delays reads.
    reads: Slots,
    /// Reads of memories with shared ports, if they are recorded.
    uses: Option<Vec<(Mem, Use)>>,
    moved: Time,
    places: Slots,
    /// The cycles in which the beats that wait for their request entered the buffer.
    beats: VecDeque<Time>,
    outstanding: Slots,
    /// Start cycles of the instructions that have not retired.
    unretired: VecDeque<Time>,
    fault: Option<Fault>,
    /// Bytes of all bursts granted so far.
    pub(super) written: u64,
    pub(super) states: Layers<{ layer::COUNT }>,
}

impl Store {
    pub(super) fn new(config: &HwConfig) -> Store {
        Store {
            bus: config.bus_bytes().into(),
            chunks: Mem::ALL.map(|m| config.chunk_bytes(m).into()),
            started: 0,
            retired: 0,
            walk: None,
            walked: 0,
            under_way: Slots::new(config.stores_under_way()),
            row_places: Slots::new(config.store_reads()),
            rows: VecDeque::new(),
            splitter: Splitter::new(Cut::new(config), config.store_rows()),
            reading: None,
            read: VecDeque::new(),
            row: None,
            words: Words::new(config.front_words()),
            reads: Slots::endless(),
            uses: None,
            moved: 0,
            places: Slots::new(config.store_buffer_beats),
            beats: VecDeque::new(),
            outstanding: Slots::new(config.outstanding),
            unretired: VecDeque::new(),
            fault: None,
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
        Some(self.walked.max(self.under_way.ready(1)?))
    }

    /// Returns the first cycle in which a lean queue may overwrite the fields of the last instruction at its head, if
    /// known.
    pub(super) fn released(&self) -> Option<Time> {
        self.walk.is_none().then_some(self.walked + 1)
    }

    /// Starts an instruction.
    pub(super) fn start(&mut self, config: &HwConfig, x: &isa::Store, bases: &[Base], at: Time) {
        self.under_way.take(1);
        self.started += 1;
        self.unretired.push_back(at);
        let rows = StoreRows::new(config, x, bases).peekable();
        let chunk = self.chunks[x.mem as usize];
        let (ordinal, mem, bytes) = (self.started - 1, x.mem, x.row_bytes.into());
        self.walk = Some(Walk { rows, stands: at + 1, start: at, ordinal, mem, chunk, bytes });
    }

    /// Advances as far as times are known. Returns whether anything was done.
    pub(super) fn advance(&mut self) -> bool {
        let mut any = false;
        loop {
            let mut more = self.hand_on();
            more |= self.splitter.advance();
            more |= self.read_rows();
            more |= self.move_rows();
            if !more {
                self.note_reads();
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
            let (addr, bytes) = match next {
                Ok((addr, bytes)) => (*addr, bytes.clone()),
                Err(stop) => {
                    let cause = if let Stop::Trap(cause) = stop { *cause } else { TrapCause::Scratchpad };
                    let found = Fault { at: walk.stands, cause, ordinal: walk.ordinal };
                    self.fault = Some(found.or_before(self.fault));
                    return any;
                }
            };
            let (Some(rows), Some(requests)) = (self.row_places.ready(1), self.splitter.ready()) else {
                return any;
            };
            let at = walk.stands.max(rows).max(requests);
            self.row_places.take(1);
            walk.rows.next();
            let last = walk.rows.peek().is_none();
            let (src, dst) = (bytes.start as u64 % walk.chunk, addr % self.bus);
            self.rows.push_back(RowInFlight {
                visible: at + 1,
                ordinal: walk.ordinal,
                mem: walk.mem,
                chunk: walk.chunk,
                chunk_at: bytes.start as u64 - src,
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
        while let Some(before) = self.words.all_read()
            && let Some(row) = self.rows.pop_front()
        {
            let taken = row.visible.max(before);
            self.row_places.give(taken);
            self.note_reads();
            self.reading = Some(row);
            for _ in 0..(row.src + row.left).div_ceil(row.chunk) {
                self.words.enter(taken, &mut self.reads);
            }
            self.read.push_back(row);
            any = true;
        }
        any
    }

    /// Moves chunks that have a place in the buffer. Returns whether any were moved.
    fn move_rows(&mut self) -> bool {
        let mut any = false;
        loop {
            if self.row.is_none() {
                self.row = self.read.pop_front();
            }
            let Some(row) = &mut self.row else { return any };
            loop {
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
                row.dst = (row.dst + n) % self.bus;
                let words = if row.left == 0 { 1 + u32::from(both) } else { u32::from(past >= row.chunk) };
                row.src = past % row.chunk;
                for _ in 0..words {
                    self.words.use_up(at, &mut self.reads);
                }
                if row.dst == 0 || row.left == 0 {
                    self.places.take(1);
                    self.beats.push_back(at);
                }
                if row.left == 0 {
                    break;
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
        Some((stands.max(self.outstanding.ready(1)?).max(buffered), request))
    }

    /// Records that the request is granted in cycle `at`, with the beats and the response of `burst`. Returns the
    /// instruction that retires with it, if any.
    pub(super) fn granted(&mut self, at: Time, request: BurstRequest, burst: Burst) -> Option<Retired> {
        let response = burst.response;
        let slot = self.outstanding.ready(1)?;
        let granted = self.splitter.granted(request, at)?;
        self.states.add(layer::SLOT, granted.stood, slot, UnitState::Space);
        self.written += granted.bytes;
        self.outstanding.take(1);
        self.outstanding.give(response);
        self.beats.drain(..request.beats as usize);
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
        if let Some(row) = self.row.iter().chain(&self.read).chain(&self.rows).next() {
            self.states.add(layer::READ, row.visible, end, UnitState::Busy);
        }
        if let Some(row) = self.row.as_ref().or(self.read.front()) {
            let n = row.chunk.min(self.bus - row.dst).min(row.left);
            // Everything whose words are known would have moved, so it lacks room in the buffer.
            if let Some(usable) = self.words.usable(usize::from(row.src + n > row.chunk)) {
                self.states.add(layer::FULL, usable.max(self.moved + 1), end, UnitState::Space);
            }
        }
        if let Some((stands, _)) = self.splitter.next() {
            let slot = self.outstanding.ready(1).unwrap_or(end);
            self.states.add(layer::SLOT, stands, slot.min(end), UnitState::Space);
        }
    }

    /// Counts the states that are final given the last start, up to `now` at most.
    pub(super) fn settle(&mut self, last_start: Time, now: Time) {
        self.states.settle((self.unretired.front().copied().unwrap_or(last_start) + 1).min(now));
    }
}
