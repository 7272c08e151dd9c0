//! The program as people call it: exit codes, messages and files.

mod bench;
mod bisect;
mod bitstreams;
mod board;
mod configs;
mod cuda;
mod diff;
mod dump;
mod fit;
mod flash;
mod flow;
mod interrupt;
mod models;
mod offload;
mod parameters;
mod pictures;
mod profile;
mod programs;
mod quantize;
mod readme;
mod remote;
mod run_programs;
mod schedule;
mod shapes;
mod sizes;
mod stages;
mod synth;
mod tracker;
mod tune;
mod upload;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Result of a call.
struct Outcome {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Outcome {
    fn of(output: Output) -> Outcome {
        Outcome {
            code: output.status.code().expect("the program ends by itself"),
            stdout: String::from_utf8(output.stdout).expect("standard output is text"),
            stderr: String::from_utf8(output.stderr).expect("standard error is text"),
        }
    }
}

/// Calls the program in `dir`.
fn tilewright(dir: &Path, arguments: &[&str]) -> Outcome {
    let output = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(arguments)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    Outcome::of(output)
}

/// Calls the program, which must fail with exit code 2 and exactly this message.
#[track_caller]
fn refused(dir: &Path, arguments: &[&str], message: &str) {
    let outcome = tilewright(dir, arguments);
    assert_eq!(outcome.stderr, format!("error: {message}\n"));
    assert_eq!(outcome.code, 2);
    assert_eq!(outcome.stdout, "");
}

/// Calls the program, which must succeed.
#[track_caller]
fn fine(dir: &Path, arguments: &[&str]) -> String {
    let outcome = tilewright(dir, arguments);
    assert_eq!(outcome.code, 0, "{}{}", outcome.stdout, outcome.stderr);
    outcome.stdout
}

/// Calls the program with text on its standard input.
fn with_input(dir: &Path, arguments: &[&str], input: &str) -> Outcome {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(arguments)
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("the program reads");
    let output = child.wait_with_output().expect("the program ends");
    Outcome::of(output)
}
