//! Logs of `tune`: which records a compilation uses, and a search whose records go to a file.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use tilewright_compiler::graph::Graph;
use tilewright_compiler::records::{Log, Record, Records, config_key};
use tilewright_compiler::tune::{self, Progress, Report};
use tilewright_hw::config::HwConfig;

use super::build::{Options, partitioned};
use super::clock::CycleModel;
use super::error::ModelError;

/// The log that this program brings along; `make tuned-log` writes it.
const SHIPPED: &str = include_str!("tuned/shipped.jsonl");

/// Which plans that were found earlier a compilation uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Tuned {
    /// Those of the log that this program brings along.
    #[default]
    Shipped,
    /// None.
    Nothing,
    /// Those of a log, and for other layers those that this program brings along.
    File {
        /// The file.
        path: PathBuf,
        /// What it says.
        text: String,
    },
}

/// The records for a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    records: Option<Records>,
    /// Number of the log's lines that are not used, by reason.
    pub skipped: BTreeMap<String, usize>,
}

impl Loaded {
    /// The records for [`Options::records`].
    pub fn get(&self) -> Option<&Records> {
        self.records.as_ref()
    }
}

impl Tuned {
    /// Reads a log.
    ///
    /// # Errors
    /// [`ModelError::Log`]: the file cannot be read, or is no text.
    pub fn read(path: &Path) -> Result<Tuned, ModelError> {
        let fail = |reason: String| ModelError::Log { path: path.into(), reason };
        let bytes = std::fs::read(path).map_err(|e| fail(format!("the log cannot be read: {e}")))?;
        let text = String::from_utf8(bytes).map_err(|_| fail("this is not a log of tilewright tune".into()))?;
        Ok(Tuned::File { path: path.into(), text })
    }

    /// Returns the records for a configuration.
    ///
    /// # Errors
    /// [`ModelError::Log`]: a line is damaged.
    pub fn load(&self, config: &HwConfig) -> Result<Loaded, ModelError> {
        let mut records = match self {
            Tuned::Nothing => return Ok(Loaded { records: None, skipped: BTreeMap::new() }),
            Tuned::Shipped | Tuned::File { .. } => shipped(config).cloned().unwrap_or_default(),
        };
        let mut skipped = BTreeMap::new();
        if let Tuned::File { path, text } = self {
            let log = parse(path, text, config)?;
            records.add(&log.records);
            skipped = log.skipped;
        }
        Ok(Loaded { records: Some(records), skipped })
    }
}

fn parse(path: &Path, text: &str, config: &HwConfig) -> Result<Log, ModelError> {
    Log::parse(text, config).map_err(|e| ModelError::Log { path: path.into(), reason: e.to_string() })
}

/// Returns the records that this program brings along for a configuration; `None` if there are none.
pub fn shipped(config: &HwConfig) -> Option<&'static Records> {
    /// Records by the configuration's key, read once.
    static READ: Mutex<BTreeMap<String, Option<&'static Records>>> = Mutex::new(BTreeMap::new());
    let mut read = READ.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    *read.entry(config_key(config)).or_insert_with(|| {
        let log = Log::parse(SHIPPED, config).unwrap_or_default();
        let mut records = Records::default();
        records.add(&log.records);
        (!records.is_empty()).then(|| &*Box::leak(Box::new(records)))
    })
}

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

/// Searches for better plans of a model's layers, and appends a record to the log for each trial and each choice.
///
/// # Errors
/// [`ModelError::Log`] if the log cannot be read or written, [`ModelError::Tune`] if there is nothing to tune, or why
/// the model does not compile.
pub fn tune(graph: Graph, request: &TuneRequest, progress: &mut dyn FnMut(Progress)) -> Result<Tuning, ModelError> {
    let config = request.options.config;
    let (log, mut file) = open(request.log, config)?;
    let (graph, partition) = partitioned(graph, &request.options, &mut |_, _| {})?;
    let request = tune::Request {
        graph: &graph,
        config,
        partition: &partition,
        clock: &CycleModel { config },
        known: &log.records,
        seed: request.seed,
        threads: request.threads,
        trials: request.trials,
        time: request.time,
        layer: request.layer,
    };
    // A line is written at once, so that a killed search leaves at most one incomplete line.
    let mut write = |record: &Record| file.write_all(record.line().as_bytes());
    let report = tune::tune(&request, &mut write, progress)?;
    Ok(Tuning { report, skipped: log.skipped })
}

/// Opens a log to append records to it. An incomplete last line is removed.
fn open(path: &Path, config: &HwConfig) -> Result<(Log, File), ModelError> {
    let fail = |what: &str, e: io::Error| ModelError::Log { path: path.into(), reason: format!("{what}: {e}") };
    let log = match Tuned::read(path) {
        Ok(Tuned::File { text, .. }) => parse(path, &text, config)?,
        Err(error) if path.exists() => return Err(error),
        _ => Log::default(),
    };
    let file = OpenOptions::new().create(true).append(true).open(path);
    let file = file.map_err(|e| fail("the log cannot be written", e))?;
    let length = file.metadata().map_err(|e| fail("the log cannot be read", e))?.len();
    if length > log.whole_bytes as u64 {
        file.set_len(log.whole_bytes as u64).map_err(|e| fail("the log cannot be written", e))?;
    }
    Ok((log, file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_hw::config::PRESETS;

    #[test]
    fn the_shipped_log_can_be_read() {
        for (name, _) in PRESETS {
            let config = HwConfig::load(name).unwrap();
            assert!(Log::parse(SHIPPED, &config).is_ok());
        }
    }

    #[test]
    fn an_incomplete_line_is_removed_before_others_are_appended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let config = HwConfig::default();
        std::fs::write(&path, "\n{\"schema\":1").unwrap();
        let (log, mut file) = open(&path, &config).unwrap();
        assert_eq!(log.skipped.values().sum::<usize>(), 1);
        file.write_all(b"x\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "\nx\n");
        let error = open(&path, &config).unwrap_err().to_string();
        assert!(error.contains("log.jsonl: line 2 is damaged: it is not JSON"), "{error}");
        let error = open(folder.path(), &config).unwrap_err().to_string();
        assert!(error.contains("the log cannot be read"), "{error}");
        let error = open(&folder.path().join("no/log"), &config).unwrap_err().to_string();
        assert!(error.contains("the log cannot be written"), "{error}");
    }
}
