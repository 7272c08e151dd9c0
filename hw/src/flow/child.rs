//! Child processes that end with this program.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Interval between two checks whether a program has ended.
const LOOK: Duration = Duration::from_millis(10);

/// A running program.
///
/// If this is dropped before the program has ended, it is killed, on Linux with all that it started. On Linux it is
/// also killed when the thread that started it ends, even by a signal.
pub(super) struct Running {
    child: Child,
    ended: bool,
}

impl Running {
    /// Starts a program.
    ///
    /// # Errors
    /// If the system cannot start it.
    pub(super) fn start(mut command: Command) -> io::Result<Running> {
        #[cfg(target_os = "linux")]
        die_with_parent(&mut command);
        Ok(Running { child: command.spawn()?, ended: false })
    }

    /// Waits until the program ends, and returns its status; `None` if a time limit is given and comes first.
    ///
    /// # Errors
    /// If the system cannot wait for it.
    pub(super) fn wait_until(&mut self, end: Option<Instant>) -> io::Result<Option<ExitStatus>> {
        let status = match end {
            None => Some(self.child.wait()?),
            Some(end) => loop {
                match self.child.try_wait()? {
                    None if Instant::now() < end => std::thread::sleep(LOOK),
                    status => break status,
                }
            },
        };
        self.ended |= status.is_some();
        Ok(status)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            #[cfg(target_os = "linux")]
            kill_group(&self.child);
            let _ = self.child.kill();
            let _ = self.child.wait();
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
