//! Several frames at once: while one frame is on the accelerator, the host computes its part of others.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tilewright_hw::interrupt::{Interrupt, Interrupted};

use super::{Model, RunReport, Session, SessionError};
use crate::artifact::Larger;
use crate::tensor::{Tensor, refs};

/// Interval between two checks whether the work is stopped.
const POLL: Duration = Duration::from_millis(50);

/// Interval between two looks whether there is room for a frame.
const PAUSE: Duration = Duration::from_micros(200);

type Outcome = Result<(Vec<Tensor>, RunReport), SessionError>;

/// A frame that waits for its turn.
struct Job {
    inputs: Vec<Tensor>,
    done: SyncSender<Outcome>,
    /// The work of the caller who submitted it, which stops the frame, too.
    work: Option<Interrupt>,
}

/// A model that computes several frames at once. Frames that were submitted are finished even if the caller drops this.
pub struct Frames {
    model: Arc<Model>,
    jobs: Option<SyncSender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

/// A frame that was submitted.
#[derive(Debug)]
pub struct Pending {
    outcome: Receiver<Outcome>,
    /// If its inputs were padded, what is left of the outputs.
    larger: Option<Larger>,
}

impl Pending {
    /// Waits until the frame is finished, and returns what [`Session::run`] returns.
    ///
    /// # Errors
    /// As [`Session::run`], and [`SessionError::Panicked`].
    pub fn wait(self) -> Outcome {
        self.wait_once()?
    }

    /// Like [`Pending::wait`], but returns [`Interrupted`] if the caller's work is stopped; the frame keeps running and
    /// can be waited for again.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub(crate) fn wait_once(&self) -> Result<Outcome, Interrupted> {
        let outcome = loop {
            // Without a work that can be stopped, nothing is polled for.
            let Some(interrupt) = Interrupt::current() else { break self.outcome.recv().ok() };
            match self.outcome.recv_timeout(POLL) {
                Ok(outcome) => break Some(outcome),
                Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) if interrupt.is_stopped() => return Err(Interrupted),
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        let cut = |(outputs, report)| match &self.larger {
            Some(larger) => (larger.cut(outputs), report),
            None => (outputs, report),
        };
        Ok(outcome.unwrap_or(Err(SessionError::Panicked)).map(cut))
    }

    /// The same frame, whose inputs were padded.
    pub(super) fn keeping(self, larger: Larger) -> Pending {
        Pending { larger: Some(larger), ..self }
    }
}

impl Frames {
    /// At most `most` frames of a session's model at once, each with memory of its own for the values. Two are enough to
    /// keep an accelerator and a host busy. The session itself stays as it is.
    ///
    /// # Errors
    /// As [`Session::for_another_frame`], and [`SessionError::Threads`].
    pub fn new(session: &Session, most: NonZeroUsize) -> Result<Frames, SessionError> {
        let (jobs, waiting) = sync_channel::<Job>(most.get());
        let waiting = Arc::new(Mutex::new(waiting));
        let mut frames =
            Frames { model: session.model.clone(), jobs: Some(jobs), threads: Vec::with_capacity(most.get()) };
        for number in 0..most.get() {
            let (waiting, session) = (waiting.clone(), session.for_another_frame()?);
            let builder = thread::Builder::new().name(format!("tilewright-frame-{number}"));
            let thread = builder.spawn(move || serve(session, &waiting)).map_err(SessionError::Threads)?;
            frames.threads.push(thread);
        }
        Ok(frames)
    }

    /// Submits a frame. It begins when a frame before it is finished; while as many frames wait as run, the caller waits.
    /// The frame is part of the work that this thread does ([`Interrupt::current`]), also after this returns.
    ///
    /// # Errors
    /// The input variants of [`SessionError`], and [`SessionError::Interrupted`] if the work is stopped while the caller
    /// waits.
    pub fn submit(&self, inputs: Vec<Tensor>) -> Result<Pending, SessionError> {
        self.model.check_inputs(&refs(&inputs))?;
        let (done, pending) = sync_channel(1);
        let jobs = self.jobs.as_ref().ok_or(SessionError::Panicked)?;
        let mut job = Job { inputs, done, work: Interrupt::current() };
        while let Some(interrupt) = Interrupt::current() {
            job = match jobs.try_send(job) {
                Ok(()) => return Ok(Pending { outcome: pending, larger: None }),
                Err(TrySendError::Disconnected(_)) => return Err(SessionError::Panicked),
                Err(TrySendError::Full(_)) if interrupt.is_stopped() => return Err(Interrupted.into()),
                Err(TrySendError::Full(job)) => job,
            };
            thread::sleep(PAUSE);
        }
        match jobs.send(job) {
            Ok(()) => Ok(Pending { outcome: pending, larger: None }),
            Err(_) => Err(SessionError::Panicked),
        }
    }
}

/// Main loop of a thread.
fn serve(mut session: Session, waiting: &Mutex<Receiver<Job>>) {
    loop {
        let job = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { inputs, done, work }) = job else { break };
        let mut run = || match &work {
            Some(work) => work.during(|| session.run(&inputs)),
            None => session.run(&inputs),
        };
        // What a panic leaves in a session's memory is written before it is read.
        let outcome = catch_unwind(AssertUnwindSafe(&mut run));
        // Who is told of the frame's end finds its work ended.
        drop(work);
        // Nobody waits if the caller dropped the frame.
        let _ = done.send(outcome.unwrap_or(Err(SessionError::Panicked)));
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A thread's panics are caught.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::time::Duration;

    use super::*;
    use crate::session::DynamicSession;
    use crate::session::tests::{artifact, panicking_at_13, with_hook, x};

    /// Each step of a frame waits until a step of another frame has begun too, so this ends only if frames overlap.
    #[test]
    fn frames_run_at_the_same_time_and_keep_their_order() {
        let both = Barrier::new(2);
        let registry = with_hook(move |_| {
            both.wait();
            Ok(())
        });
        let session = Session::new(artifact(), &registry, None).unwrap();
        let mut session = DynamicSession::from(session);
        let pending: Vec<Pending> = (0..8).map(|i| session.submit(vec![x(&[i, i, i])]).unwrap()).collect();
        for (i, pending) in (0..).zip(pending) {
            let (outputs, _) = pending.wait().unwrap();
            assert_eq!(outputs, [x(&[2 * i + 2, 2 * i + 4, 2 * i + 6]), x(&[i + 1, i + 2, i + 3])]);
        }
        assert_eq!(session.specialized(), 1);
    }

    #[test]
    fn a_frame_that_fails_leaves_the_others_alone() {
        let mut session = DynamicSession::from(Session::new(artifact(), &panicking_at_13(), None).unwrap());
        let mut submit = |i| session.submit(vec![x(&[i, 0, 0])]);
        let pending = [1, 13, 127, 2].map(|i| submit(i).unwrap());
        let done =
            pending.map(|pending| pending.wait().map(|(outputs, _)| outputs[1].bytes[0]).map_err(|e| e.to_string()));
        let [first, panicked, failed, last] = done;
        assert_eq!((first, last), (Ok(2), Ok(3)));
        assert!(panicked.unwrap_err().contains("panicked"));
        assert_eq!(failed, Err("step add3: add: the sum overflows".into()));
        let wrong = session.submit(vec![]).err().unwrap().to_string();
        assert_eq!(wrong, "0 inputs given, but the model has 1: x");
    }

    #[test]
    fn frames_stop_with_the_work_that_submitted_them() {
        let registry = with_hook(|first| {
            if first != 1 {
                return Ok(());
            }
            loop {
                tilewright_hw::interrupt::check()?;
                thread::sleep(Duration::from_millis(1));
            }
        });
        let mut session = DynamicSession::from(Session::new(artifact(), &registry, None).unwrap());
        let work = Interrupt::alone();
        let endless = work.during(|| session.submit(vec![x(&[1, 1, 1])])).unwrap();
        let other = session.submit(vec![x(&[2, 2, 2])]).unwrap();
        assert!(work.is_shared());
        work.stop();
        let stopped = endless.wait().unwrap_err().to_string();
        assert!(stopped.contains("the work was interrupted"), "{stopped}");
        assert!(!work.is_shared(), "the frame no longer goes on");
        assert_eq!(other.wait().unwrap().0[1], x(&[3, 4, 5]));
    }

    #[test]
    fn submitted_frames_are_finished_when_the_session_is_dropped() {
        let registry = with_hook(|_| {
            thread::sleep(Duration::from_millis(5));
            Ok(())
        });
        let mut session = DynamicSession::from(Session::new(artifact(), &registry, None).unwrap());
        let pending = session.submit(vec![x(&[1, 1, 1])]).unwrap();
        drop(session);
        assert_eq!(pending.wait().unwrap().0[1], x(&[2, 3, 4]));
    }
}
