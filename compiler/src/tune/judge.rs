//! Trials on all cores.

use crate::codegen::accel::Planned;
use crate::codegen::accel::space::Decisions;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use tilewright_hw::interrupt::{self, Interrupt, Interrupted};

/// How often the work is checked for being stopped, while all trials run.
const POLL: Duration = Duration::from_millis(50);

/// A plan to try.
pub struct Trial {
    /// Index of the task.
    pub task: usize,
    /// The decisions.
    pub decisions: Decisions,
    /// Their plan.
    pub planned: Planned,
}

/// A trial with the cycles of its window.
pub struct Judged {
    /// The trial.
    pub trial: Trial,
    /// The cycles; `None` if the program cannot be built or run.
    pub cycles: Option<u64>,
}

/// Makes trials on `threads` threads. `done` is called as each of them ends. Returns them in their order, and the
/// seconds of all threads together.
///
/// # Errors
/// [`Interrupted`] if the work is stopped from outside, when the trials that had begun have ended.
pub fn judge_all(
    batch: Vec<Trial>,
    threads: usize,
    judge: &(dyn Fn(&Trial) -> Option<u64> + Sync),
    done: &mut dyn FnMut(&Trial, Option<u64>),
) -> Result<(Vec<Judged>, f64), Interrupted> {
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel();
    let (mut found, mut seconds) = (vec![None; batch.len()], 0.0);
    let interrupt = Interrupt::current();
    let is_stopped = || interrupt.as_ref().is_some_and(Interrupt::is_stopped);
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, batch.len().max(1)) {
            let (send, next, batch, interrupt) = (send.clone(), &next, &batch, interrupt.clone());
            let work = move || {
                while interrupt::check().is_ok() {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(trial) = batch.get(i) else { break };
                    let start = Instant::now();
                    let cycles = judge(trial);
                    // The receiver lives until all threads are done.
                    let _ = send.send((i, cycles, start.elapsed().as_secs_f64()));
                }
            };
            scope.spawn(move || match interrupt {
                Some(interrupt) => interrupt.during(work),
                None => work(),
            });
        }
        drop(send);
        loop {
            match receive.recv_timeout(POLL) {
                // A trial that was stopped has no cycles.
                Ok(_) | Err(RecvTimeoutError::Timeout) if is_stopped() => {}
                Ok((i, cycles, took)) => {
                    done(&batch[i], cycles);
                    found[i] = cycles;
                    seconds += took;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    });
    interrupt::check()?;
    Ok((batch.into_iter().zip(found).map(|(trial, cycles)| Judged { trial, cycles }).collect(), seconds))
}
