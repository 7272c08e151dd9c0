//! What is asked of a device beyond running commands.

use std::path::Path;

/// What a device must do beyond running commands.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras<'a> {
    /// Record the design's signals in this file.
    pub waves: Option<&'a Path>,
    /// Refuse programs with races, with port conflicts that only timing avoids, and with reads of unwritten memory.
    pub strict: bool,
    /// Report when each instruction started and retired, and what it waited for.
    pub spans: bool,
    /// Abort a command after so many cycles, or instructions on a device without cycles.
    pub max_cycles: Option<u64>,
}
