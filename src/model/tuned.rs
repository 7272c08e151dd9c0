//! `tune`: a search whose records go to a log.

#[cfg(feature = "llvm")]
pub mod cpu;
mod device;
mod report;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use super::build::{Options, partitioned};
use super::clock::CycleModel;
use super::error::ModelError;
use super::plans::{Tuned, parse};
use tilewright_compiler::cost::Clock;
use tilewright_compiler::graph::Graph;
use tilewright_compiler::records::{Log, Record, config_key};
use tilewright_compiler::tune::{self, Progress, Report};

pub use device::tune_on;

/// How to tune a model.
#[derive(Debug, Clone)]
pub struct TuneRequest<'a> {
    /// How the model is compiled. The search starts from this.
    pub options: Options<'a>,
    /// The log. If it exists, its trials are not repeated.
    pub log: &'a Path,
    /// Seed of all random decisions.
    pub seed: u64,
    /// Number of threads.
    pub threads: usize,
    /// Maximum number of trials, including those of the log.
    pub trials: Option<usize>,
    /// Maximum time.
    pub time: Option<Duration>,
    /// Name of a node; only its layer is tuned.
    pub layer: Option<&'a str>,
}

/// The result of a search, and what was not used of an existing log.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuning {
    /// The result.
    pub report: Report,
    /// Number of the log's lines that are not used, by reason.
    pub skipped: BTreeMap<String, usize>,
}

/// What judges trials.
struct Judge<'a> {
    clock: &'a (dyn Clock + Sync),
    /// The share of a program's cycles by which it can differ from run to run.
    jitter: f64,
}

/// Searches for better plans of a model's layers with the cycle model, and appends a record to the log for each trial and
/// each choice.
///
/// # Errors
/// [`ModelError::Log`] if the log cannot be read or written, [`ModelError::Tune`] if there is nothing to tune, or why
/// the model does not compile.
pub fn tune(graph: Graph, request: &TuneRequest, progress: &mut dyn FnMut(Progress)) -> Result<Tuning, ModelError> {
    let clock = CycleModel { config: request.options.config };
    tune_by(graph, request, &Judge { clock: &clock, jitter: 0.0 }, progress)
}

/// As [`tune`], with another judge.
fn tune_by(
    graph: Graph,
    request: &TuneRequest,
    judge: &Judge,
    progress: &mut dyn FnMut(Progress),
) -> Result<Tuning, ModelError> {
    let config = request.options.config;
    let (log, mut file) = open(request.log, &[config_key(config)])?;
    let (graph, partition) = partitioned(graph, &request.options, &mut |_, _| {})?;
    let request = tune::Request {
        graph: &graph,
        config,
        partition: &partition,
        clock: judge.clock,
        sieve: &CycleModel { config },
        jitter: judge.jitter,
        known: &log.records,
        seed: request.seed,
        threads: request.threads,
        trials: request.trials,
        time: request.time,
        layer: request.layer,
    };
    let report = tune::tune(&request, &mut |record| file.write(record), progress)?;
    Ok(Tuning { report, skipped: log.skipped })
}

/// A log to which records are appended. It is removed if it is new and gets no record.
#[derive(Debug)]
struct LogFile<'a> {
    path: &'a Path,
    file: File,
    is_new: bool,
    /// The length of the log without its incomplete last line, until that line is removed.
    cut: Option<u64>,
}

impl LogFile<'_> {
    /// Appends a record. A line is written at once, so that a killed search leaves at most one incomplete line.
    fn write(&mut self, record: &Record) -> io::Result<()> {
        if let Some(length) = self.cut.take() {
            self.file.set_len(length)?;
        }
        self.file.write_all(record.line().as_bytes())
    }
}

impl Drop for LogFile<'_> {
    fn drop(&mut self) {
        if self.is_new && self.file.metadata().is_ok_and(|found| found.len() == 0) {
            let _ = std::fs::remove_file(self.path);
        }
    }
}

/// Opens a log to append records to it. The first record replaces an incomplete last line.
fn open<'a>(path: &'a Path, keys: &[String]) -> Result<(Log, LogFile<'a>), ModelError> {
    let fail = |what: &str, e: io::Error| ModelError::Log { path: path.into(), reason: format!("{what}: {e}") };
    // Another process would get the records of a pipe, and devices have no end.
    if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Err(ModelError::Log { path: path.into(), reason: "the log must be a file".into() });
    }
    let log = match Tuned::read(path) {
        Ok(Tuned::File { text, .. }) => parse(path, &text, keys)?,
        Err(error) if path.exists() => return Err(error),
        _ => Log::default(),
    };
    let is_new = !path.exists();
    let file = OpenOptions::new().create(true).append(true).open(path);
    let file = file.map_err(|e| fail("the log cannot be written", e))?;
    let length = file.metadata().map_err(|e| fail("the log cannot be read", e))?.len();
    let cut = Some(log.whole_bytes as u64).filter(|whole| length > *whole);
    Ok((log, LogFile { path, file, is_new, cut }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_compiler::records::Outcome;
    use tilewright_hw::config::HwConfig;

    #[test]
    fn an_incomplete_line_is_removed_before_others_are_appended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let config = [config_key(&HwConfig::default())];
        std::fs::write(&path, "\n{\"schema\":1").unwrap();
        let (log, mut file) = open(&path, &config).unwrap();
        assert_eq!(log.skipped.values().sum::<usize>(), 1);
        let text = || std::fs::read_to_string(&path).unwrap();
        assert_eq!(text(), "\n{\"schema\":1", "nothing is removed before there is a record");
        let [layer, near, config_of] = [(); 3].map(|()| String::new());
        let (decisions, outcome) = (Default::default(), Outcome::Fastest { ns: 1 });
        let record = Record { schema: 0, config: config_of, layer, near, text: String::new(), decisions, outcome };
        file.write(&record).unwrap();
        assert_eq!(text(), format!("\n{}", record.line()));
        std::fs::write(&path, "\nx\n").unwrap();
        let error = open(&path, &config).unwrap_err().to_string();
        assert!(error.contains("log.jsonl: line 2 is damaged: it is not JSON"), "{error}");
        let error = open(folder.path(), &config).unwrap_err().to_string();
        assert!(error.contains("the log cannot be read"), "{error}");
        #[cfg(unix)]
        for device in ["/dev/full", "/dev/zero"] {
            let error = open(Path::new(device), &config).unwrap_err().to_string();
            assert!(error.contains("the log must be a file"), "{error}");
        }
        let error = open(&folder.path().join("no/log"), &config).unwrap_err().to_string();
        assert!(error.contains("the log cannot be written"), "{error}");
    }
}
