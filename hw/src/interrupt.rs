//! Work that can be stopped from outside, for example by Ctrl-C in Python.
//!
//! Whoever starts long work runs it in [`Interrupt::during`]. The loops of the work call [`check`], which asks the poll
//! function from time to time. Threads that do parts of the work enter it by [`Interrupt::current`].

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ThreadId;
use std::time::Instant;

/// The least milliseconds from one call of the poll function to the next.
const POLL_MS: u64 = 50;

/// Work was stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the work was interrupted")]
pub struct Interrupted;

/// Stops the work that runs in it. Copies refer to the same work.
#[derive(Clone)]
pub struct Interrupt(Arc<Shared>);

struct Shared {
    stopped: AtomicBool,
    source: Source,
}

/// Who else stops the work.
enum Source {
    /// A function that is asked.
    Poll {
        poll: fn() -> bool,
        /// The only thread that polls.
        thread: ThreadId,
        begun: Instant,
        /// Milliseconds after `begun`.
        next_poll: AtomicU64,
        /// The work that this is a part of, if that can be stopped.
        whole: Option<Interrupt>,
    },
    /// The work that this is a part of, if that can be stopped.
    Whole(Option<Interrupt>),
}

thread_local! {
    static CURRENT: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
}

/// Puts back what was current before.
struct Restore(Option<Interrupt>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.with(|current| *current.borrow_mut() = self.0.take());
    }
}

impl Interrupt {
    /// Work that stops when `poll` returns true, or with the work that this thread does now. Only this thread calls
    /// `poll`, while it does the work.
    pub fn new(poll: fn() -> bool) -> Interrupt {
        let thread = std::thread::current().id();
        let (begun, next_poll, whole) = (Instant::now(), AtomicU64::new(POLL_MS), Interrupt::current());
        Interrupt::from(Source::Poll { poll, thread, begun, next_poll, whole })
    }

    /// A part of the work that this thread does: it stops with all of that work, and [`stop`](Interrupt::stop) stops it
    /// alone. Outside of such work, it is work of its own.
    pub fn part() -> Interrupt {
        Interrupt::from(Source::Whole(Interrupt::current()))
    }

    /// Work that only [`stop`](Interrupt::stop) stops.
    pub fn alone() -> Interrupt {
        Interrupt::from(Source::Whole(None))
    }

    fn from(source: Source) -> Interrupt {
        Interrupt(Arc::new(Shared { stopped: AtomicBool::new(false), source }))
    }

    /// The work that this thread does, if it can be stopped.
    pub fn current() -> Option<Interrupt> {
        CURRENT.with(|current| current.borrow().clone())
    }

    /// Does work that this can stop.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = CURRENT.with(|current| current.borrow_mut().replace(self.clone()));
        let _restore = Restore(before);
        work()
    }

    /// Stops the work at its next check.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether there are copies of this, or parts of it: threads that still do some of the work have them.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Whether the work is to stop. On the thread that made this, asks the poll function if its last answer is old.
    pub fn is_stopped(&self) -> bool {
        let Shared { stopped, source } = &*self.0;
        if stopped.load(Ordering::Relaxed) {
            return true;
        }
        let (Source::Poll { whole, .. } | Source::Whole(whole)) = source;
        if whole.as_ref().is_some_and(Interrupt::is_stopped) {
            return true;
        }
        let Source::Poll { poll, thread, begun, next_poll, .. } = source else { return false };
        let now = begun.elapsed().as_millis() as u64;
        if now < next_poll.load(Ordering::Relaxed) || *thread != std::thread::current().id() {
            return false;
        }
        if poll() {
            self.stop();
        }
        next_poll.store(begun.elapsed().as_millis() as u64 + POLL_MS, Ordering::Relaxed);
        stopped.load(Ordering::Relaxed)
    }
}

/// Fails if the work that this thread does is to stop. Long loops call it: it takes some ten nanoseconds, unless it polls.
///
/// # Errors
/// [`Interrupted`].
pub fn check() -> Result<(), Interrupted> {
    match Interrupt::current() {
        Some(interrupt) if interrupt.is_stopped() => Err(Interrupted),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn work_stops_in_its_thread_and_in_those_that_enter_it() {
        assert_eq!(check(), Ok(()));
        let never = Interrupt::alone();
        never.during(|| {
            assert_eq!(check(), Ok(()));
            let inner = Interrupt::new(|| true);
            let begun = Instant::now();
            inner.during(|| {
                while check().is_ok() {
                    assert!(begun.elapsed() < Duration::from_secs(10), "nothing polls");
                }
            });
            assert_eq!(check(), Ok(()), "the outer work goes on");
            let work = Interrupt::current().expect("it is there");
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    assert_eq!(check(), Ok(()));
                    work.during(|| work.stop());
                });
            });
            assert_eq!(check(), Err(Interrupted));
        });
        assert_eq!(check(), Ok(()));
    }

    #[test]
    fn a_part_stops_by_itself_and_with_the_whole() {
        assert!(!Interrupt::part().is_stopped());
        let whole = Interrupt::alone();
        whole.during(|| {
            let (first, second) = (Interrupt::part(), Interrupt::part());
            first.stop();
            assert_eq!((first.during(check), second.during(check), check()), (Err(Interrupted), Ok(()), Ok(())));
            whole.stop();
            assert_eq!(second.during(check), Err(Interrupted));
        });
    }

    #[test]
    fn work_with_a_poll_function_stops_with_the_whole() {
        let whole = Interrupt::alone();
        let inner = whole.during(|| Interrupt::new(|| false));
        assert_eq!(inner.during(check), Ok(()));
        whole.stop();
        assert_eq!(inner.during(check), Err(Interrupted));
        assert_eq!(Interrupt::new(|| false).during(check), Ok(()));
    }

    #[test]
    fn only_the_thread_of_the_work_polls() {
        let interrupt = Interrupt::new(|| true);
        std::thread::sleep(Duration::from_millis(2 * POLL_MS));
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(!interrupt.is_stopped()));
        });
        assert!(interrupt.is_stopped());
    }
}
