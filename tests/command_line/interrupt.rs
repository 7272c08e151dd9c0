//! Signals end the programs that a command runs, with all that they started.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tilewright_testing::has_program;

/// The command lines of processes that name a folder, except this one's child.
fn processes(folder: &Path, except: u32) -> Vec<String> {
    let name = folder.to_str().expect("a name");
    let lines = std::fs::read_dir("/proc").expect("it can be listed").filter_map(|entry| {
        let entry = entry.ok()?;
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = String::from_utf8_lossy(&std::fs::read(entry.path().join("cmdline")).ok()?).replace('\0', " ");
        (pid != except && line.contains(name)).then_some(line)
    });
    lines.collect()
}

/// Waits until the list of processes is as wanted, and returns it.
fn until(wanted: impl Fn(&[String]) -> bool, list: impl Fn() -> Vec<String>) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let found = list();
        if wanted(&found) {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{found:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_signal_ends_the_compilers_of_the_design_too() {
    if !has_program("verilator") {
        return;
    }
    // Ctrl-C, and what `kill` sends.
    for signal in [2, 15] {
        let cache = tempfile::tempdir().expect("a folder");
        // What runs these tests in the background may ignore Ctrl-C, which programs inherit.
        let program = Command::new("env")
            .args(["--default-signal", env!("CARGO_BIN_EXE_tilewright")])
            .args(["run", "zoo:lenet-int8", "--hw", "1x4x4", "--device", "rtl", "--input", "random"])
            .env("XDG_CACHE_HOME", cache.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let list = || processes(cache.path(), program.id());
        // The compiler proper is a child of a child.
        until(|lines| lines.iter().any(|line| line.contains("cc1plus")), list);
        let sent = Command::new("kill").args([format!("-{signal}"), program.id().to_string()]).status();
        assert!(sent.expect("a signal is sent").success());
        until(<[String]>::is_empty, list);
        let done = program.wait_with_output().expect("it ends");
        assert_eq!(done.status.signal(), Some(signal));
    }
}
