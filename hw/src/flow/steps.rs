//! Steps: programs that make files of files.
//!
//! A step runs in a temporary folder of the cache, which is renamed to one named by a hash of everything that goes into the step,
//! the program's version included. So a step that was killed leaves nothing that is taken for a result, a flow goes on where it
//! ended, and two flows at once do not meet.

use super::board::Board;
use super::child::Running;
use super::design::{self, Sources};
use super::files::write;
use super::model::READ_BACK;
use super::report::Bitstream;
use super::tools::{Readers, Tool, Tools};
use super::{FlowError, Request};
use crate::cache;
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// What Yosys says of its work; what its readers print goes to the step's own log.
const YOSYS_LOG: &str = "yosys.log";

/// What the names of results begin with.
const PREFIX: &str = "synth-";

/// Lines of a program that wait to be told.
const LINES: usize = 64;

/// What a step tells while it runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress<'a> {
    /// The step's results were in the cache.
    Cached(&'static str),
    /// It begins.
    Started(&'static str),
    /// It wrote a line.
    Line(&'a str),
    /// It is done after so long.
    Done(&'static str, Duration),
    /// Of the programs of a netlist's check so many have run.
    Running {
        /// The netlist.
        what: &'static str,
        /// Programs that have run.
        done: usize,
        /// All.
        of: usize,
    },
    /// The fastest clock that is expected of the routed design, and the one that is wanted, MHz.
    Estimated {
        /// The wanted clock.
        wanted: f64,
        /// The expected one.
        mhz: f64,
    },
}

/// The steps that leave their files in the flow's folder.
const SYNTHESIS: &str = "synthesis";
const ROUTE: &str = "place and route";
const PACK: &str = "bitstream";

/// The logs of those steps.
pub(super) fn logs() -> impl Iterator<Item = String> {
    [SYNTHESIS, ROUTE, PACK].into_iter().map(log_of).chain([YOSYS_LOG.to_string()])
}

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
    inputs: Vec<(String, Vec<u8>)>,
    outputs: Vec<String>,
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

    /// Whether all its files are there, as they were when the step was done: a disk that filled up, or power that went, leaves others.
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

    pub(super) fn input(&self, name: &str) -> Result<(String, Vec<u8>), FlowError> {
        let path = self.file(name);
        Ok((name.into(), std::fs::read(&path).map_err(|error| FlowError::io(&path, &error))?))
    }
}

impl<'a> Step<'a> {
    /// Sources to a netlist of the family's cells.
    pub(super) fn synthesis(tools: &'a Tools, sources: &Sources) -> Step<'a> {
        let mut outputs = vec![design::NETLIST.to_string(), design::NETLIST_VERILOG.into()];
        // The sources belong to the result.
        outputs.extend(sources.files.iter().map(|(name, _)| name.clone()));
        let inputs = sources.files.iter().map(|(name, text)| (name.clone(), text.clone().into_bytes())).collect();
        Step::script(SYNTHESIS, tools, design::SCRIPT, inputs, outputs)
    }

    /// A script of Yosys.
    pub(super) fn script(
        name: &'static str,
        tools: &'a Tools,
        script: &str,
        inputs: Vec<(String, Vec<u8>)>,
        mut outputs: Vec<String>,
    ) -> Step<'a> {
        outputs.push(YOSYS_LOG.into());
        let arguments = vec!["-ql".into(), YOSYS_LOG.into(), script.into()];
        Step { name, tool: &tools.yosys, arguments, inputs, outputs }
    }

    /// A netlist to a placed and routed one.
    pub(super) fn route(request: &Request, tools: &'a Tools, synthesis: &Done) -> Result<Step<'a>, FlowError> {
        let family = request.board.family;
        let tool = tools.router.as_ref().ok_or_else(|| FlowError::MissingTool {
            tool: "nextpnr".into(),
            reason: format!("routes no part of {}", family.name()),
            remedy: family.install().into(),
        })?;
        let mut arguments = family.route_options(request.board);
        arguments.extend([
            "--json".into(),
            design::NETLIST.into(),
            "--write".into(),
            design::ROUTED_NETLIST.into(),
            "--report".into(),
            design::ROUTE_REPORT.into(),
            "--freq".into(),
            format!("{}", request.mhz),
            "--seed".into(),
            format!("{}", request.seed),
            "--timing-allow-fail".into(),
        ]);
        let mut outputs = vec![design::ROUTED_NETLIST.to_string(), design::ROUTE_REPORT.into()];
        if family.routed_file() != design::ROUTED_NETLIST {
            outputs.push(family.routed_file().into());
        }
        Ok(Step {
            name: ROUTE,
            tool,
            arguments,
            inputs: vec![synthesis.input(design::NETLIST)?, synthesis.input(family.constraints_file())?],
            outputs,
        })
    }

    /// A routed design to a bitstream.
    pub(super) fn pack(request: &Request, tools: &'a Tools, routed: &Done) -> Result<Step<'a>, FlowError> {
        let family = request.board.family;
        let tool = tools.packer.as_ref().ok_or_else(|| FlowError::MissingTool {
            tool: family.packer().into(),
            reason: "was not found".into(),
            remedy: family.install().into(),
        })?;
        Ok(Step {
            name: PACK,
            tool,
            arguments: family.pack_options(request.board),
            inputs: vec![routed.input(family.routed_file())?],
            outputs: vec![family.bitstream_file().into()],
        })
    }

    /// A bitstream to what was packed.
    pub(super) fn unpack(board: &Board, tools: &'a Readers, packed: &Done) -> Result<Step<'a>, FlowError> {
        let (from, to) = (board.family.bitstream_file(), board.family.routed_file());
        Ok(Step {
            name: "unpacking",
            tool: &tools.unpacker,
            arguments: vec![from.into(), to.into()],
            inputs: vec![packed.input(from)?],
            outputs: vec![to.into()],
        })
    }

    /// What was packed to Verilog.
    pub(super) fn read_back(board: &Board, tools: &'a Readers, unpacked: &Done) -> Result<Step<'a>, FlowError> {
        let (from, pins) = (board.family.routed_file(), board.family.constraints_file());
        let options = [READ_BACK, "-s", "-c", "-n", design::TOP, "-d", &board.package, "-p", pins, from];
        Ok(Step {
            name: "reading back",
            tool: &tools.reader,
            arguments: options.map(String::from).to_vec(),
            inputs: vec![unpacked.input(from)?, (pins.into(), board.family.constraints(board).into_bytes())],
            outputs: vec![READ_BACK.into()],
        })
    }

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
        for (name, bytes) in &self.inputs {
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
        for (name, bytes) in &self.inputs {
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

/// Calls a program in a folder, with what it prints in the log and line by line in the progress. Where its time is over first, it is
/// killed, and nothing is told of its end.
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
    // It takes the command, and with it this program's ends of the pipe, which ends once nobody can write into it.
    let mut running = Running::start(command).map_err(|error| io(&error))?;
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
        let line = match end.map(|end| end.saturating_duration_since(Instant::now())) {
            Some(Duration::ZERO) => return Ok(None),
            Some(left) => lines.recv_timeout(left),
            None => lines.recv().map_err(RecvTimeoutError::from),
        };
        let line = match line {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        file.write_all(&line).map_err(|error| FlowError::io(&path, &error))?;
        progress(Progress::Line(String::from_utf8_lossy(&line).trim_end()));
    }
    running.wait_until(end).map_err(|error| io(&error))
}

/// The error of a program that failed, with what its log says of why.
pub(super) fn failed(step: &'static str, reason: &str, log: PathBuf) -> FlowError {
    let bytes = std::fs::read(&log).unwrap_or_default();
    FlowError::Tool { step, reason: format!("{reason}\n{}", essence(&String::from_utf8_lossy(&bytes))), log }
}

/// The lines of a log that say why a program ended: its errors, or else its last lines.
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

    /// Whether the process whose number is in a file is gone soon.
    fn is_gone(pid: &Path) -> bool {
        let pid = std::fs::read_to_string(pid).expect("it wrote its number");
        tilewright_testing::is_gone(pid.trim().parse().expect("a number"))
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_ends_with_its_time_or_where_its_log_cannot_be_written() {
        let dir = tempfile::tempdir().expect("a folder");
        let begun = Instant::now();
        // What it starts ends with it; what it prints without a pause does not keep it.
        let script = "sleep 60 & echo $! > pid; while :; do echo a; sleep 0.01; done";
        let limited = shell(script, Some(Duration::from_millis(500)));
        let ended = call(&limited, &[], dir.path(), "log", &mut |_| {}).expect("it is killed");
        assert!(ended.is_none() && is_gone(&dir.path().join("pid")));
        assert!(std::fs::read_to_string(dir.path().join("log")).expect("a log").starts_with("a\na\n"));
        // Nor one that says nothing any more.
        let silent = shell("exec >&- 2>&-; sleep 60", Some(Duration::from_millis(100)));
        assert!(call(&silent, &[], dir.path(), "log", &mut |_| {}).expect("it is killed").is_none());

        std::os::unix::fs::symlink("/dev/full", dir.path().join("full")).expect("a link");
        let endless = shell("echo $$ > pid; echo a; exec sleep 60", None);
        let error = call(&endless, &[], dir.path(), "full", &mut |_| {}).expect_err("nothing can be written");
        assert!(matches!(error, FlowError::Io { .. }) && is_gone(&dir.path().join("pid")), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_result_whose_files_are_not_as_they_were_is_made_anew() {
        let dir = tempfile::tempdir().expect("a folder");
        let tool = shell("echo made > a; echo made > b", None);
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
