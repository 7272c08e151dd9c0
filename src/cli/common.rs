//! Shared by several commands: verdicts, the option `--hw`, and files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tilewright::device::{DEFAULT_HW, load_hw};
use tilewright_hw::config::HwConfig;

/// Result of a command that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Everything is fine.
    Fine,
    /// A check failed.
    No,
}

/// The option `--hw`: the hardware configuration to work for.
#[derive(clap::Args)]
pub struct Hw {
    /// Hardware configuration: the name of a preset or a board, or a TOML file [default: 1x16x16, or the artifact's
    /// own]
    #[arg(long = "hw", value_name = "NAME|FILE.toml")]
    name: Option<String>,
}

impl Hw {
    /// Loads and checks the configuration.
    pub fn load(&self) -> Result<HwConfig> {
        Ok(load_hw(self.name.as_deref().unwrap_or(DEFAULT_HW))?)
    }

    /// Whether `--hw` was not given.
    pub fn is_default(&self) -> bool {
        self.name.is_none()
    }
}

/// Reads a file; the error contains its path.
pub fn read_file(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file completely or not at all; without a path, prints the text on standard output.
pub fn write_or_print(path: Option<&PathBuf>, bytes: &[u8]) -> Result<()> {
    match path {
        Some(path) => tilewright_runtime::files::write_whole(path, &[bytes])
            .with_context(|| format!("cannot write {}", path.display())),
        None => {
            use std::io::Write;
            match std::io::stdout().lock().write_all(bytes) {
                // A reader that closes the pipe early, as `head` does, is no failure.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
                outcome => outcome.context("cannot write to standard output"),
            }
        }
    }
}
