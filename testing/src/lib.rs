//! Helpers that the tests of all crates share: where to find models that are not in the repository, how a test reports
//! that it skips, files in TFLite's and ONNX's formats, a browser that opens pages, and a
//! device with hooks.
//!
//! A skip must not look like a success. Each skip prints a line to standard output and appends a line to the file that
//! `TILEWRIGHT_SKIPS` names, with test and reason separated by a tab. `make test` counts and prints these at its end.

pub mod browser;
pub mod device;
pub mod flat;
pub mod proto;
pub mod standin;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Environment variable that names the folder of models.
const MODELS: &str = "TILEWRIGHT_MODELS";

/// Reports that the calling test, or a part of it, skips.
///
/// # Panics
/// If the file that counts skips cannot be written.
pub fn skip(reason: &str) {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let thread = std::thread::current();
    let test = format!("{package} {}", thread.name().unwrap_or("test"));
    println!("skipped: {test}: {reason}");
    if let Some(path) = std::env::var_os("TILEWRIGHT_SKIPS").filter(|path| !path.is_empty()) {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
        // One write, so that tests that skip at the same time do not mix their lines.
        let written = file.and_then(|mut file| file.write_all(format!("{test}\t{reason}\n").as_bytes()));
        written.unwrap_or_else(|error| panic!("TILEWRIGHT_SKIPS names {}: {error}", Path::new(&path).display()));
    }
}

/// Whether a process ends within twenty seconds; a zombie that waits for its parent counts as ended.
pub fn is_gone(pid: u32) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if stat.rsplit_once(')').is_none_or(|(_, state)| state.trim_start().starts_with('Z')) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// A command that starts this program again. If it is for another processor, the emulator runs it that the variable
/// `EMULATOR` names, with its arguments.
///
/// # Panics
/// If the system does not tell the program's path.
pub fn this_program() -> Command {
    let program = std::env::current_exe().expect("a path");
    let emulator = std::env::var("EMULATOR").unwrap_or_default();
    let mut words = emulator.split_whitespace();
    let Some(first) = words.next() else { return Command::new(program) };
    let mut command = Command::new(first);
    command.args(words).arg(program);
    command
}

/// The number that an environment variable is set to.
///
/// # Panics
/// If the variable is not a whole number.
pub fn asked(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.trim().is_empty())?;
    Some(text.trim().parse().unwrap_or_else(|_| panic!("{name} is `{text}`; set it to a whole number in plain digits")))
}

/// A file or folder of the models that are not in the repository; without them the calling test skips.
///
/// # Panics
/// If `TILEWRIGHT_MODELS` names a folder that does not exist, or that lacks `path`.
pub fn model(path: &str) -> Option<PathBuf> {
    match find(std::env::var_os(MODELS), path) {
        Ok(Some(found)) => Some(found),
        Ok(None) => {
            skip(&format!("needs {path} in the folder that {MODELS} names"));
            None
        }
        Err(reason) => panic!("{reason}"),
    }
}

fn find(folder: Option<OsString>, path: &str) -> Result<Option<PathBuf>, String> {
    let Some(folder) = folder.filter(|folder| !folder.is_empty()) else { return Ok(None) };
    // Tests run in their crate's folder; a relative path is relative to the workspace.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    if !folder.is_dir() {
        return Err(format!("{MODELS} names {}, which is not a folder; set another, or unset it", folder.display()));
    }
    let found = folder.join(path);
    if !found.exists() {
        return Err(format!("{MODELS} names {}, which has no {path}", folder.display()));
    }
    Ok(Some(found))
}

/// Whether a program is installed; without it the calling test skips.
pub fn has_program(program: &str) -> bool {
    has_optional(program, "run `make setup`")
}

/// Like [`has_program`], for a program that the set-up does not install by itself; `remedy` says what does.
pub fn has_optional(program: &str, remedy: &str) -> bool {
    static FOUND: LazyLock<Mutex<HashMap<String, bool>>> = LazyLock::new(Default::default);
    let ask = || Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    let found = *FOUND.lock().unwrap_or_else(PoisonError::into_inner).entry(program.into()).or_insert_with(ask);
    if !found {
        skip(&format!("needs {program}; {remedy}"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_named_must_be_there_and_be_whole() {
        assert_eq!(find(None, "x"), Ok(None));
        assert_eq!(find(Some("".into()), "x"), Ok(None));
        let found = find(Some("testing".into()), "src/lib.rs").unwrap().unwrap();
        assert!(found.is_file() && found.ends_with("testing/src/lib.rs"));
        assert!(find(Some("testing".into()), "no.tflite").unwrap_err().ends_with("which has no no.tflite"));
        assert!(find(Some("nowhere".into()), "x").unwrap_err().contains("nowhere, which is not a folder"));
    }
}
