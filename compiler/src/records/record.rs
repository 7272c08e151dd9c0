//! A line of a log.

use super::workload::hash;
use crate::codegen::accel::space::Decisions;
use serde::{Deserialize, Serialize};
use tilewright_hw::HwConfig;

/// Version of the lines. It changes with their fields, and with the meaning of hashes and decisions; lines of other
/// versions are skipped.
pub const SCHEMA: u32 = 3;

/// A trial of `tune`, or its final choice for a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`] of the program that wrote it.
    pub schema: u32,
    /// [`config_key`] of the configuration.
    pub config: String,
    /// Hash of the layer's workload.
    pub layer: String,
    /// Hash of the workloads of the layer and its neighbors.
    pub near: String,
    /// Readable text of the layer's workload.
    pub text: String,
    /// The decisions.
    pub decisions: Decisions,
    /// What came of them.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What came of a layer's decisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// A trial in a program of the layer and its neighbors.
    Trial {
        /// Hash of the workloads and of the neighbors' decisions. Cycles with the same context can be compared.
        context: String,
        /// Cycles of that program; `None` if it cannot be built or run.
        cycles: Option<u64>,
    },
    /// The choice after all trials. The last one of a log counts.
    Chosen {
        /// Cycles of the program of the layer and its neighbors.
        cycles: u64,
    },
    /// A trial of a layer on the CPU.
    Timed {
        /// Measured nanoseconds; `None` if its code cannot be made or run.
        ns: Option<u64>,
    },
    /// The choice for a layer on the CPU after all trials.
    Fastest {
        /// Measured nanoseconds.
        ns: u64,
    },
}

impl Record {
    /// Returns the record as a line, with the line break.
    pub fn line(&self) -> String {
        // All fields are numbers, texts and maps with texts as keys, which JSON can represent.
        serde_json::to_string(self).map(|line| line + "\n").unwrap_or_default()
    }
}

/// Identifies a configuration by everything that determines cycles: the hardware and the model of its memory.
pub fn config_key(config: &HwConfig) -> String {
    hash(&format!("{:016x} {:?}", config.hash(), config.dram))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_can_be_read_back() {
        let config = HwConfig::default();
        let trial = Outcome::Trial { context: "c".into(), cycles: None };
        let measured = [Outcome::Timed { ns: None }, Outcome::Fastest { ns: 7 }];
        for outcome in [trial, Outcome::Chosen { cycles: 12 }].into_iter().chain(measured) {
            let decisions = Decisions::new([("rows", 7.into()), ("inner", "pixels".into())]);
            let (layer, near, text) = ("a".into(), "b".into(), "Pool".into());
            let record = Record { schema: SCHEMA, config: config_key(&config), layer, near, text, decisions, outcome };
            let line = record.line();
            assert!(line.ends_with("}\n") && line.matches('\n').count() == 1, "{line}");
            assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
        }
    }

    #[test]
    fn the_model_of_the_memory_is_part_of_the_configuration() {
        let config = HwConfig::default();
        let mut slow = config.clone();
        slow.dram.latency += 1;
        let renamed = HwConfig { name: "other".into(), ..config.clone() };
        assert_ne!(config_key(&config), config_key(&slow));
        assert_eq!(config_key(&config), config_key(&renamed));
    }
}
