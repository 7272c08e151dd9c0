//! Trials on all cores.

use crate::codegen::accel::Planned;
use crate::codegen::accel::space::Decisions;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

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
pub fn judge_all(
    batch: Vec<Trial>,
    threads: usize,
    judge: &(dyn Fn(&Trial) -> Option<u64> + Sync),
    done: &mut dyn FnMut(&Trial, Option<u64>),
) -> (Vec<Judged>, f64) {
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel();
    let (mut found, mut seconds) = (vec![None; batch.len()], 0.0);
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, batch.len().max(1)) {
            let (send, next, batch) = (send.clone(), &next, &batch);
            scope.spawn(move || {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(trial) = batch.get(i) else { break };
                    let start = Instant::now();
                    let cycles = judge(trial);
                    // The receiver lives until all threads are done.
                    let _ = send.send((i, cycles, start.elapsed().as_secs_f64()));
                }
            });
        }
        drop(send);
        for (i, cycles, took) in receive {
            done(&batch[i], cycles);
            found[i] = cycles;
            seconds += took;
        }
    });
    (batch.into_iter().zip(found).map(|(trial, cycles)| Judged { trial, cycles }).collect(), seconds)
}
