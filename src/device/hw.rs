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
