//! A process for CPU code, until it ends.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::connection::End;

/// Time that a process has to end by itself after it closed its socket.
const LAST: Duration = Duration::from_millis(200);

/// What to do about a process that ended for no reason of its own.
const LOAD_AGAIN: &str = "load the model again; if it ends again, compile it again or run it without --upload";

/// A process and, once it has ended, why.
pub(super) struct Process {
    child: Mutex<(Child, Option<End>)>,
    model: String,
    cpu_seconds: u64,
}

impl Process {
    pub fn new(child: Child, model: &str, cpu_seconds: u64) -> Process {
        Process { child: Mutex::new((child, None)), model: model.to_string(), cpu_seconds }
    }

    /// Its name in messages.
    pub fn name(&self) -> String {
        format!("the process that runs the CPU code of {}", self.model)
    }

    fn lock(&self) -> MutexGuard<'_, (Child, Option<End>)> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills it; [`Process::end`] reaps it.
    pub fn kill(&self) {
        let _ = self.lock().0.kill();
    }

    /// Waits a little until it ends by itself, then kills it. Returns why it ended.
    pub fn end(&self) -> End {
        let (child, ended) = &mut *self.lock();
        let deadline = Instant::now() + LAST;
        ended
            .get_or_insert_with(|| {
                while Instant::now() < deadline {
                    match child.try_wait() {
                        Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                        Ok(Some(status)) => return why(status, self.cpu_seconds),
                        Err(error) => return End::new(format!("is lost: {error}"), LOAD_AGAIN),
                    }
                }
                let _ = child.kill();
                let _ = child.wait();
                End::new("was killed, because it no longer answered", LOAD_AGAIN)
            })
            .clone()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        self.end();
    }
}

/// Why a process ended, for a person.
fn why(status: ExitStatus, cpu_seconds: u64) -> End {
    use rustix::process::Signal;
    let Some(number) = status.signal() else {
        let code = status.code().unwrap_or_default();
        let remedy = "see whether the server's program is the one that was started";
        return End::new(format!("ended with exit code {code}"), remedy);
    };
    let known = [
        (Signal::SEGV, "SIGSEGV: it accessed memory that it does not have"),
        (Signal::ILL, "SIGILL: it has an instruction that this processor lacks"),
        (Signal::BUS, "SIGBUS: it accessed memory that it does not have"),
        (Signal::FPE, "SIGFPE: it divided by zero"),
        (Signal::ABORT, "SIGABRT: it gave up, perhaps because it had too little memory"),
        (Signal::KILL, "SIGKILL"),
    ];
    if number == Signal::XCPU.as_raw() {
        let reason = format!("took more than its {cpu_seconds} s of CPU time");
        return End::new(reason, "raise --native-seconds of the server");
    }
    let text = known.iter().find(|(signal, _)| signal.as_raw() == number).map_or("", |(_, text)| text);
    match text {
        "" => End::new(format!("died of signal {number}"), LOAD_AGAIN),
        text => End::new(format!("died of signal {number} ({text})"), LOAD_AGAIN),
    }
}
