//! What the process for CPU code gives up before it reads the first byte of a client's.

use std::io;

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};

use crate::wire::Begin;

/// Files that it can have open at a time.
const FILES: u64 = 64;

/// Closes all files but the standard ones, whoever left them open.
pub(super) fn close_files() -> io::Result<()> {
    let numbers: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    for number in numbers {
        // SAFETY: nothing in this process has opened a file yet but the folder above, which is closed by now; what was
        // inherited has no owner here.
        unsafe { libc::close(number) };
    }
    Ok(())
}

/// Limits this process and all that it starts, for good.
pub(super) fn apply(begin: &Begin) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::thread::set_no_new_privs(true)?;
    let limit = |resource, most: u64| setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    let cpu = begin.cpu_seconds.max(1);
    // At the first number it is told by a signal, at the second one killed.
    setrlimit(Resource::Cpu, Rlimit { current: Some(cpu), maximum: Some(cpu + 5) })?;
    // A 32-bit process has less anyway.
    if let Ok(bytes) = usize::try_from(begin.address_bytes) {
        limit(Resource::As, bytes as u64)?;
    }
    limit(Resource::Nofile, FILES)?;
    limit(Resource::Core, 0)?;
    // It writes to its socket alone.
    limit(Resource::Fsize, 0)?;
    Ok(())
}
