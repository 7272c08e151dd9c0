//! Measurements in processes of their own.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tilewright_hw::interrupt;

/// Seconds after which a measurement is given up.
const MOST_SECONDS: u64 = 60;

/// Runs a program that prints the nanoseconds of an artifact, as [`measured_ns`](super::measured_ns) returns them; `None`
/// if it fails, takes too long, or the work is stopped from outside.
pub fn measured_by(mut program: Command) -> Option<u64> {
    let mut child = program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let start = Instant::now();
    let status = loop {
        let goes_on = start.elapsed().as_secs() < MOST_SECONDS && interrupt::check().is_ok();
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if goes_on => std::thread::sleep(Duration::from_millis(2)),
            _ => {
                // The child can have ended in between.
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let mut text = String::new();
    child.stdout.take()?.read_to_string(&mut text).ok()?;
    text.trim().parse().ok().filter(|_| status.success())
}
