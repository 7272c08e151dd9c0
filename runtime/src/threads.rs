//! The threads that share the large loops of CPU code.
//!
//! A network's step takes some tens of microseconds, about as long as the system takes to wake a thread. So idle
//! threads poll for the next loop for a while before they sleep, and a caller that starts a loop does not wait for
//! helpers: those that are awake join it, and it ends when all of its iterations are done.

mod gate;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell, UnsafeCell};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use gate::Gate;

/// Polls of an idle thread before it sleeps: about 200 microseconds, which cover the steps between two loops.
const LOOKS: u32 = 1 << 13;

/// A team of threads that includes the caller's. Clones share the same threads, which end with the last clone.
#[derive(Debug, Clone)]
pub struct Threads(Arc<Team>);

#[derive(Debug)]
struct Team {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

/// State that the threads of a team share.
#[derive(Debug)]
struct Shared {
    gate: Gate,
    /// Whether a caller's loop runs or is about to.
    taken: AtomicBool,
    /// For each helper, whether it sleeps or is about to.
    asleep: Vec<AtomicBool>,
    job: UnsafeCell<Job>,
    /// The first iteration of the job that no thread has taken.
    next: CachePadded<AtomicI64>,
}

// SAFETY: only the thread that took the team writes the job, while the gate is closed and nobody is inside; only
// threads inside read it.
unsafe impl Sync for Shared {}
// SAFETY: as above; the job's pointers are used only while its loop runs, and the loop's caller keeps what they point
// to.
unsafe impl Send for Shared {}

/// A value with a cache line of its own.
#[derive(Debug)]
#[repr(align(128))]
struct CachePadded<T>(T);

#[derive(Debug, Clone, Copy)]
struct Job {
    body: extern "C" fn(*mut u8, i64),
    context: *mut u8,
    count: i64,
    /// Iterations that a thread takes at once.
    few: i64,
}

extern "C" fn nothing(_: *mut u8, _: i64) {}

thread_local! {
    static INSTALLED: RefCell<Option<Threads>> = const { RefCell::new(None) };
    /// Whether this thread helps others with their loops.
    static HELPS: Cell<bool> = const { Cell::new(false) };
}

/// Calls `body(context, i)` for each `i` from 0 to `count` on the threads that are installed on the caller's thread,
/// otherwise on those of the process. Returns when all calls have returned. A loop inside a loop runs on the thread
/// that reaches it.
///
/// # Safety
/// `body` can be called with `context` from any thread, several at once, for different `i`.
pub(crate) unsafe fn each(body: extern "C" fn(*mut u8, i64), context: *mut u8, count: i64) {
    if HELPS.get() || count <= 1 {
        (0..count).for_each(|i| body(context, i));
    } else {
        // SAFETY: the caller's promise.
        unsafe { Threads::current().each(body, context, count) };
    }
}

impl Threads {
    /// A team of `count` threads, including the caller's; 0 also means the caller's alone.
    ///
    /// # Errors
    /// The system's, if it provides no more threads.
    pub fn new(count: usize) -> io::Result<Threads> {
        // Threads that have started end with the team if a later one fails.
        let mut team = Team::of_caller(count.saturating_sub(1));
        for own in 1..count {
            let shared = team.shared.clone();
            let builder = thread::Builder::new().name(format!("tilewright-{own}"));
            team.helpers.push(builder.spawn(move || shared.help(own - 1))?);
        }
        Ok(Threads(Arc::new(team)))
    }

    /// Number of threads.
    pub fn count(&self) -> usize {
        self.0.helpers.len() + 1
    }

    /// Runs `f` on the caller's thread; the loops of compiled code that it calls are shared with these threads.
    pub fn install<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Before(Option<Threads>);
        impl Drop for Before {
            fn drop(&mut self) {
                INSTALLED.set(self.0.take());
            }
        }
        let _before = Before(INSTALLED.replace(Some(self.clone())));
        f()
    }

    /// The threads that are installed on this thread; otherwise those of the process, one per processor.
    fn current() -> Threads {
        static ALL: OnceLock<Threads> = OnceLock::new();
        let all = || {
            let count = thread::available_parallelism().map_or(1, usize::from);
            // If no more threads can be started, the caller's does everything.
            Threads::new(count).unwrap_or_else(|_| Threads(Arc::new(Team::of_caller(0))))
        };
        INSTALLED.with_borrow(Option::clone).unwrap_or_else(|| ALL.get_or_init(all).clone())
    }

    /// As [`each`], on these threads. If another caller's loop is running on them, the caller runs its loop alone.
    ///
    /// # Safety
    /// As [`each`].
    unsafe fn each(&self, body: extern "C" fn(*mut u8, i64), context: *mut u8, count: i64) {
        let shared = &*self.0.shared;
        let threads = self.count().min(usize::try_from(count).unwrap_or(0));
        if threads <= 1 || shared.taken.swap(true, Ordering::Acquire) {
            (0..count).for_each(|i| body(context, i));
            return;
        }
        // Small enough that the threads finish together, large enough that neighboring iterations share what they read.
        let few = (count / (threads as i64 * 8)).max(1);
        // SAFETY: this thread took the team, and the one that took it before left with the gate closed and nobody
        // inside.
        unsafe { *shared.job.get() = Job { body, context, count, few } };
        shared.next.0.store(0, Ordering::Relaxed);
        shared.gate.open();
        self.0.wake(threads - 1);
        shared.work();
        shared.gate.close();
        shared.taken.store(false, Ordering::Release);
    }
}

impl Team {
    /// The caller, and room for `helpers` helpers.
    fn of_caller(helpers: usize) -> Team {
        let shared = Shared {
            gate: Gate::default(),
            taken: AtomicBool::new(false),
            asleep: (0..helpers).map(|_| AtomicBool::new(false)).collect(),
            job: UnsafeCell::new(Job { body: nothing, context: std::ptr::null_mut(), count: 0, few: 1 }),
            next: CachePadded(AtomicI64::new(0)),
        };
        Team { shared: Arc::new(shared), helpers: Vec::with_capacity(helpers) }
    }

    /// Wakes the sleeping ones of the first `helpers` helpers.
    fn wake(&self, helpers: usize) {
        // A helper sets its flag before it looks at the gate for the last time; the gate was opened before this.
        fence(Ordering::SeqCst);
        for (asleep, helper) in self.shared.asleep.iter().zip(&self.helpers).take(helpers) {
            if asleep.load(Ordering::Relaxed) && asleep.swap(false, Ordering::Relaxed) {
                helper.thread().unpark();
            }
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.gate.end();
        self.wake(self.helpers.len());
        for helper in self.helpers.drain(..) {
            // A helper calls nothing that unwinds.
            let _ = helper.join();
        }
    }
}

impl Shared {
    /// Main loop of a helper.
    fn help(&self, own: usize) {
        HELPS.set(true);
        let mut last = 0;
        while self.wait(own, last) {
            if let Some(round) = self.gate.enter(last) {
                last = round;
                self.work();
                self.gate.leave();
            }
        }
    }

    /// Waits for a round of the gate other than `last`; returns false if there will be none.
    fn wait(&self, own: usize, last: u32) -> bool {
        let mut looks = 0;
        loop {
            match self.gate.look(last) {
                gate::Sight::Open => return true,
                gate::Sight::Ended => return false,
                gate::Sight::Closed => {}
            }
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
                continue;
            }
            self.asleep[own].store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if matches!(self.gate.look(last), gate::Sight::Closed) {
                thread::park();
            }
            self.asleep[own].store(false, Ordering::Relaxed);
            looks = 0;
        }
    }

    /// Takes iterations until none are left.
    fn work(&self) {
        // SAFETY: this thread took the team or is inside the gate, and nobody writes the job until all have left.
        let Job { body, context, count, few } = unsafe { *self.job.get() };
        loop {
            let first = self.next.0.fetch_add(few, Ordering::Relaxed);
            if first >= count {
                break;
            }
            (first..(first + few).min(count)).for_each(|i| body(context, i));
        }
    }
}
