//! Steps: programs that make files of files.
//!
//! A step runs in a temporary folder of the cache, which is renamed to one named by a hash of everything that goes into
//! the step, the program's version included. So a step that was killed leaves nothing that is taken for a result, a
//! flow goes on where it ended, and two flows at once do not meet.

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

/// What Yosys says of its work; what its readers print goes to the step's own log.
const YOSYS_LOG: &str = "yosys.log";

/// What the names of results begin with.
const PREFIX: &str = "synth-";

/// What a step's files were when it was done.
const MADE: &str = "made.json";

fn log_of(step: &str) -> String {
    format!("{}.log", step.replace(' ', "_"))
}

/// A program's run: its inputs by name, and the files that it leaves.
pub struct Step<'a> {
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

/// A step's results.
#[derive(Debug, Clone)]
pub struct Done {
    folder: PathBuf,
    files: Vec<String>,
}

impl Done {
    /// The path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    #[cfg(test)]
    pub(super) fn of(folder: PathBuf, files: &[&str]) -> Done {
        Done { folder, files: files.iter().map(ToString::to_string).collect() }
    }

    /// Whether all its files are there, as they were when the step was done: a disk that filled up, or power that went,
    /// leaves others.
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

    /// Writes into a folder of its results, before that gets its name, what they are.
    fn seal(&self, work: &Path) -> Result<(), FlowError> {
        let read = |name: &String| {
            let path = work.join(name);
            let bytes = std::fs::read(&path).map_err(|error| FlowError::io(&path, &error))?;
            Ok(Bitstream::of(name, &bytes))
        };
        let made: Vec<Bitstream> = self.files.iter().map(read).collect::<Result<_, FlowError>>()?;
        write(&work.join(MADE), serde_json::json!(made).to_string().as_bytes())
    }

    /// What names its content: the hash of all that went into the step.
    pub(super) fn key(&self) -> &str {
        self.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Copies its files to a folder, each at once.
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

    /// Takes it out of the cache, as it is no result, though its program ended well.
    pub(super) fn forget(&self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }

    /// One of its files, as another step reads it.
    pub(super) fn input(&self, name: &str) -> Result<Input, FlowError> {
        let path = self.file(name);
        Ok(Input::new(name, std::fs::read(&path).map_err(|error| FlowError::io(&path, &error))?))
    }
}

impl<'a> Step<'a> {
    fn log(&self) -> String {
        log_of(self.name)
    }

    /// The hash that names the results.
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

    /// Runs the program, or finds its results in the cache.
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
        // It never was, or a file of it is gone or is not what it was.
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
            // Yosys writes of its work to a log of its own, and of errors alone to the step's.
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

/// Gives a folder of results its name, unless another process was faster.
fn settle(work: tempfile::TempDir, home: &Path) -> Result<(), FlowError> {
    match std::fs::rename(work.path(), home) {
        Ok(()) => {
            // There is nothing left to remove under its old name.
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
        let step = Step { name: "making", tool: &tool, arguments: Vec::new(), inputs: Vec::new(), outputs };
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
