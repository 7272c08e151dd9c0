//! Errors of flows.

use super::report::Report;
use crate::interrupt::Interrupted;
use std::path::{Path, PathBuf};

/// An error of a flow, a board or flashing.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// The flow was stopped from outside.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// No board has this name.
    #[error("unknown board {name}; use one of {}, or the path of a folder with a board.toml", boards.join(", "))]
    UnknownBoard {
        /// The name that was given.
        name: String,
        /// All boards.
        boards: Vec<String>,
    },
    /// A board's file is invalid.
    #[error("{file}: {reason}")]
    Board {
        /// The file.
        file: String,
        /// What is wrong and what to write instead.
        reason: String,
    },
    /// A configuration cannot be built for a board.
    #[error("{config} does not fit {board}: {reason}")]
    Unfit {
        /// The board.
        board: String,
        /// The configuration.
        config: String,
        /// Why not, with numbers.
        reason: String,
    },
    /// A folder has no bitstream that can be loaded onto the board.
    #[error("cannot flash {} onto {board}: {reason}", dir.display())]
    NotFlashed {
        /// The board.
        board: String,
        /// The folder.
        dir: PathBuf,
        /// Why not, and what to do.
        reason: String,
    },
    /// A configuration needs more resources than the board's part has.
    #[error("{config} does not fit {board}: {reason}")]
    TooLarge {
        /// The board.
        board: String,
        /// The configuration.
        config: String,
        /// The resources that it needs, with numbers.
        reason: String,
        /// The report, without routing and bitstream.
        report: Box<Report>,
    },
    /// A program is missing or too old.
    #[error("{tool} {reason}; {remedy}")]
    MissingTool {
        /// The program.
        tool: String,
        /// What was found.
        reason: String,
        /// What to install.
        remedy: String,
    },
    /// A program failed.
    #[error("{step} failed: {reason}\nits log is {}", log.display())]
    Tool {
        /// The step.
        step: &'static str,
        /// The last lines that it wrote, or how it ended.
        reason: String,
        /// Its complete log.
        log: PathBuf,
    },
    /// A program exceeded its time limit.
    #[error(
        "{step} did not end within {minutes} minutes; raise the limit (--time-limit MINUTES), or use a smaller configuration or a slower \
         clock\nits log is {}", log.display()
    )]
    Late {
        /// The step.
        step: &'static str,
        /// The limit, minutes.
        minutes: f64,
        /// Its log so far.
        log: PathBuf,
    },
    /// A program's output cannot be parsed.
    #[error("{file} cannot be read as {what}: {reason}")]
    Output {
        /// The file.
        file: String,
        /// What it should be.
        what: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The design is slower than was asked for.
    #[error(
        "the fastest clock of this result is {achieved:.1} MHz, but {wanted:.1} MHz was asked for; \
         lower the clock (--mhz), try another seed (--seed), or keep the slow result (--allow-slow)"
    )]
    Slow {
        /// The clock that was asked for, MHz.
        wanted: f64,
        /// The fastest clock, MHz.
        achieved: f64,
        /// The report, without a bitstream.
        report: Box<Report>,
    },
    /// A file cannot be read or written, or a program cannot be started.
    #[error("{}: {reason}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        reason: String,
    },
}

impl FlowError {
    pub(super) fn io(path: &Path, error: &std::io::Error) -> FlowError {
        FlowError::Io { path: path.into(), reason: error.to_string() }
    }
}
