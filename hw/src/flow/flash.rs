//! A bitstream onto its board, by openFPGALoader.

use super::board::Board;
use super::report::{Bitstream, REPORT, read_json};
use super::{FlowError, Progress, steps, tools};
use serde::Deserialize;
use std::path::{Path, PathBuf};

const LOG: &str = "flash.log";

/// What of a report says which board and bitstream it is of.
#[derive(Deserialize)]
struct Made {
    board: String,
    #[serde(default)]
    link: String,
    config: String,
    bitstream: Option<Bitstream>,
}

/// Where a bitstream goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Onto {
    /// The configuration flash, from which the part starts.
    Flash,
    /// The part alone, until it loses power.
    Part,
}

/// The bitstream that `synthesize` left in `dir` for a board, and how a host then reaches the board.
///
/// # Errors
/// [`FlowError`]: no report there, one of another board, or of a result without its bitstream.
fn bitstream(board: &Board, dir: &Path) -> Result<(PathBuf, String), FlowError> {
    let made: Made = read_json(&dir.join(REPORT), "the report of a board's bitstream")?;
    let unfit = |reason| FlowError::Unfit { board: board.name.clone(), config: made.config.clone(), reason };
    if made.board != board.name {
        return Err(unfit(format!("{} holds a bitstream for {}", dir.display(), made.board)));
    }
    let Some(expected) = made.bitstream else {
        return Err(unfit(format!(
            "{} holds no bitstream, because no open tool makes one for its part",
            dir.display()
        )));
    };
    let path = dir.join(&expected.file);
    let bytes = std::fs::read(&path).map_err(|error| FlowError::io(&path, &error))?;
    if Bitstream::of(&expected.file, &bytes) != expected {
        let reason = format!("{} is not the file that its report names; synthesize it again", path.display());
        return Err(unfit(reason));
    }
    Ok((path, made.link))
}

/// Brings the bitstream that `synthesize` left in `dir` onto a board, and gives the `--device` by which a host then reaches it; what
/// openFPGALoader prints is in `dir/flash.log`.
///
/// # Errors
/// [`FlowError`]: as [`bitstream`]; [`FlowError::MissingTool`] without openFPGALoader; [`FlowError::Tool`] where it fails.
pub fn flash(board: &Board, dir: &Path, onto: Onto, progress: &mut dyn FnMut(Progress)) -> Result<String, FlowError> {
    let (path, link) = bitstream(board, dir)?;
    if board.flash.is_empty() {
        let reason = format!(
            "its board.toml has no `flash`, openFPGALoader's name of it; give {} to its own tool",
            path.display()
        );
        return Err(FlowError::Unfit { board: board.name.clone(), config: path.display().to_string(), reason });
    }
    let loader = tools::find_loader()?;
    let onto = match onto {
        Onto::Flash => "--write-flash",
        Onto::Part => "--write-sram",
    };
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let arguments = ["--board", &board.flash, onto, &file].map(String::from);
    let log = dir.join(LOG);
    super::remove(&log)?;
    let ended = steps::call(&loader, &arguments, dir, LOG, progress)?;
    if ended.is_some_and(|ended| ended.success()) {
        return Ok(link);
    }
    let reason = ended.map_or("it took too long".into(), |ended| ended.to_string());
    Err(steps::failed("flash", &reason, log))
}
