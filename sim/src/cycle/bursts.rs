//! Splits rows into bursts, like `tw_bursts` in the RTL.

use super::ring::Ring;
use super::slots::{Places, Time};
use tilewright_hw::HwConfig;
use tilewright_hw::config::PAGE_BYTES;

const PAGE: u64 = PAGE_BYTES as u64;

/// A burst to request: its address, aligned to a beat, and its number of beats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BurstRequest {
    pub(super) addr: u64,
    pub(super) beats: u32,
}

/// The bytes of a row in device memory that are not requested yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingBytes {
    at: u64,
    end: u64,
    /// The first cycle in which the next request is pending.
    pub(super) stands: Time,
}

/// Limits for splitting rows into bursts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    pub(super) beat_bytes: u64,
    /// Most beats in a burst.
    pub(super) longest: u32,
}

impl Cut {
    /// Returns the limits of load and store.
    pub(super) fn new(config: &HwConfig) -> Cut {
        Cut { beat_bytes: config.bus_bytes().into(), longest: config.max_burst_beats }
    }
}

impl PendingBytes {
    pub(super) fn new(addr: u64, bytes: u64, stands: Time) -> PendingBytes {
        PendingBytes { at: addr, end: addr + bytes, stands }
    }

    /// Returns the first byte that is not requested yet.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.end
    }

    /// Returns the next burst. It has at most `longest` beats and does not cross a page.
    #[inline]
    pub(super) fn next(&self, cut: Cut) -> BurstRequest {
        let addr = self.at & !(cut.beat_bytes - 1);
        let end = self.end.min((addr | (PAGE - 1)) + 1);
        let beats = (end - addr + cut.beat_bytes - 1) >> cut.beat_bytes.trailing_zeros();
        BurstRequest { addr, beats: beats.min(cut.longest.into()) as u32 }
    }

    /// Records that the next burst is granted in cycle `at`. Returns the bytes of the row in it.
    #[inline]
    pub(super) fn granted(&mut self, request: BurstRequest, cut: Cut, at: Time) -> u64 {
        let end = self.end.min(request.addr + u64::from(request.beats) * cut.beat_bytes);
        let bytes = end - self.at;
        (self.at, self.stands) = (end, at + 1);
        bytes
    }
}

/// Splits the rows of a unit's instructions, one after the other.
pub(super) struct Splitter {
    cut: Cut,
    /// Waiting rows, each with whether it is the last of its instruction.
    rows: Ring<(PendingBytes, bool)>,
    places: Places,
    row: Option<(PendingBytes, bool)>,
    /// The cycle in which the last burst of the previous row was granted.
    ended: Time,
}

/// The request that a grant serves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Granted {
    /// The first cycle in which the request could be pending.
    pub(super) stood: Time,
    /// Bytes of the row.
    pub(super) bytes: u64,
    /// Whether it is the last burst of an instruction.
    pub(super) last: bool,
}

impl Splitter {
    /// Creates a splitter whose queue holds `places` waiting rows.
    pub(super) fn new(cut: Cut, places: u32) -> Splitter {
        Splitter { cut, rows: Ring::default(), places: Places::new(places), row: None, ended: 0 }
    }

    /// Returns the first cycle in which the queue has room for a row, if known.
    #[inline]
    pub(super) fn ready(&self) -> Option<Time> {
        self.places.ready()
    }

    /// Queues a row that is pending from cycle `visible` on.
    pub(super) fn push(&mut self, addr: u64, bytes: u64, visible: Time, last: bool) {
        self.places.take();
        self.rows.push_back((PendingBytes::new(addr, bytes, visible), last));
    }

    /// Takes the next row from the queue, if the current one is granted.
    #[inline]
    pub(super) fn advance(&mut self) {
        if self.row.is_none()
            && let Some((mut row, last)) = self.rows.pop_front()
        {
            let at = row.stands.max(self.ended);
            self.places.give(at);
            row.stands = at + 1;
            self.row = Some((row, last));
        }
    }

    /// Returns whether a row was taken whose bursts are not all granted.
    #[inline]
    pub(super) fn is_within_row(&self) -> bool {
        self.row.is_some()
    }

    /// Returns the next burst, and the first cycle in which it can be requested.
    #[inline]
    pub(super) fn next(&self) -> Option<(Time, BurstRequest)> {
        self.row.as_ref().map(|(row, _)| (row.stands, row.next(self.cut)))
    }

    /// Records that the next burst is granted in cycle `at`.
    pub(super) fn granted(&mut self, request: BurstRequest, at: Time) -> Option<Granted> {
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
