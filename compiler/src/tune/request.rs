//! What to tune, and the result.

use crate::codegen::accel::space::Decisions;
use crate::cost::Clock;
use crate::graph::Graph;
use crate::partition::Partition;
use crate::records::Record;
use std::time::Duration;
use tilewright_hw::HwConfig;
use tilewright_hw::interrupt::Interrupted;

/// What to tune.
pub struct Request<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The configuration.
    pub config: &'a HwConfig,
    /// The graph's partition.
    pub partition: &'a Partition,
    /// Judges trials and whole programs.
    pub clock: &'a (dyn Clock + Sync),
    /// Judges plans without their neighbors, most of which it rejects.
    pub sieve: &'a (dyn Clock + Sync),
    /// The share of a program's cycles by which `clock` can differ from run to run; 0 if it is exact.
    pub jitter: f64,
    /// Records of an earlier search. Their trials are not repeated.
    pub known: &'a [Record],
    /// Seed of all random decisions.
    pub seed: u64,
    /// Number of threads.
    pub threads: usize,
    /// Maximum number of trials, including known ones.
    pub trials: Option<usize>,
    /// Maximum time.
    pub time: Option<Duration>,
    /// Name of a node; only its layer is tuned.
    pub layer: Option<&'a str>,
}

/// Why nothing can be tuned.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// There is no layer.
    #[error("no layer runs on the accelerator of this configuration, so there is nothing to tune")]
    Nothing,
    /// There is no layer of this name.
    #[error("no layer on the accelerator contains a node {layer}; the layers are: {}", .there.join(", "))]
    NoLayer {
        /// The name.
        layer: String,
        /// The names of all layers.
        there: Vec<String>,
    },
    /// There is no layer with a choice on the CPU.
    #[error(
        "no layer has a choice on the CPU, so there is nothing to tune; products with constant weights and poolings have"
    )]
    NothingOnCpu,
    /// There is no such layer with a choice on the CPU.
    #[error("no layer with a choice on the CPU contains a node {layer}; the layers are: {}", .there.join(", "))]
    NoCpuLayer {
        /// The name.
        layer: String,
        /// The names of all layers with a choice.
        there: Vec<String>,
    },
    /// The search was stopped from outside.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The programs cannot be timed.
    #[error("the model's programs cannot be timed, so plans cannot be compared")]
    Untimed,
    /// A record cannot be written.
    #[error("a record cannot be written: {0}")]
    Write(#[from] std::io::Error),
}

/// How far a search is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Number of trials, including known ones.
    pub trials: usize,
    /// Cycles of all programs if the windows' best plans gain as much in them.
    pub best: u64,
}

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Cycles of all programs before and after.
    pub cycles: [u64; 2],
    /// Number of new trials.
    pub trials: usize,
    /// Number of trials that were known.
    pub known: usize,
    /// Number of known trials that are not used, because their decisions now take other cycles.
    pub stale: usize,
    /// Seconds that threads spent on trials, together.
    pub seconds: f64,
    /// Number of plans whose cycles were estimated, and the seconds of that, drawing included.
    pub estimated: usize,
    /// See `estimated`.
    pub estimate_seconds: f64,
    /// Number of plans that were timed without their neighbors, and the seconds that threads spent on that, together.
    pub alone: usize,
    /// See `alone`.
    pub alone_seconds: f64,
    /// Whether the search ended because there was nothing else to try.
    pub exhausted: bool,
    /// The different layers.
    pub layers: Vec<LayerResult>,
}

/// The result for a layer.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerResult {
    /// Name of the first such layer.
    pub name: String,
    /// Number of such layers.
    pub places: usize,
    /// Number of combinations of decisions.
    pub combinations: u64,
    /// Number of trials, including known ones.
    pub trials: usize,
    /// Cycles that the chosen decisions save in all places, as far as windows of neighbors show.
    pub gain: u64,
    /// The chosen decisions.
    pub decisions: Decisions,
}
