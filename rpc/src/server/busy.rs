//! What a session does at the moment.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tilewright_hw::interrupt::Interrupt;

/// What a session does: requests of the client and of its processes for CPU code, and what requests leave to other
/// threads, such as frames that were submitted.
pub(crate) struct Busy {
    /// All of it.
    pub(super) work: Interrupt,
    parts: Mutex<Parts>,
}

struct Parts {
    /// What is done, each part since when.
    open: Vec<(Instant, Interrupt)>,
    /// When it was last found that a part had ended.
    ended: Instant,
}

impl Default for Busy {
    fn default() -> Busy {
        Busy { work: Interrupt::alone(), parts: Mutex::new(Parts { open: Vec::new(), ended: Instant::now() }) }
    }
}

impl Busy {
    /// Executes a request, as a part of the session's work.
    pub fn during<T>(&self, request: impl FnOnce() -> T) -> T {
        let part = self.work.during(Interrupt::part);
        self.parts().open.push((Instant::now(), part.clone()));
        part.during(request)
    }

    /// The parts that have not ended.
    fn parts(&self) -> MutexGuard<'_, Parts> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let before = parts.open.len();
        parts.open.retain(|(_, part)| part.is_shared());
        if parts.open.len() < before {
            parts.ended = Instant::now();
        }
        parts
    }

    /// Stops the work of a session that has ended.
    pub fn stop(&self) {
        self.work.stop();
    }

    /// How long the longest part takes so far.
    pub fn time(&self) -> Option<Duration> {
        self.parts().open.iter().map(|(since, _)| since.elapsed()).max()
    }

    /// How long nothing was done, if nothing is.
    pub fn idle(&self) -> Option<Duration> {
        let parts = self.parts();
        parts.open.is_empty().then(|| parts.ended.elapsed())
    }
}
