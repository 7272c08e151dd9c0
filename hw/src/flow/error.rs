//! Why flows end without a result.

use super::report::Report;
use std::path::{Path, PathBuf};

/// Why a flow ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// No such board.
    #[error("no board is named {name}; there are {}, and folders with a board.toml by their path", boards.join(", "))]
    UnknownBoard {
        /// What was asked for.
        name: String,
        /// The boards that there are.
        boards: Vec<String>,
    },
    /// A board's file is wrong.
    #[error("{file}: {reason}")]
    Board {
        /// The file.
        file: String,
        /// What is wrong and what to write instead.
        reason: String,
    },
    /// A board and a configuration do not go together.
    #[error("{board} cannot have {config}: {reason}")]
    Unfit {
        /// The board.
        board: String,
        /// The configuration.
        config: String,
        /// Why not, with numbers.
        reason: String,
    },
    /// A folder holds nothing that goes onto a board.
    #[error("nothing of {} goes onto {board}: {reason}", dir.display())]
    NotFlashed {
        /// The board.
        board: String,
        /// The folder.
        dir: PathBuf,
        /// Why not, and what to do.
        reason: String,
    },
    /// A configuration is larger than the board's part.
    #[error("{board} cannot have {config}: {reason}")]
    TooLarge {
        /// The board.
        board: String,
        /// The configuration.
        config: String,
        /// What it takes, with numbers.
        reason: String,
        /// What is known of it.
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
        /// Its whole log.
        log: PathBuf,
    },
    /// A program did not come to its end in time.
    #[error(
        "{step} did not end within {minutes} minutes; give it more (--time-limit MINUTES), or ask for less: a smaller configuration, a \
         slower clock\nits log is {}", log.display()
    )]
    Late {
        /// The step.
        step: &'static str,
        /// The time that it had.
        minutes: f64,
        /// Its whole log.
        log: PathBuf,
    },
    /// A program's output cannot be read.
    #[error("{file} cannot be read as {what}: {reason}")]
    Output {
        /// The file.
        file: String,
        /// What it should be.
        what: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The clock is slower than was asked for.
    #[error(
        "{achieved:.1} MHz is the fastest clock of this result, {wanted:.1} were asked for; \
         ask for less (--mhz), try another seed (--seed), or keep the slow result (--allow-slow)"
    )]
    Slow {
        /// The clock that was asked for, MHz.
        wanted: f64,
        /// The fastest clock, MHz.
        achieved: f64,
        /// What is known of it.
        report: Box<Report>,
    },
    /// A file cannot be read or written.
    #[error("{}: {reason}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
}

impl FlowError {
    pub(super) fn io(path: &Path, error: &std::io::Error) -> FlowError {
        FlowError::Io { path: path.into(), reason: error.to_string() }
    }
}
