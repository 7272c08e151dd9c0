//! Hardware configurations by name.

use std::path::Path;

use tilewright_hw::config::{ConfigError, HwConfig};
use tilewright_hw::flow::FlowError;
use tilewright_hw::flow::board::Board;

/// The configuration if none is named.
pub const DEFAULT_HW: &str = "1x16x16";

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HwError {
    /// It is not valid, or there is none of that name.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its board cannot be read.
    #[error(transparent)]
    Board(#[from] FlowError),
    /// It lacks the clock or the host that times are computed from.
    #[error("{name} does not state {keys}, which times depend on; add to its table [host]: {lines}")]
    Times {
        /// The configuration.
        name: String,
        /// What it lacks.
        keys: String,
        /// Lines to add.
        lines: String,
    },
}

/// Whether `name` is a built-in board or a folder with a `board.toml`.
fn is_board(name: &str) -> bool {
    Board::names().iter().any(|board| board == name) || Path::new(name).join("board.toml").is_file()
}

/// Loads the configuration of a preset, of a board (with its clock and host) or of a file.
///
/// # Errors
/// [`HwError`].
pub fn load_hw(name: &str) -> Result<HwConfig, HwError> {
    match HwConfig::load(name) {
        Err(ConfigError::Unknown { .. }) if is_board(name) => {
            let config = Board::load(name)?.default_config()?;
            // The board's name tells boards with the same configuration apart.
            Ok(HwConfig { name: name.into(), ..config })
        }
        config => Ok(config?),
    }
}

/// Like [`load_hw`], for work whose result are times.
///
/// # Errors
/// [`HwError`]; [`HwError::Times`] if the configuration does not state its clock and host.
pub fn load_hw_with_times(name: &str) -> Result<HwConfig, HwError> {
    let config = load_hw(name)?;
    let unstated = match HwConfig::unstated_of_host(name) {
        // A board: its file states the clock, and its preset the target.
        Err(ConfigError::Unknown { .. }) => return Ok(config),
        unstated => unstated?,
    };
    let lines = [("clock_mhz", "clock_mhz = MEGAHERTZ"), ("target", "target = \"NAME OF THE PROCESSOR\"")];
    let missing: Vec<_> = lines.into_iter().filter(|(key, _)| unstated.contains(key)).collect();
    if missing.is_empty() {
        return Ok(config);
    }
    let keys: Vec<String> = missing.iter().map(|(key, _)| format!("host.{key}")).collect();
    let lines: Vec<&str> = missing.iter().map(|(_, line)| *line).collect();
    Err(HwError::Times { name: name.into(), keys: keys.join(" and "), lines: lines.join(", ") })
}
