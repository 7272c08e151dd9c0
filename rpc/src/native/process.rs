//! A process for CPU code, until it ends.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time that a process has to end by itself after it closed its socket.
const LAST: Duration = Duration::from_millis(200);

/// A process and, once it has ended, why.
pub(super) struct Process {
    child: Mutex<(Child, Option<String>)>,
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

    fn lock(&self) -> MutexGuard<'_, (Child, Option<String>)> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills it; [`Process::end`] reaps it.
    pub fn kill(&self) {
        let _ = self.lock().0.kill();
    }

    /// Waits a little until it ends by itself, then kills it. Returns why it ended.
    pub fn end(&self) -> String {
        let (child, ended) = &mut *self.lock();
        let deadline = Instant::now() + LAST;
        ended
            .get_or_insert_with(|| {
                while Instant::now() < deadline {
                    match child.try_wait() {
                        Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                        Ok(Some(status)) => return why(status, self.cpu_seconds),
                        Err(error) => return format!("is lost: {error}"),
                    }
                }
                let _ = child.kill();
                let _ = child.wait();
                "was killed, because it no longer answered".into()
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
fn why(status: ExitStatus, cpu_seconds: u64) -> String {
    use rustix::process::Signal;
    let Some(number) = status.signal() else {
        let code = status.code().unwrap_or_default();
        return format!("ended with exit code {code}; see whether the server's program is the one that was started");
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
        return format!("took more than its {cpu_seconds} s of CPU time; raise --native-seconds of the server");
    }
    let text = known.iter().find(|(signal, _)| signal.as_raw() == number).map_or("", |(_, text)| text);
    match text {
        "" => format!("died of signal {number}"),
        text => format!("died of signal {number} ({text})"),
    }
}
