//! Reads logs.

use super::record::{Record, SCHEMA, config_key};
use serde_json::Value;
use std::collections::BTreeMap;
use tilewright_hw::HwConfig;

/// The records of a log for a configuration, for a processor, or for both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    /// The records, in the log's order.
    pub records: Vec<Record>,
    /// Number of lines that are not used, by reason.
    pub skipped: BTreeMap<String, usize>,
    /// Number of bytes of complete lines. What follows them is the beginning of a line that was never completed.
    pub whole_bytes: usize,
}

/// A damaged line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is damaged: {reason}; remove the line")]
pub struct LogError {
    /// Number of the line, from 1.
    pub line: usize,
    /// The problem.
    pub reason: String,
}

impl Log {
    /// Reads a log's lines for a configuration. Lines for another one or of another version are counted and skipped, and
    /// so is an incomplete last line, which a killed `tune` leaves.
    ///
    /// # Errors
    /// The first damaged line.
    pub fn parse(text: &str, config: &HwConfig) -> Result<Log, LogError> {
        Log::parse_for(text, &[config_key(config)])
    }

    /// Like [`Log::parse`], for the configurations and processors with these keys.
    ///
    /// # Errors
    /// The same as [`Log::parse`].
    pub fn parse_for(text: &str, keys: &[String]) -> Result<Log, LogError> {
        let whole_bytes = text.rfind('\n').map_or(0, |end| end + 1);
        let mut log = Log { whole_bytes, ..Log::default() };
        let mut skip = |reason: String| *log.skipped.entry(reason).or_default() += 1;
        let (whole, rest) = text.split_at(whole_bytes);
        if !rest.trim().is_empty() {
            if !begins_a_record(rest.trim()) {
                let reason = "it is not the beginning of a record".into();
                return Err(LogError { line: whole.lines().count() + 1, reason });
            }
            skip("the last line is incomplete".into());
        }
        for (i, line) in whole.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let damaged = |reason: String| LogError { line: i + 1, reason };
            let value: Value = serde_json::from_str(line).map_err(|e| damaged(format!("it is not JSON ({e})")))?;
            match value.get("schema").and_then(Value::as_u64) {
                Some(version) if version == u64::from(SCHEMA) => {}
                Some(version) => {
                    skip(format!("schema version {version} instead of {SCHEMA}; tune again"));
                    continue;
                }
                None => return Err(damaged("it has no schema version".into())),
            }
            let record: Record = serde_json::from_value(value).map_err(|e| damaged(e.to_string()))?;
            if keys.contains(&record.config) {
                log.records.push(record);
            } else {
                skip("for another hardware configuration or processor".into());
            }
        }
        Ok(log)
    }
}

/// Whether a text can be what a killed search wrote of a record's line.
fn begins_a_record(text: &str) -> bool {
    const BEGIN: &str = "{\"schema\":";
    text.starts_with(BEGIN) || BEGIN.starts_with(text)
}

#[cfg(test)]
mod tests {
    use super::super::record::Outcome;
    use super::*;
    use crate::codegen::accel::space::Decisions;

    fn record(config: &HwConfig) -> Record {
        Record {
            schema: SCHEMA,
            config: config_key(config),
            layer: "a".into(),
            near: "b".into(),
            text: "Pool".into(),
            decisions: Decisions::new([("rows", 7.into())]),
            outcome: Outcome::Chosen { cycles: 5 },
        }
    }

    #[test]
    fn other_versions_and_configurations_are_skipped_and_counted() {
        let (config, other) = (HwConfig::default(), HwConfig { inp_depth: 4096, ..HwConfig::default() });
        let newer = Record { schema: SCHEMA + 1, ..record(&config) };
        let lines = [record(&config), record(&other), newer, record(&config)].map(|r| r.line()).concat();
        let log = Log::parse(&format!("{lines}\n{{\"schema\":1,\"conf"), &config).unwrap();
        assert_eq!(log.records, vec![record(&config); 2]);
        assert_eq!(log.whole_bytes, lines.len() + 1);
        let skipped: Vec<_> = log.skipped.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
        let newer = format!("1 schema version {} instead of {SCHEMA}; tune again", SCHEMA + 1);
        assert_eq!(
            skipped,
            ["1 for another hardware configuration or processor", &newer, "1 the last line is incomplete"]
        );
    }

    #[test]
    fn a_damaged_line_is_named() {
        let config = HwConfig::default();
        let good = record(&config).line();
        let check = |bad: &str, reason: &str| {
            let error = Log::parse(&format!("{good}{bad}\n{good}"), &config).unwrap_err();
            assert_eq!(error.line, 2);
            let text = error.to_string();
            assert!(text.starts_with("line 2 is damaged: ") && text.contains(reason), "{text}");
        };
        check("{\"schema\": 1, \"confi", "it is not JSON");
        check("{}", "it has no schema version");
        check("[1]", "it has no schema version");
        check(&good.trim().replace("\"layer\"", "\"lair\""), "missing field `layer`");
        check(&good.trim().replace(":5", ":-5"), "invalid value");
        assert_eq!(Log::parse("", &config), Ok(Log::default()));
        for other in ["[1, 2]", "{\"a\": 1}", "hello"] {
            let error = Log::parse(&format!("{good}{other}"), &config).unwrap_err();
            assert_eq!(error.to_string(), "line 2 is damaged: it is not the beginning of a record; remove the line");
        }
        let begun = &good[..good.len() / 2];
        assert!((1..begun.len()).all(|n| Log::parse(&begun[..n], &config).is_ok()));
    }
}
