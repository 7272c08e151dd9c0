//! Rows split into bursts, as `tw_bursts` does it.

use super::slots::{Slots, Time};
use std::collections::VecDeque;
use tilewright_hw::HwConfig;
use tilewright_hw::config::PAGE_BYTES;

const PAGE: u64 = PAGE_BYTES as u64;

/// A burst to be requested: its first byte, at a multiple of the beat's bytes, and its beats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) addr: u64,
    pub(super) beats: u32,
}

/// Bytes in a row of device memory that are not requested yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    at: u64,
    end: u64,
    /// The cycle from which the next request stands.
    pub(super) stands: Time,
}

/// How rows are cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub(super) beat_bytes: u64,
    /// Beats of the longest burst.
    pub(super) longest: u32,
}

impl Cut {
    /// As load and store cut.
    pub(super) fn new(config: &HwConfig) -> Cut {
        Cut { beat_bytes: config.bus_bytes().into(), longest: config.max_burst_beats }
    }
}

impl Row {
    pub(super) fn new(addr: u64, bytes: u64, stands: Time) -> Row {
        Row { at: addr, end: addr + bytes, stands }
    }

    /// The first byte that is not requested yet.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.end
    }

    /// The next burst: at most the longest, none across a page.
    #[inline]
    pub(super) fn next(&self, cut: Cut) -> Request {
        let addr = self.at & !(cut.beat_bytes - 1);
        let end = self.end.min((addr | (PAGE - 1)) + 1);
        let beats = (end - addr + cut.beat_bytes - 1) >> cut.beat_bytes.trailing_zeros();
        Request { addr, beats: beats.min(cut.longest.into()) as u32 }
    }

    /// The next burst is granted in cycle `at`. The bytes of the row in it.
    #[inline]
    pub(super) fn granted(&mut self, request: Request, cut: Cut, at: Time) -> u64 {
        let end = self.end.min(request.addr + u64::from(request.beats) * cut.beat_bytes);
        let bytes = end - self.at;
        (self.at, self.stands) = (end, at + 1);
        bytes
    }
}

/// The rows of a unit's instructions, one after the other.
pub(super) struct Splitter {
    cut: Cut,
    /// Rows that wait, each with whether its instruction ends with it.
    rows: VecDeque<(Row, bool)>,
    places: Slots,
    row: Option<(Row, bool)>,
    /// When the last burst of the row before was granted.
    ended: Time,
}

/// What a grant requested.
#[derive(Debug, Clone, Copy)]
pub(super) struct Granted {
    /// The first cycle in which the request could stand.
    pub(super) stood: Time,
    /// Bytes of the row.
    pub(super) bytes: u64,
    /// It is the last burst of an instruction.
    pub(super) last: bool,
}

impl Splitter {
    /// With places for so many rows that wait.
    pub(super) fn new(cut: Cut, places: u32) -> Splitter {
        Splitter { cut, rows: VecDeque::new(), places: Slots::new(places), row: None, ended: 0 }
    }

    /// The first cycle in which a row may be handed over, where it is known.
    #[inline]
    pub(super) fn ready(&self) -> Option<Time> {
        self.places.ready(1)
    }

    /// A row is handed over and stands from cycle `visible` on.
    pub(super) fn push(&mut self, addr: u64, bytes: u64, visible: Time, last: bool) {
        self.places.take(1);
        self.rows.push_back((Row::new(addr, bytes, visible), last));
    }

    /// Takes the next row. Whether there was one.
    #[inline]
    pub(super) fn advance(&mut self) -> bool {
        if self.row.is_some() {
            return false;
        }
        let Some((mut row, last)) = self.rows.pop_front() else { return false };
        let at = row.stands.max(self.ended);
        self.places.give(at);
        row.stands = at + 1;
        self.row = Some((row, last));
        true
    }

    /// The next burst, and the first cycle in which it can be requested.
    #[inline]
    pub(super) fn next(&self) -> Option<(Time, Request)> {
        self.row.as_ref().map(|(row, _)| (row.stands, row.next(self.cut)))
    }

    /// The next burst is granted in cycle `at`.
    pub(super) fn granted(&mut self, request: Request, at: Time) -> Option<Granted> {
        let (row, last) = self.row.as_mut()?;
        let stood = row.stands;
        let bytes = row.granted(request, self.cut, at);
        let ends = row.is_empty();
        let last = *last && ends;
        if ends {
            self.row = None;
            self.ended = at;
        }
        Some(Granted { stood, bytes, last })
    }
}
