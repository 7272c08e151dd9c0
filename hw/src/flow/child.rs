//! Programs that run below this one and do not outlive it.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Between two looks at whether a program has ended that writes nothing more.
const LOOK: Duration = Duration::from_millis(10);

/// A program that runs. It is killed, with all that it started, where this is dropped before its end has been seen; on
/// Linux also when the thread that started it ends, by whatever signal.
pub(super) struct Running {
    child: Child,
    ended: bool,
}

impl Running {
    /// Starts a program.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn start(mut command: Command) -> io::Result<Running> {
        #[cfg(target_os = "linux")]
        die_with_parent(&mut command);
        Ok(Running { child: command.spawn()?, ended: false })
    }

    /// Waits for its end, until a time where there is one; nothing where that is over first.
    ///
    /// # Errors
    /// The system's.
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

/// Gives a program a group of processes of its own, and lets the system kill it when its parent is gone.
#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    let parent = std::process::id();
    command.process_group(0);
    let ask = move || {
        // SAFETY: both are system calls without memory of this program; they may be made between fork and exec.
        let (asked, now) = unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), libc::getppid()) };
        match asked {
            // The parent may have ended before it was asked for.
            0 if u32::try_from(now) == Ok(parent) => Ok(()),
            0 => Err(io::ErrorKind::BrokenPipe.into()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure allocates nothing, takes no lock and makes those two system calls alone.
    unsafe { command.pre_exec(ask) };
}

/// Kills a program and what it started, unless that has left its group.
#[cfg(target_os = "linux")]
fn kill_group(child: &Child) {
    if let Ok(group) = i32::try_from(child.id()) {
        // SAFETY: no memory is touched. The group is the child's, and its number is nobody else's while the child is
        // not waited for.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
}
