//! What several commands need: verdicts, the option `--hw`, files and errors.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tilewright_hw::config::{ConfigError, HwConfig};
use tilewright_hw::flow::board::Board;

/// What a command found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All is well.
    Fine,
    /// The check said no.
    No,
}

/// An error with its causes, without those that its own words tell already.
pub fn in_one_line(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text.as_str() {
        "" => cause,
        told if told.contains(&cause) => text,
        told => format!("{told}: {cause}"),
    })
}

/// The hardware configuration that a command works for.
#[derive(clap::Args)]
pub struct Hw {
    /// Hardware configuration: a preset's name, a board's, or a TOML file [default: 1x16x16, or an artifact's own]
    #[arg(long = "hw", value_name = "NAME|FILE.toml")]
    name: Option<String>,
}

/// The configuration where none is asked for.
pub const DEFAULT_HW: &str = "1x16x16";

/// Whether a board comes along under this name, or lies in this folder.
fn is_board(name: &str) -> bool {
    Board::names().iter().any(|board| board == name) || Path::new(name).join("board.toml").is_file()
}

/// The configuration of a preset, of a board, with its clock and host, or of a file.
pub fn load_hw(name: &str) -> Result<HwConfig> {
    match HwConfig::load(name) {
        Err(ConfigError::Unknown { .. }) if is_board(name) => {
            let config = Board::load(name)?.default_config()?;
            // So that boards of one configuration can be told apart.
            Ok(HwConfig { name: name.into(), ..config })
        }
        config => Ok(config?),
    }
}

impl Hw {
    /// Reads and checks it.
    pub fn load(&self) -> Result<HwConfig> {
        load_hw(self.name.as_deref().unwrap_or(DEFAULT_HW))
    }

    /// Whether none was asked for.
    pub fn is_default(&self) -> bool {
        self.name.is_none()
    }
}

/// Reads a file, naming it where that fails.
pub fn read_file(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file whole, or prints text on standard output where there is no path.
pub fn write_or_print(path: Option<&PathBuf>, bytes: &[u8]) -> Result<()> {
    match path {
        Some(path) => tilewright_runtime::files::write_whole(path, &[bytes])
            .with_context(|| format!("cannot write {}", path.display())),
        None => {
            use std::io::Write;
            match std::io::stdout().lock().write_all(bytes) {
                // A reader that has seen enough, as `head` does, is no failure.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
                outcome => outcome.context("cannot write to standard output"),
            }
        }
    }
}
