//! Code generation that can be stopped.
//!
//! LLVM cannot be stopped while it optimizes a module. So it works on a thread of its own, which is left behind when the
//! work is stopped: it finishes its current step, then exits, and nobody reads its result. A program whose work can be
//! stopped calls [`finish`] before it exits, since LLVM's globals go then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tilewright_hw::interrupt::{Interrupt, Interrupted};

use crate::EmitError;

/// Interval between two checks whether the work is stopped.
const POLL: Duration = Duration::from_millis(20);

/// Stack of the thread: LLVM recurses over expressions.
const STACK_BYTES: usize = 64 << 20;

/// Threads that were left behind.
static LEFT: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Whether work is still wanted.
#[derive(Clone, Default)]
pub(crate) struct Wanted(Arc<AtomicBool>);

impl Wanted {
    /// Fails once nobody waits for the result.
    pub(crate) fn check(&self) -> Result<(), Interrupted> {
        if self.0.load(Ordering::Relaxed) { Err(Interrupted) } else { Ok(()) }
    }
}

/// Does the work, which asks its argument between its parts. If the caller's work can be stopped, it is done on another
/// thread; if it is stopped, this returns at once.
///
/// # Errors
/// [`EmitError::Interrupted`], or [`EmitError::Llvm`] if the system has no thread for it.
pub(crate) fn aside<T: Send + 'static>(work: impl FnOnce(&Wanted) -> T + Send + 'static) -> Result<T, EmitError> {
    let wanted = Wanted::default();
    let Some(interrupt) = Interrupt::current() else { return Ok(work(&wanted)) };
    let (done, result) = sync_channel(1);
    let unwanted = wanted.clone();
    let builder = thread::Builder::new().name("tilewright-llvm".into()).stack_size(STACK_BYTES);
    let thread = builder.spawn(move || {
        // Nobody reads it if the work was stopped.
        let _ = done.send(work(&wanted));
    });
    let thread = thread.map_err(|error| EmitError::Llvm(format!("the system has no thread for it: {error}")))?;
    loop {
        match result.recv_timeout(POLL) {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Timeout) if interrupt.is_stopped() => break,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("a thread that ends without a result has panicked"),
            },
        }
    }
    unwanted.0.store(true, Ordering::Relaxed);
    leave(thread);
    Err(Interrupted.into())
}

/// Leaves a thread behind.
fn leave(thread: JoinHandle<()>) {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    left.retain(|thread| !thread.is_finished());
    left.push(thread);
}

/// Waits for what LLVM still does for work that was stopped.
pub fn finish() {
    let left = std::mem::take(&mut *LEFT.lock().unwrap_or_else(PoisonError::into_inner));
    for thread in left {
        // Its result does not matter.
        let _ = thread.join();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn work_that_is_stopped_is_left_behind() {
        assert_eq!(aside(|_| 3), Ok(3));
        let never = Interrupt::new(|| false);
        assert_eq!(never.during(|| aside(|wanted| wanted.check().map(|()| 4))), Ok(Ok(4)));
        let begun = Instant::now();
        let (tell, told) = sync_channel(1);
        let soon = Interrupt::new(|| true);
        let result = soon.during(|| {
            aside(move |wanted| {
                while wanted.check().is_ok() {
                    thread::sleep(Duration::from_millis(1));
                }
                tell.send("it ends").expect("somebody listens");
            })
        });
        assert_eq!(result, Err(Interrupted.into()));
        assert_eq!(told.recv_timeout(Duration::from_secs(10)), Ok("it ends"));
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
