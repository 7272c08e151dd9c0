//! Child processes that end with this program, and with work that is stopped.

use std::io;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use crate::interrupt::{self, Interrupt, Interrupted};

/// Interval between two checks whether a program has ended.
const LOOK: Duration = Duration::from_millis(10);

/// A running program.
///
/// If this is dropped before the program has ended, it is killed, on Linux with all that it started. On Linux it is
/// also killed when the thread that started it ends, even by a signal.
pub struct Running {
    child: Child,
    ended: bool,
}

impl Running {
    /// Starts a program.
    ///
    /// # Errors
    /// If the system cannot start it.
    pub fn start(command: &mut Command) -> io::Result<Running> {
        #[cfg(target_os = "linux")]
        die_with_parent(command);
        let child = command.spawn()?;
        #[cfg(target_os = "linux")]
        groups::enter(child.id());
        Ok(Running { child, ended: false })
    }

    /// Waits until the program ends, and returns its status; `None` if a time limit is given and comes first.
    ///
    /// # Errors
    /// If the system cannot wait for it.
    pub fn wait_until(&mut self, end: Option<Instant>) -> io::Result<Option<ExitStatus>> {
        let ended = match end {
            None => self.wait().map(|()| true)?,
            Some(end) => loop {
                match has_ended(&mut self.child, false)? {
                    false if Instant::now() < end => std::thread::sleep(LOOK),
                    ended => break ended,
                }
            },
        };
        if ended { self.reap().map(Some) } else { Ok(None) }
    }

    /// Takes the status of a program that has ended. Only then can the system use its number again, so its group leaves
    /// the list of groups before.
    fn reap(&mut self) -> io::Result<ExitStatus> {
        self.ended = true;
        #[cfg(target_os = "linux")]
        groups::leave(self.child.id());
        let status = self.child.wait();
        // A signal has ended it, and ends this program too: a report of its end would come first sometimes.
        #[cfg(target_os = "linux")]
        groups::stay_if_ending();
        status
    }

    /// Waits until the program ends or the work is stopped; then the program is killed when this is dropped.
    fn wait(&mut self) -> io::Result<()> {
        let interrupt = Interrupt::current();
        while !has_ended(&mut self.child, interrupt.is_none())? {
            if interrupt.as_ref().is_some_and(Interrupt::is_stopped) {
                return Err(io::Error::other(Interrupted));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// Whether a program has ended, which it stays to be asked for its status; `wait` waits for its end.
#[cfg(target_os = "linux")]
fn has_ended(child: &mut Child, wait: bool) -> io::Result<bool> {
    let flags = libc::WEXITED | libc::WNOWAIT | if wait { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: zeros are a valid value of this structure of numbers.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the call writes to `info` alone, whose process number it sets if the program has ended.
        let (failed, process) = unsafe { (libc::waitid(libc::P_PID, child.id(), &mut info, flags), info.si_pid()) };
        match io::Error::last_os_error() {
            _ if failed == 0 => return Ok(process != 0),
            error if error.kind() == io::ErrorKind::Interrupted => {}
            error => return Err(error),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn has_ended(child: &mut Child, wait: bool) -> io::Result<bool> {
    if wait {
        return child.wait().map(|_| true);
    }
    child.try_wait().map(|status| status.is_some())
}

/// Runs a program to its end and returns what it printed, like [`Command::output`]. The program has no input. It ends
/// with this program, and when the work is stopped that this thread does. On Linux, all that it started is killed when
/// it ends.
///
/// # Errors
/// If the system cannot start it or wait for it, or if the work was stopped; see [`is_interrupted`].
pub fn output(command: &mut Command) -> io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    interrupt::check().map_err(io::Error::other)?;
    let mut running = Running::start(command)?;
    let streams = (running.child.stdout.take(), running.child.stderr.take());
    let read = |mut stream: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What cannot be read is missing, as if the program had not printed it.
            let _ = stream.as_mut().map(|stream| stream.read_to_end(&mut bytes));
            bytes
        })
    };
    let stdout = read(streams.0.map(|stream| Box::new(stream) as _));
    let stderr = read(streams.1.map(|stream| Box::new(stream) as _));
    running.wait()?;
    // What it leaves running may have its streams, which would not end.
    #[cfg(target_os = "linux")]
    kill_group(&running.child);
    let status = running.reap()?;
    let [stdout, stderr] = [stdout, stderr].map(|thread| thread.join().unwrap_or_default());
    Ok(Output { status, stdout, stderr })
}

/// Whether a program was killed because the work was stopped.
pub fn is_interrupted(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Interrupted>())
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            #[cfg(target_os = "linux")]
            kill_group(&self.child);
            let _ = self.child.kill();
            let _ = self.reap();
        }
    }
}

/// Gives a program a process group of its own, and makes the system kill it when its parent ends.
#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    let parent = std::process::id();
    command.process_group(0);
    let ask = move || {
        // SAFETY: both system calls use no memory of this program, and are allowed between fork and exec.
        let (asked, now) = unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), libc::getppid()) };
        match asked {
            // The parent can have ended before the call.
            0 if u32::try_from(now) == Ok(parent) => Ok(()),
            0 => Err(io::ErrorKind::BrokenPipe.into()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure allocates nothing, takes no lock, and makes only those two system calls.
    unsafe { command.pre_exec(ask) };
}

/// Kills a program and everything that it started, except processes that left its group.
#[cfg(target_os = "linux")]
fn kill_group(child: &Child) {
    if let Ok(group) = i32::try_from(child.id()) {
        // SAFETY: the call uses no memory. The group is the child's, and its number is not reused before the child is
        // waited for.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
}

/// The process groups of running programs, for the handler of a signal.
#[cfg(target_os = "linux")]
mod groups {
    use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

    /// Number of process groups that a signal handler can kill. Of programs beyond it, the system kills the first
    /// process.
    const MOST: usize = 64;

    /// A number of 0 is free.
    static GROUPS: [AtomicI32; MOST] = [const { AtomicI32::new(0) }; MOST];

    fn replace(old: i32, new: i32) {
        let _ =
            GROUPS.iter().find(|group| group.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok());
    }

    pub fn enter(child: u32) {
        replace(0, i32::try_from(child).unwrap_or(0));
    }

    pub fn leave(child: u32) {
        replace(i32::try_from(child).unwrap_or(0), 0);
    }

    /// Whether the handler of a signal ends this program.
    static ENDING: AtomicBool = AtomicBool::new(false);

    /// Waits for the end of this program if a signal ends it.
    pub fn stay_if_ending() {
        while ENDING.load(Ordering::SeqCst) {
            std::thread::park();
        }
    }

    /// Kills all of them, before the signal ends this program. Its handler calls it.
    pub fn kill() {
        ENDING.store(true, Ordering::SeqCst);
        for group in GROUPS.iter().map(|group| group.load(Ordering::Relaxed)).filter(|group| *group > 0) {
            // SAFETY: the call uses no memory, and is allowed in handlers of signals.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
    }
}

/// Lets the signals that end this program (Ctrl-C, SIGTERM, SIGHUP) first kill the programs that it runs, with all that
/// they started. Signals that this program ignores stay ignored. For command lines; a library leaves signals alone.
#[cfg(target_os = "linux")]
pub fn end_children_by_signals() {
    extern "C" fn end(signal: libc::c_int) {
        groups::kill();
        // SAFETY: both calls are allowed in handlers of signals. The signal is delivered when this handler returns.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler uses atomics and calls that are allowed there.
        unsafe {
            if libc::signal(signal, end as extern "C" fn(libc::c_int) as libc::sighandler_t) == libc::SIG_IGN {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
    }
}

/// Does nothing where programs are no groups of processes.
#[cfg(not(target_os = "linux"))]
pub fn end_children_by_signals() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_leaves_running_ends_with_it() {
        let begun = Instant::now();
        let mut command = Command::new("sh");
        let left = command.args(["-c", "sleep 1000 & echo $!; exit 3"]);
        let found = output(left).expect("it runs");
        assert!(begun.elapsed() < Duration::from_secs(100), "{:?}", begun.elapsed());
        assert_eq!(found.status.code(), Some(3));
        let sleep: u32 = String::from_utf8(found.stdout).unwrap().trim().parse().expect("its number");
        // It is gone, or dead and not waited for yet by the process that inherited it.
        let is_there =
            || std::fs::read_to_string(format!("/proc/{sleep}/stat")).is_ok_and(|stat| !stat.contains(") Z"));
        while is_there() {
            assert!(begun.elapsed() < Duration::from_secs(100), "it goes on");
            std::thread::sleep(LOOK);
        }
    }

    #[test]
    fn a_program_that_takes_too_long_is_left_running_until_it_is_dropped() {
        let mut running = Running::start(Command::new("sleep").arg("1000")).expect("it starts");
        assert_eq!(running.wait_until(Some(Instant::now())).expect("it is looked for"), None);
        let sleep = running.child.id();
        drop(running);
        assert!(!std::path::Path::new(&format!("/proc/{sleep}")).exists());
        let mut running = Running::start(&mut Command::new("true")).expect("it starts");
        let status = running.wait_until(Some(Instant::now() + Duration::from_secs(100))).expect("it ends");
        assert_eq!(status.and_then(|status| status.code()), Some(0));
    }
}
