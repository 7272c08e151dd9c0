//! Runs a program with a time limit, and writes its output to a log.

use super::FlowError;
use super::progress::Progress;
use super::tools::Tool;
use crate::interrupt;
use crate::process::Running;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Capacity of the queue of lines from a program's output.
const LINES: usize = 64;

/// How often the flow is checked for being stopped from outside.
const POLL: Duration = Duration::from_millis(50);

/// Runs a program in a folder.
///
/// Its output goes to the log, and line by line to `progress`. Returns its status, or `None` if it exceeded its time
/// limit and was killed.
///
/// # Errors
/// [`FlowError::Io`] if it cannot be started, or the log cannot be written; [`FlowError::Interrupted`], and the program is
/// killed.
pub(super) fn call(
    tool: &Tool,
    arguments: &[String],
    work: &Path,
    log: &str,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<ExitStatus>, FlowError> {
    let io = |error: &std::io::Error| FlowError::io(Path::new(&tool.command[0]), error);
    let path = work.join(log);
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(|error| FlowError::io(&path, &error))?;
    let (reader, writer) = std::io::pipe().map_err(|error| io(&error))?;
    let other = writer.try_clone().map_err(|error| io(&error))?;
    let mut command = tool.command();
    command.args(arguments).current_dir(work).stdin(Stdio::null()).stdout(writer).stderr(other);
    let mut running = Running::start(&mut command).map_err(|error| io(&error))?;
    // Closes this program's write ends of the pipe, which then ends with the last process that can write to it.
    drop(command);
    let end = tool.time_limit.and_then(|limit| Instant::now().checked_add(limit));
    let (sender, lines) = mpsc::sync_channel(LINES);
    std::thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.by_ref().read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    loop {
        interrupt::check()?;
        let left = end.map_or(POLL, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Ok(None);
        }
        let line = match lines.recv_timeout(left.min(POLL)) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        file.write_all(&line).map_err(|error| FlowError::io(&path, &error))?;
        progress(Progress::Line(String::from_utf8_lossy(&line).trim_end()));
    }
    running.wait_until(end).map_err(|error| io(&error))
}

/// Makes the error of a program that failed, with the lines of its log that say why.
pub(super) fn failed(step: &'static str, reason: &str, log: PathBuf) -> FlowError {
    let bytes = std::fs::read(&log).unwrap_or_default();
    FlowError::Tool { step, reason: format!("{reason}\n{}", essence(&String::from_utf8_lossy(&bytes))), log }
}

/// Returns the lines of a log that say why a program failed: its first errors, or otherwise its last lines.
fn essence(log: &str) -> String {
    let errors = log.lines().skip_while(|line| !line.to_lowercase().contains("error")).take(8);
    let errors: Vec<&str> = errors.collect();
    if !errors.is_empty() {
        return errors.join("\n");
    }
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, time_limit: Option<Duration>) -> Tool {
        let command = ["sh", "-c", script].map(String::from).to_vec();
        Tool { name: "sh", command, version: "1".into(), time_limit }
    }

    /// Returns whether the process whose number is in a file ends soon.
    fn is_gone(pid: &Path) -> bool {
        let pid = std::fs::read_to_string(pid).expect("it wrote its number");
        tilewright_testing::is_gone(pid.trim().parse().expect("a number"))
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_ends_with_its_time_or_where_its_log_cannot_be_written() {
        let dir = tempfile::tempdir().expect("a folder");
        let begun = Instant::now();
        // Its child processes end too. Output without a pause does not extend the limit.
        let script = "sleep 60 & echo $! > pid; while :; do echo a; sleep 0.01; done";
        let limited = shell(script, Some(Duration::from_millis(500)));
        let ended = call(&limited, &[], dir.path(), "log", &mut |_| {}).expect("it is killed");
        assert!(ended.is_none() && is_gone(&dir.path().join("pid")));
        assert!(std::fs::read_to_string(dir.path().join("log")).expect("a log").starts_with("a\na\n"));
        // A program without output is killed too.
        let silent = shell("exec >&- 2>&-; sleep 60", Some(Duration::from_millis(100)));
        assert!(call(&silent, &[], dir.path(), "log", &mut |_| {}).expect("it is killed").is_none());

        std::os::unix::fs::symlink("/dev/full", dir.path().join("full")).expect("a link");
        let endless = shell("echo $$ > pid; echo a; exec sleep 60", None);
        let error = call(&endless, &[], dir.path(), "full", &mut |_| {}).expect_err("nothing can be written");
        assert!(matches!(error, FlowError::Io { .. }) && is_gone(&dir.path().join("pid")), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
    }
}
