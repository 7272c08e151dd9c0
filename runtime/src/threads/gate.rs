//! The gate of a loop: open while the loop runs, and left by all threads before it closes.

use std::sync::atomic::{AtomicU64, Ordering};

/// Polls of a waiting thread before it yields the processor.
const LOOKS_BEFORE_YIELDING: u32 = 1 << 10;

/// One word: the number of the round in the upper half, then whether it is open, whether there will be no other, and
/// how many threads are inside.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Gate(AtomicU64);

const ROUND: u32 = 32;
const OPEN: u64 = 1 << 31;
const ENDED: u64 = 1 << 30;
const INSIDE: u64 = ENDED - 1;

/// What a helper sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// A round that this thread has not taken part in.
    Open,
    /// No such round yet.
    Closed,
    /// There will be no more rounds.
    Ended,
}

impl Gate {
    /// Starts the next round. Called by one thread at a time, while the gate is closed.
    pub fn open(&self) {
        let round = (self.0.load(Ordering::Relaxed) >> ROUND) as u32;
        self.0.store(u64::from(round.wrapping_add(1)) << ROUND | OPEN, Ordering::Release);
    }

    /// Admits nobody any more, and waits until all have left.
    pub fn close(&self) {
        let mut looks = 0;
        let mut seen = self.0.fetch_and(!OPEN, Ordering::AcqRel);
        while seen & INSIDE != 0 {
            looks += 1;
            if looks < LOOKS_BEFORE_YIELDING {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
            seen = self.0.load(Ordering::Acquire);
        }
    }

    /// Ends the gate: there will be no other round.
    pub fn end(&self) {
        self.0.fetch_or(ENDED, Ordering::Release);
    }

    /// The gate's state for a thread that took part in round `last`.
    pub fn look(&self, last: u32) -> Sight {
        let seen = self.0.load(Ordering::Relaxed);
        match seen {
            _ if seen & ENDED != 0 => Sight::Ended,
            _ if seen & OPEN != 0 && (seen >> ROUND) as u32 != last => Sight::Open,
            _ => Sight::Closed,
        }
    }

    /// Enters, and returns the round; `None` if the gate is closed or still in round `last`.
    pub fn enter(&self, last: u32) -> Option<u32> {
        let in_it = |seen: u64| (seen & OPEN != 0 && (seen >> ROUND) as u32 != last).then_some(seen + 1);
        let seen = self.0.fetch_update(Ordering::Acquire, Ordering::Relaxed, in_it).ok()?;
        Some((seen >> ROUND) as u32)
    }

    /// Leaves, and publishes what was done inside.
    pub fn leave(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}
