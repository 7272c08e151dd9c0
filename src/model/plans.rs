//! Plans of layers that were found earlier: which records a compilation uses.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tilewright_compiler::records::{Log, Records, config_key};
use tilewright_hw::config::HwConfig;

use super::error::ModelError;
use super::processor;

/// The log that this program brings along; `make tuned-log` writes it.
const SHIPPED: &str = include_str!("tuned/shipped.jsonl");

/// Maximum size of a log. A line has about 400 bytes; a device such as `/dev/zero` has no end.
const MOST_BYTES: u64 = 512 << 20;

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

/// The records for a configuration and for a processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    records: Option<Records>,
    /// Number of the log's lines that are not used, by reason.
    pub skipped: BTreeMap<String, usize>,
}

impl Loaded {
    /// The records for a compilation.
    pub fn get(&self) -> Option<&Records> {
        self.records.as_ref()
    }
}

impl Tuned {
    /// Reads a log.
    ///
    /// # Errors
    /// [`ModelError::Log`]: the file cannot be read, is too long, or is no text.
    pub fn read(path: &Path) -> Result<Tuned, ModelError> {
        let fail = |reason: String| ModelError::Log { path: path.into(), reason };
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
        read.map_err(|e| fail(format!("the log cannot be read: {e}")))?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(fail(format!("the log is longer than {} MiB", MOST_BYTES >> 20)));
        }
        let text = String::from_utf8(bytes).map_err(|_| fail("this is not a log of tilewright tune".into()))?;
        Ok(Tuned::File { path: path.into(), text })
    }

    /// Returns the records for a configuration, and for a processor: this machine's, unless it is named.
    ///
    /// # Errors
    /// [`ModelError::Log`]: a line is damaged.
    pub fn load(&self, config: &HwConfig, processor: Option<&str>) -> Result<Loaded, ModelError> {
        let mut records = match self {
            Tuned::Nothing => return Ok(Loaded { records: None, skipped: BTreeMap::new() }),
            Tuned::Shipped | Tuned::File { .. } => shipped(config).cloned().unwrap_or_default(),
        };
        let mut skipped = BTreeMap::new();
        if let Tuned::File { path, text } = self {
            let keys: Vec<String> = [config_key(config)].into_iter().chain(processor::key(processor)).collect();
            let log = parse(path, text, &keys)?;
            records.add(&log.records);
            skipped = log.skipped;
        }
        Ok(Loaded { records: Some(records), skipped })
    }
}

/// Reads the text of a log for the configurations and processors with these keys.
///
/// # Errors
/// [`ModelError::Log`]: a line is damaged.
pub fn parse(path: &Path, text: &str, keys: &[String]) -> Result<Log, ModelError> {
    Log::parse_for(text, keys).map_err(|e| ModelError::Log { path: path.into(), reason: e.to_string() })
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

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_hw::config::PRESETS;

    #[test]
    fn the_shipped_log_has_records_of_this_version() {
        let mut found = 0;
        for (name, _) in PRESETS {
            let log = Log::parse(SHIPPED, &HwConfig::load(name).unwrap()).unwrap();
            assert!(log.skipped.keys().all(|reason| reason.starts_with("for another")), "{:?}", log.skipped);
            found += log.records.len();
        }
        assert_eq!(found, SHIPPED.lines().count(), "each record is for a preset");
        assert!(shipped(&HwConfig::load("1x16x16").unwrap()).is_some());
    }
}
