//! Steps of a flow: programs that make files from files, with a cache of their results.
//!
//! A step runs in a temporary folder of the cache. When it is done, the folder gets the name of a hash over all inputs,
//! arguments and the program's version. So a killed step leaves no incomplete result, an interrupted flow continues
//! where it stopped, and two flows can run at the same time.

mod of_flow;

use super::FlowError;
use super::call::{call, failed};
use super::files::write;
use super::report::Bitstream;
use super::tools::Tool;
use crate::cache;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::time::Instant;

pub use super::progress::Progress;
pub(super) use of_flow::{READ_BACK, logs};

/// The log of Yosys. Errors of its readers go to the step's own log.
const YOSYS_LOG: &str = "yosys.log";

/// Prefix of the names of result folders.
const PREFIX: &str = "synth-";

/// The file with sizes and hashes of a step's results.
const MADE: &str = "made.json";

fn log_of(step: &str) -> String {
    format!("{}.log", step.replace(' ', "_"))
}

/// A run of a program, with the files that it reads and writes.
pub struct FlowStep<'a> {
    name: &'static str,
    tool: &'a Tool,
    arguments: Vec<String>,
    inputs: Vec<Input>,
    outputs: Vec<String>,
}

/// A file that a step's program reads.
pub(super) struct Input {
    /// Its name.
    pub(super) name: String,
    /// Its contents.
    pub(super) bytes: Vec<u8>,
}

impl Input {
    /// A file.
    pub(super) fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Input {
        Input { name: name.into(), bytes: bytes.into() }
    }
}

/// The results of a step.
#[derive(Debug, Clone)]
pub struct Done {
    folder: PathBuf,
    files: Vec<String>,
}

impl Done {
    /// Returns the path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    #[cfg(test)]
    pub(super) fn of(folder: PathBuf, files: &[&str]) -> Done {
        Done { folder, files: files.iter().map(ToString::to_string).collect() }
    }

    /// Returns whether all its files are as they were when the step was done. A full disk or a power failure can damage
    /// them.
    fn is_whole(&self) -> bool {
        let made: Option<Vec<Bitstream>> =
            std::fs::read(self.file(MADE)).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let as_made = |name: &String| {
            let bytes = std::fs::read(self.file(name)).ok();
            let now = bytes.map(|bytes| Bitstream::of(name, &bytes));
            made.iter().flatten().any(|made| now.as_ref() == Some(made))
        };
        self.files.iter().all(as_made)
    }

    /// Writes sizes and hashes of the results into their folder, before the folder gets its name.
    fn seal(&self, work: &Path) -> Result<(), FlowError> {
        let read = |name: &String| {
            let path = work.join(name);
            let bytes = std::fs::read(&path).map_err(|error| FlowError::io(&path, &error))?;
            Ok(Bitstream::of(name, &bytes))
        };
        let made: Vec<Bitstream> = self.files.iter().map(read).collect::<Result<_, FlowError>>()?;
        write(&work.join(MADE), serde_json::json!(made).to_string().as_bytes())
    }

    /// Returns the name of its folder, with the hash over the step's inputs.
    pub(super) fn key(&self) -> &str {
        self.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Copies its files to a folder, each atomically.
    ///
    /// # Errors
    /// [`FlowError::Io`].
    pub fn copy_to(&self, dir: &Path) -> Result<(), FlowError> {
        for name in &self.files {
            let from = self.file(name);
            let bytes = std::fs::read(&from).map_err(|error| FlowError::io(&from, &error))?;
            write(&dir.join(name), &bytes)?;
        }
        Ok(())
    }

    /// Removes it from the cache, because it is not valid although its program succeeded.
    pub(super) fn forget(&self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }

    /// Reads one of its files as an input of another step.
    pub(super) fn input(&self, name: &str) -> Result<Input, FlowError> {
        let path = self.file(name);
        Ok(Input::new(name, std::fs::read(&path).map_err(|error| FlowError::io(&path, &error))?))
    }
}

impl<'a> FlowStep<'a> {
    fn log(&self) -> String {
        log_of(self.name)
    }

    /// Returns the hash that names the results.
    fn key(&self) -> String {
        let mut sha = Sha256::new();
        let mut add = |bytes: &[u8]| {
            sha.update((bytes.len() as u64).to_le_bytes());
            sha.update(bytes);
        };
        add(self.tool.version.as_bytes());
        self.tool.command.iter().skip(1).chain(&self.arguments).for_each(|argument| add(argument.as_bytes()));
        for Input { name, bytes } in &self.inputs {
            add(name.as_bytes());
            add(bytes);
        }
        sha.finalize()[..12].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Runs the program, or takes its results from the cache.
    ///
    /// # Errors
    /// [`FlowError::Tool`], [`FlowError::Late`], [`FlowError::Io`].
    pub(super) fn run(&self, dir: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Done, FlowError> {
        let home = dir.join(format!("{PREFIX}{}", self.key()));
        let log = self.log();
        let files: Vec<String> = self.outputs.iter().cloned().chain([log.clone()]).collect();
        let done = Done { folder: home.clone(), files };
        if done.is_whole() {
            cache::touch(&home);
            progress(Progress::Cached(self.name));
            return Ok(done);
        }
        // It did not run yet, or a file is missing or damaged.
        done.forget();
        progress(Progress::Started(self.name));
        let begun = Instant::now();
        std::fs::create_dir_all(dir).map_err(|error| FlowError::io(dir, &error))?;
        cache::remove_left_builds(dir);
        cache::remove_unused(dir, PREFIX);
        let work = tempfile::Builder::new()
            .prefix(cache::BUILD_PREFIX)
            .tempdir_in(dir)
            .map_err(|error| FlowError::io(dir, &error))?;
        for Input { name, bytes } in &self.inputs {
            write(&work.path().join(name), bytes)?;
        }
        let Some(ended) = call(self.tool, &self.arguments, work.path(), &log, progress)? else {
            let seconds = self.tool.time_limit.unwrap_or_default().as_secs_f64();
            let minutes = (seconds / 60.0 * 1000.0).round() / 1000.0;
            let work = work.keep();
            let own = work.join(&log);
            let says = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|file| file.len() > 0);
            // Yosys writes only errors to the step's log, and everything else to its own.
            let log = [own.clone(), work.join(YOSYS_LOG)].into_iter().find(says).unwrap_or(own);
            return Err(FlowError::Late { step: self.name, minutes, log });
        };
        let missing = self.outputs.iter().find(|name| !work.path().join(name).exists());
        let reason = match (ended.success(), missing) {
            (true, None) => None,
            (true, Some(name)) => Some(format!("it did not write {name}")),
            (false, _) => Some(ended.to_string()),
        };
        if let Some(reason) = reason {
            return Err(failed(self.name, &reason, work.keep().join(&log)));
        }
        done.seal(work.path())?;
        settle(work, &home)?;
        progress(Progress::Done(self.name, begun.elapsed()));
        Ok(done)
    }
}

/// Renames a folder of results to its final name, unless another process was faster.
fn settle(work: tempfile::TempDir, home: &Path) -> Result<(), FlowError> {
    match std::fs::rename(work.path(), home) {
        Ok(()) => {
            // The temporary folder no longer exists under its old name.
            let _ = work.keep();
            Ok(())
        }
        Err(_) if home.is_dir() => Ok(()),
        Err(error) => Err(FlowError::io(home, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_whose_files_are_not_as_they_were_is_made_anew() {
        let dir = tempfile::tempdir().expect("a folder");
        let command = ["sh", "-c", "echo made > a; echo made > b"].map(String::from).to_vec();
        let tool = Tool { name: "sh", command, version: "1".into(), time_limit: None };
        let outputs = ["a", "b"].map(String::from).to_vec();
        let step = FlowStep { name: "making", tool: &tool, arguments: Vec::new(), inputs: Vec::new(), outputs };
        let mut told = Vec::new();
        for (file, now) in
            [("a", None), ("making.log", None), ("b", Some("")), ("b", Some("wade\n")), (MADE, Some("[]"))]
        {
            let done = step.run(dir.path(), &mut |_| {}).expect("it runs");
            match now {
                None => std::fs::remove_file(done.file(file)).expect("it is there"),
                Some(text) => std::fs::write(done.file(file), text).expect("it is there"),
            }
            let done =
                step.run(dir.path(), &mut |event| told.push(matches!(event, Progress::Cached(_)))).expect("it runs");
            assert!(done.is_whole());
        }
        assert!(!told.contains(&true));
        step.run(dir.path(), &mut |event| assert_eq!(event, Progress::Cached("making"))).expect("it ran");
    }

    #[test]
    fn results_that_get_no_place_are_an_error_unless_there_are_some() {
        let dir = tempfile::tempdir().expect("a folder");
        let made = || {
            let work = tempfile::tempdir_in(dir.path()).expect("a folder");
            std::fs::write(work.path().join("file"), "").expect("a file");
            work
        };
        let home = dir.path().join("home");
        settle(made(), &home).expect("it is the first");
        settle(made(), &home).expect("another was faster");
        assert_eq!(std::fs::read_dir(dir.path()).expect("a folder").count(), 1);
        let error = settle(made(), &dir.path().join("none/home")).expect_err("there is no such folder");
        assert!(error.to_string().contains("none/home"), "{error}");
    }
}
